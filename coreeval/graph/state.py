"""The state of the graphs: ids, counts and small JSON values, never documents or answers."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, Protocol

from pydantic import Field
from typing_extensions import TypedDict

from coreeval.schema import Policy, Result, Rung

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
RUN_NODES = ("plan", "refresh", "control", "assemble", "evaluate", "pcr", "numleak", "report")
Json = dict[str, Any]
"""A value of the schema as plain JSON, so that checkpoints need no classes to be read."""


_SAMPLE_ID = Field(
    title="Sample",
    description="Id of a sample; the bundled demo has emotion/test/1 to emotion/test/24",
    examples=["emotion/test/2"],
)
"""How the form of LangGraph Studio asks for a sample."""


class SampleInput(TypedDict):
    """What starts a sample's thread."""

    sample_id: Annotated[str, _SAMPLE_ID]


class SampleUpdate(TypedDict, total=False):
    """What a node of the sample graph may change."""

    attempt: int
    """The running attempt, from 1."""
    route: str
    """Name of the node that comes next, or `end`."""
    extraction: Json
    policy: Policy
    """What the screen allows."""
    original_label: str
    original_fluency: int
    """How naturally the original reads to the judge, 1 to 3."""
    read_by: str
    """The words by which the original's label was known; empty if it was not."""
    semantic: dict[str, str] | None
    semantic_feedback: list[Json]
    """Defects of all tries at D^s, for the record."""
    semantic_status: str
    """Written when D^s has been judged; without it there is none."""
    rung: Rung
    evidence: dict[str, Rung]
    """Ids of the evidence on offer, each with the rung that found it."""
    tried: list[str]
    """Ids of evidence that was used and led nowhere."""
    plan: Json
    composed: dict[str, str]
    used: list[int]
    """Numbers of the plan's replacements that the text carries."""
    feedback: list[Json]
    """Defects of the last attempt."""
    verdicts: Annotated[list[Json], operator.add]
    outcome: str
    reason: str


class SampleState(SampleInput, SampleUpdate):
    """One sample on its way through the graph."""


class SampleNode(Protocol):
    """A node of the sample graph; LangGraph's types want its argument to be called `state`."""

    async def __call__(self, state: SampleState) -> SampleUpdate:
        """Return the changes to the state."""
        ...


Wrap = Callable[[str, SampleNode], SampleNode]
"""Puts something round a node, e.g. a record of what it did."""


class RunInput(TypedDict, total=False):
    """A run needs nothing but itself: what it works on is fixed when it is prepared."""

    note: Annotated[str, Field(title="Note", description="Free text, kept nowhere")]


class RunUpdate(TypedDict, total=False):
    """What a node of the run graph may change."""

    planned: int
    """Samples in the run."""
    bad_rows: int
    pending: int
    """Samples that have no outcome."""
    counts: dict[str, int]
    control_pending: int
    """Samples that have no outcome in the pass that writes the control arm."""
    assembled: dict[str, int]
    """Rows by arm."""
    evaluated: list[str]
    """Targets that were asked about the arms."""
    compared: list[str]
    """Targets that were asked about train items too."""
    audited: list[str]
    """Targets that were asked about series."""
    stopped: bool
    """True when the run was told to stop before all targets were asked."""
    report: str
    """Path of the report."""


class RunState(RunInput, RunUpdate):
    """The run graph's state."""


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
