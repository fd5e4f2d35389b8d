"""A role's call, caught before it is made: who is asked about which sample, and with what."""

import difflib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_type_hints

from coreeval.agents.roles import Team
from coreeval.config import ROLES
from coreeval.errors import UsageError
from coreeval.graph.setup import Setup
from coreeval.schema import RoleName, Sample, Task
from coreeval.tasks import ALL_TARGETS, load_task
from coreeval.tools.stores.run_records import CallRow

_SIGNATURES = {
    role: inspect.signature(protocol.__call__) for role, protocol in get_type_hints(Team).items()
}


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a role is given for one sample."""

    role: RoleName
    sample: Sample
    task: Task
    given: Mapping[str, Any]
    """The arguments of the call, by the names that the role's signature has for them."""
    calls: tuple[CallRow, ...] = ()
    """The model calls of the recorded step that this was taken from."""


@dataclass(frozen=True, kw_only=True)
class Missed:
    """A sample on which the role is not asked."""

    sample_id: str
    reason: str


class Reached(Exception):
    """A stand-in was called in place of the role."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__("the role was reached")
        self.given = given


class StandIn:
    """Stands where a role is expected and raises what it was given."""

    def __init__(self, role: RoleName) -> None:
        self._signature = _SIGNATURES[role]

    async def __call__(self, *values: object, **named: object) -> Any:  # noqa: ANN401 - see Team
        """Raise Reached with the arguments by name."""
        bound = self._signature.bind(self, *values, **named)
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]
        raise Reached(given)


class Source(Protocol):
    """Where situations come from."""

    async def situation(self, sample: Sample) -> Situation | Missed:
        """Return what the role is given for a sample, or why it is not asked."""
        ...


def role_named(name: str) -> RoleName:
    """Return a role by its name.

    Raises:
        UsageError: there is no such role.
    """
    for role in ROLES:
        if role == name:
            return role
    raise UsageError(f"there is no role {name!r}", hint=nearest(name, ROLES))


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a hint that names the nearest known word, or the first few of them all.

    Ids of samples share a long beginning, so the one with the same last part comes first.
    """
    last = word.rpartition("/")[2]
    same_end = [each for each in known if each.rpartition("/")[2] == last]
    near = same_end[:1] or difflib.get_close_matches(word, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    more = ", …" if len(known) > len(ROLES) else ""
    return f"known: {', '.join(known[: len(ROLES)])}{more}"


def task_for(setup: Setup, sample: Sample) -> Task:
    """Return a sample's task: with several stance targets, the one of its own target."""
    from coreeval.evaluation.benchmarks import target_of

    if setup.config.dataset.target != ALL_TARGETS:
        return setup.task
    return load_task(setup.config.task, target_of(sample.id) or "")
