"""The state of the graphs: ids, counts and small JSON values, never documents or answers."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol, get_args

from pydantic import Field
from typing_extensions import TypedDict

from coreeval.schema import Certainty, Policy, Result, Rung

SAMPLE_NODES = (
    "extract",
    "judge_original",
    "reword",
    "judge_semantic",
    "retrieve",
    "replace",
    "compose",
    "check",
    "reflect",
)
REWORDING_NODES = ("extract", "judge_original", "reword", "judge_semantic")
DetectorNode = Literal["pcr", "numleak"]
"""A node that asks targets what one detector needs, named as the detector is."""
ASKING_NODES = ("evaluate", *get_args(DetectorNode), "report")
"""Those that ask targets, and the report of their answers."""
RUN_NODES = ("plan", "refresh", "control", "assemble", *ASKING_NODES)
SPLITS_STAGE: DetectorNode = "pcr"
"""The stage in which train items are reworded and asked about."""
Json = dict[str, Any]
"""A value of the schema as plain JSON, so that checkpoints can be read without its classes."""


_SAMPLE_ID = Field(
    title="Sample",
    description="The id of a sample; the ids of the demo are emotion/test/1 to emotion/test/24",
    examples=["emotion/test/2"],
)
"""The `sample_id` field in the form of LangGraph Studio."""


class SampleInput(TypedDict):
    """The input that starts a sample's thread."""

    sample_id: Annotated[str, _SAMPLE_ID]


class SampleUpdate(TypedDict, total=False):
    """The changes that a node of the sample graph may make."""

    attempt: int
    """Number of the current attempt, from 1."""
    route: str
    """Name of the next node, or `end`."""
    extraction: Json
    policy: Policy
    """The policy that the screen sets."""
    original_label: str
    original_fluency: int
    """How naturally the original reads to the judge, 1 to 3."""
    read_by: str
    """The words from which the original's label was recognised; empty if it was not."""
    certainty: Certainty
    """How certain the judge was of the original's label."""
    rewrite: Json
    """D^s as the extractor wrote it in its own call; absent in the full pipeline."""
    semantic: dict[str, str] | None
    semantic_feedback: list[Json]
    """Defects of all attempts at D^s, for the record."""
    semantic_status: str
    """Written once D^s has been judged; if absent, there is no D^s."""
    rung: Rung
    evidence: dict[str, Rung]
    """Ids of the evidence offered, each with the rung that found it."""
    tried: list[str]
    """Ids of evidence that was used without success."""
    plan: Json
    composed: dict[str, str]
    used: list[int]
    """Numbers of the plan's replacements that the text contains."""
    feedback: list[Json]
    """Defects of the last attempt."""
    verdicts: Annotated[list[Json], operator.add]
    spent_usd: Annotated[float, operator.add]
    """The cost of the sample's calls in US dollars; see `coreeval.models.sample_cost`."""
    outcome: str
    reason: str


class SampleState(SampleInput, SampleUpdate):
    """The state of one sample in the graph."""


class SampleNode(Protocol):
    """A node of the sample graph; LangGraph's types require the argument name `state`."""

    async def __call__(self, state: SampleState) -> SampleUpdate:
        """Return the changes to the state."""
        ...


Wrap = Callable[[str, SampleNode], SampleNode]
"""Wraps a node, for example with a record of its result."""


class RunInput(TypedDict, total=False):
    """The input of a run, which is empty: a run's inputs are fixed when it is prepared."""

    note: Annotated[str, Field(title="Note", description="Free text, not stored")]


class RunUpdate(TypedDict, total=False):
    """The changes that a node of the run graph may make."""

    planned: int
    """Number of samples in the run."""
    bad_rows: int
    pending: int
    """Number of samples without an outcome."""
    counts: dict[str, int]
    control_pending: int
    """Number of samples without an outcome while writing the control arm."""
    assembled: dict[str, int]
    """Number of rows by arm."""
    asked: Annotated[dict[str, list[str]], operator.or_]
    """Targets that were asked, by the node that asked them."""
    stopped: bool
    """Whether the run was told to stop before all targets were asked."""
    report: str
    """Path of the report."""


class RunState(RunInput, RunUpdate):
    """The state of the run graph."""


def start_sample(sample_id: str) -> SampleState:
    """Return the state that a sample's thread starts with."""
    return SampleState(sample_id=sample_id)


def build_result(state: SampleState, facts: list[Json]) -> Result:
    """Return the result from the last state of a thread.

    Raises:
        KeyError: the thread has not reached an outcome.
    """
    accepted, judged = state["outcome"] == "accepted", "semantic_status" in state
    return Result.model_validate(
        {
            "sample_id": state["sample_id"],
            "outcome": state["outcome"],
            "reason": state.get("reason", ""),
            "attempts": state.get("attempt", 0),
            "rung": state.get("rung", "none"),
            "semantic_status": state.get("semantic_status", "unchanged"),
            "semantic": state.get("semantic") if judged else None,
            "updated": state.get("composed") if accepted else None,
            "original_label": state.get("original_label", ""),
            "facts": facts if accepted else [],
        }
    )
