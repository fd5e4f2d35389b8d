"""The tables of run.db, and the records that are stored in them."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    Index,
    MetaData,
    String,
    Table,
    Text,
)

from coreeval.schema import AnswerKind, Evidence, Result, Sample, TrainEnd, Verdict
from coreeval.tools.stores.sqlite import WIDE_INTEGER

TargetAnswer = tuple[str, int, str, str, AnswerKind, bool | None, float | None]
"""The parts of a prediction that scores need: source, template, sample id, answer or "", kind; and,
if the task's answers are graded, whether it is right, and its score."""

StepNote = tuple[str, str, dict[str, Any]]
"""The id of a sample, a node, and the detail of its step."""

TARGET_SUBJECT = "target "
"""The prefix of the `sample_id` of steps that ask a target, followed by the target's name."""


@dataclass(frozen=True, kw_only=True)
class CallRow:
    """A model call made by a step."""

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
    """The method by which the model was asked to follow the schema."""
    tries: str = ""
    """The reasons that earlier requests failed, one per line."""
    error: str = ""
    """The reason that it is not an answer; "" if it is one."""
    usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One run of a node for one attempt at a sample."""

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
    """A sample and its result."""

    sample: Sample
    result: Result


@dataclass(frozen=True, kw_only=True)
class EvidenceExcerpt:
    """Evidence in a release: without a title, its snippet shortened or omitted."""

    evidence: Evidence
    snippet_sha256: str
    """The hash of the full snippet, even if the snippet is omitted."""


@dataclass(frozen=True, kw_only=True)
class ReleaseSample(SampleResult):
    """A sample that enters a run with its result from a release."""

    excerpts: tuple[EvidenceExcerpt, ...]


@dataclass(frozen=True, kw_only=True)
class TrainItem:
    """An item drawn from the train split, with its outcome."""

    sample: Sample
    end: TrainEnd


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """A request to a remote news source, or what such a source has billed to one process."""

    backend: str
    queries: int
    """The number of queries; 0 for a bill."""
    found: int
    """The number of queries with evidence."""
    bytes_billed: int = 0
    cost_usd: float = 0.0
    notes: tuple[str, ...] = ()


metadata = MetaData()

samples = Table(
    "samples",
    metadata,
    Column("seq", WIDE_INTEGER, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("split", String, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("label", WIDE_INTEGER, nullable=False),
    Column("label_text", String, nullable=False),
    Column("cluster", String, nullable=False, server_default=""),
)
results = Table(
    "results",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("outcome", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", WIDE_INTEGER, nullable=False),
    Column("rung", String, nullable=False),
    Column("semantic_status", String, nullable=False),
    Column("semantic", JSON),
    Column("updated", JSON),
    Column("original_label", String, nullable=False),
    Column("ended_at", String, nullable=False),
    Column("freshness", JSON),
    Column("kept_from", String),
    Column("cause", String, nullable=False, server_default=""),
)
facts = Table(
    "facts",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("ord", WIDE_INTEGER, primary_key=True),
    Column("field", String, nullable=False),
    Column("before", JSON),
    Column("after", JSON, nullable=False),
    Column("evidence_id", String, nullable=False),
    Column("quote", Text, nullable=False),
)
evidence = Table(
    "evidence",
    metadata,
    Column("id", String, primary_key=True),
    Column("body", JSON, nullable=False),
)
kept_evidence = Table(
    "kept_evidence",
    metadata,
    Column("id", String, primary_key=True),
    Column("body", JSON, nullable=False),
    Column("snippet_sha256", String, nullable=False),
)
searches = Table(
    "searches",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("asked", JSON, nullable=False),
    Column("events", JSON, nullable=False),
    Column("need", Text, nullable=False),
    Column("dealt", JSON(none_as_null=True)),
    Column("passages", JSON(none_as_null=True)),
)
"""The news found for each sample, by event; `dealt` has the events that it may be offered, and
`passages` the passages of articles shown to it, by evidence id."""
steps = Table(
    "steps",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("attempt", WIDE_INTEGER, primary_key=True),
    Column("node", String, primary_key=True),
    Column("started_at", String, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("error", Text, nullable=False),
    Column("detail", JSON, nullable=False),
)
verdicts = Table(
    "verdicts",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("attempt", WIDE_INTEGER, primary_key=True),
    Column("node", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("passed", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
)
calls = Table(
    "calls",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("attempt", WIDE_INTEGER, primary_key=True),
    Column("node", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("role", String, nullable=False),
    Column("model", String, nullable=False),
    Column("draw", WIDE_INTEGER, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("prompt_tokens", WIDE_INTEGER, nullable=False),
    Column("cached_tokens", WIDE_INTEGER, nullable=False, server_default="0"),
    Column("completion_tokens", WIDE_INTEGER, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("method", String, nullable=False, server_default=""),
    Column("tries", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("usd", Float, nullable=True),
)
bad_rows = Table(
    "bad_rows",
    metadata,
    Column("seq", WIDE_INTEGER, primary_key=True),
    Column("file", String, nullable=False),
    Column("line", WIDE_INTEGER, nullable=False),
    Column("reason", Text, nullable=False),
    Column("text", Text, nullable=False),
)
predictions = Table(
    "predictions",
    metadata,
    Column("target", String, primary_key=True),
    Column("source", String, primary_key=True),
    Column("template", WIDE_INTEGER, primary_key=True),
    Column("sample_id", String, primary_key=True),
    Column("answer", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("version", String, nullable=False),
    Column("right", Boolean),
    Column("score", Float),
    sqlite_with_rowid=False,  # it is large and consists mostly of its key
)
stages = Table(
    "stages",
    metadata,
    Column("name", String, primary_key=True),
    Column("ended_at", String, nullable=False),
    Column("detail", JSON, nullable=False),
)
heartbeat = Table(
    "heartbeat",
    metadata,
    Column("id", WIDE_INTEGER, primary_key=True),
    Column("pid", WIDE_INTEGER, nullable=False),
    Column("host", String, nullable=False),
    Column("at", String, nullable=False),
    Column("in_flight", JSON, nullable=False),  # each sample's node and start time, by its id
    Column("pulse", JSON),  # a ProgressSnapshot; NULL in files that predate it
)
fetches = Table(
    "fetches",
    metadata,
    Column("seq", WIDE_INTEGER, primary_key=True),
    Column("at", String, nullable=False),
    Column("backend", String, nullable=False),
    Column("queries", WIDE_INTEGER, nullable=False),
    Column("found", WIDE_INTEGER, nullable=False),
    Column("bytes_billed", WIDE_INTEGER, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("notes", JSON, nullable=False),
)
train_items = Table(
    "train_items",
    metadata,
    Column("seq", WIDE_INTEGER, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("split", String, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("label", WIDE_INTEGER, nullable=False),
    Column("label_text", String, nullable=False),
    Column("cluster", String, nullable=False, server_default=""),
    Column("status", String, nullable=False),
    Column("semantic", JSON),
    Column("reason", Text, nullable=False),
)
listing = Table(
    "listing",
    metadata,
    Column("seq", WIDE_INTEGER, primary_key=True),
    Column("sample", String, nullable=False),
    Column("label", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("cause", String, nullable=False),
    Column("attempts", WIDE_INTEGER, nullable=False),
    Column("rung", String, nullable=False),
    Column("semantic_status", String, nullable=False),
    Column("kept_from", String),
    Column("ended_at", String, nullable=False),
    Column("calls", WIDE_INTEGER, nullable=False),
    Column("billed_calls", WIDE_INTEGER, nullable=False),
    Column("priced", WIDE_INTEGER, nullable=False),
    Column("usd", Float, nullable=False),
    Column("tokens", WIDE_INTEGER, nullable=False),
    Column("seconds", Float, nullable=False),
)
"""A narrow row for each sample; triggers maintain this table and those below (run_triggers.py).
"""
sought = Table(
    "sought",
    metadata,
    Column("seq", WIDE_INTEGER, primary_key=True),
    Column("text", Text, nullable=False),
)
"""The searchable text of a sample: its id, its texts, its reason."""
call_sums = Table(
    "call_sums",
    metadata,
    Column("role", String, primary_key=True),
    Column("model", String, primary_key=True),
    Column("cached", Boolean, primary_key=True),
    Column("calls", WIDE_INTEGER, nullable=False),
    Column("prompt_tokens", WIDE_INTEGER, nullable=False),
    Column("cached_tokens", WIDE_INTEGER, nullable=False),
    Column("completion_tokens", WIDE_INTEGER, nullable=False),
    Column("usd", Float, nullable=False),
    Column("priced", WIDE_INTEGER, nullable=False),
)
step_sums = Table(
    "step_sums",
    metadata,
    Column("node", String, primary_key=True),
    Column("steps", WIDE_INTEGER, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("errors", WIDE_INTEGER, nullable=False),
)
verdict_sums = Table(
    "verdict_sums",
    metadata,
    Column("name", String, primary_key=True),
    Column("passed", WIDE_INTEGER, nullable=False),
    Column("failed", WIDE_INTEGER, nullable=False),
)
Index("results_by_outcome", results.c.outcome)
Index("calls_by_key", calls.c.key)
KIND = ("outcome", "cause", "label", "attempts", "rung", "semantic_status", "kept_from")
"""The columns by which samples are counted."""
Index("listing_by_kind", *(listing.c[name] for name in KIND))
