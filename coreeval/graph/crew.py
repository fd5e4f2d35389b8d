"""What the nodes of the sample graph work with: live objects, kept out of the state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from coreeval.agents.roles import Team
from coreeval.agents.safety import SafetyRules
from coreeval.graph.offering import Offer
from coreeval.schema import Sample, Task, Window
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.run_store import RunStore


@dataclass(frozen=True, kw_only=True)
class Part:
    """The task of a sample and the team that works on it."""

    task: Task
    team: Team


@dataclass(frozen=True, kw_only=True)
class Crew:
    """Everyone and everything a sample needs on its way."""

    part_of: Callable[[Sample], Part]
    """A stance benchmark with several targets has a part for each."""
    knowledge: KnowledgeSource
    offer: Offer
    """Looks for news for one sample."""
    window: Window
    store: RunStore
    rules: SafetyRules
    candidates: int
    """Items of evidence shown to the replacer."""
    max_attempts: int
    newest: Mapping[str, datetime] = field(default_factory=dict)
    """By sample, the newest evidence of a text that is kept unless there is newer news."""
