"""What goes into and comes out of the run store, beside the words of the schema."""

from dataclasses import dataclass, field
from typing import Any

from coreeval.schema import AnswerKind, Evidence, Result, Sample, TrainEnd, Verdict
from coreeval.tools.stores.heartbeat import ProgressSnapshot

TargetAnswer = tuple[str, int, str, str, AnswerKind]
"""Of a prediction what scores need: source, template, id of the sample, label or empty, kind."""

StepNote = tuple[str, str, dict[str, Any]]
"""Id of a sample, a node, and the detail of its step."""


@dataclass(frozen=True, kw_only=True)
class CallRow:
    """One model call as a step made it."""

    key: str
    role: str
    model: str
    draw: int
    cached: bool
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    method: str = ""
    """How the model was asked to keep to the schema."""
    tries: str = ""
    """Why earlier requests for it came to nothing, a line each."""
    error: str = ""
    """Why it is no answer; empty where it is one."""
    usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One node run for one attempt of one sample."""

    sample_id: str
    attempt: int
    node: str
    started_at: str
    seconds: float
    error: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    calls: tuple[CallRow, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SampleResult:
    """A sample together with how it ended."""

    sample: Sample
    result: Result


@dataclass(frozen=True, kw_only=True)
class EvidenceExcerpt:
    """What a release says of evidence: without a title, its snippet cut or left out."""

    evidence: Evidence
    snippet_sha256: str
    """Of the snippet, be it left out."""


@dataclass(frozen=True, kw_only=True)
class ReleaseSample(SampleResult):
    """A sample that enters a run with the result that it had in a release."""

    excerpts: tuple[EvidenceExcerpt, ...]


@dataclass(frozen=True, kw_only=True)
class TrainItem:
    """A drawn item of the train split together with what became of it."""

    sample: Sample
    end: TrainEnd


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """One request to a remote news source."""

    backend: str
    queries: int
    found: int
    """Queries that it had evidence for."""
    bytes_billed: int = 0
    cost_usd: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The last sign of life of the process that works on a run."""

    pid: int
    host: str
    at: str
    in_flight: dict[str, dict[str, str]]
    """Sample id -> its node and since when."""
    pulse: ProgressSnapshot | None = None
    """What the process knew of the run; None in files from before it was told."""
