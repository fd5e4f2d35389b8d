"""The context of the sample graph's nodes: live objects that are not part of the state.

`NodeContext` has them. `Retrieve` is the interface to news, and `log_detail` records details of a
step that later nodes do not need.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime

from coreeval.agents.document_terms import DocumentTexts
from coreeval.agents.roles import Team
from coreeval.agents.safety import SafetyRules
from coreeval.graph.label_batches import LabelBatches
from coreeval.graph.state import Json
from coreeval.schema import EntityQuery, Evidence, Rung, Sample, Task, Window
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.run_store import RunStore

HasMaterial = Callable[[Sequence[Evidence]], bool]
"""A function that returns whether the reports of an event can make an item."""


@dataclass(frozen=True, kw_only=True)
class RetrievalRequest:
    """A sample's request for news."""

    sample_id: str
    attempt: int
    queries: Sequence[EntityQuery]
    tried: Collection[str]
    """The ids of evidence used in failed attempts."""


@dataclass(frozen=True, kw_only=True)
class RetrievalResult:
    """The news offered to a sample."""

    asked: Sequence[Json]
    """For each query its `text` and `rung`, the number `found`, and `why_none`."""
    items: Mapping[Evidence, Rung]
    """The items offered, best first, each with the rung that found it."""


Retrieve = Callable[[RetrievalRequest], Awaitable[RetrievalResult]]
"""Searches news for one sample."""


@dataclass(frozen=True, kw_only=True)
class TaskTeam:
    """A sample's task and the team that works on it."""

    task: Task
    team: Team


@dataclass(frozen=True, kw_only=True)
class NodeContext:
    """Everything that the nodes need to process a sample."""

    find_team: Callable[[Sample], TaskTeam]
    """Returns the team of a sample: a stance benchmark with several targets has one for each."""
    knowledge: KnowledgeSource
    retrieve: Retrieve
    """Searches news for one sample."""
    window: Window
    store: RunStore
    rules: SafetyRules
    max_attempts: int
    label_batches: LabelBatches | None = None
    """The originals that are labelled together; None if each has its own call."""
    writes_semantic: bool = True
    """Whether the run has a semantic arm."""
    reads_articles: bool = False
    """Whether samples are shown passages of articles."""
    documents: DocumentTexts = "excerpts"
    """How much of publishers' texts documents may contain."""
    newest: Mapping[str, datetime] = field(default_factory=dict)
    """By sample, the newest evidence of a text that is kept unless there is newer news."""


_DETAILS: ContextVar[Json | None] = ContextVar("notes", default=None)


@contextmanager
def collect_details() -> Iterator[Json]:
    """Yield a dictionary that collects the details logged inside the block and its tasks."""
    notes: Json = {}
    token = _DETAILS.set(notes)
    try:
        yield notes
    finally:
        _DETAILS.reset(token)


def log_detail(name: str, value: object) -> None:
    """Add a plain JSON value to the record of the step, if the step is recorded."""
    notes = _DETAILS.get()
    if notes is not None:
        notes[name] = value
