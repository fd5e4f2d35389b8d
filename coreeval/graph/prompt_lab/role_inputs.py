"""What a role is given for one sample, and exactly what a model is shown of it.

The call of a role is caught before it is made, with its arguments; its messages and the schema of
the answer are those that would be sent.
"""

import difflib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, get_type_hints

from pydantic import BaseModel

from coreeval.agents.roles import Team
from coreeval.agents.team import LLM_ROLES
from coreeval.config import ROLES
from coreeval.errors import UsageError
from coreeval.graph.setup import Setup
from coreeval.models import ModelClient, OutputSchema
from coreeval.models.client import accept_any
from coreeval.prompts import Message, PromptSet
from coreeval.schema import RoleName, Sample, Task
from coreeval.tasks import ALL_TARGETS, load_task
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_records import CallRow

_SIGNATURES = {
    role: inspect.signature(protocol.__call__) for role, protocol in get_type_hints(Team).items()
}


@dataclass(frozen=True, kw_only=True)
class RoleInput:
    """What a role is given for one sample."""

    role: RoleName
    sample: Sample
    task: Task
    given: Mapping[str, Any]
    """The arguments of the call, by the names that the role's signature has for them."""
    calls: tuple[CallRow, ...] = ()
    """The model calls of the recorded step that this was taken from."""


@dataclass(frozen=True, kw_only=True)
class SkippedSample:
    """A sample on which the role is not asked."""

    sample_id: str
    reason: str


class RoleReached(Exception):
    """A stand-in was called in place of the role."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__("the role was reached")
        self.given = given


class RoleProbe:
    """Stands where a role is expected and raises what it was given."""

    def __init__(self, role: RoleName) -> None:
        self._signature = _SIGNATURES[role]

    async def __call__(self, *values: object, **named: object) -> Any:  # noqa: ANN401 - see Team
        """Raise Reached with the arguments by name."""
        bound = self._signature.bind(self, *values, **named)
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]
        raise RoleReached(given)


class RoleInputSource(Protocol):
    """Where situations come from."""

    async def situation(self, sample: Sample) -> RoleInput | SkippedSample:
        """Return what the role is given for a sample, or why it is not asked."""
        ...


def parse_role(name: str) -> RoleName:
    """Return a role by its name.

    Raises:
        UsageError: there is no such role.
    """
    for role in ROLES:
        if role == name:
            return role
    raise UsageError(f"there is no role {name!r}", hint=suggest_names(name, ROLES))


def suggest_names(word: str, known: Sequence[str]) -> str:
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


def load_sample_task(setup: Setup, sample: Sample) -> Task:
    """Return a sample's task: with several stance targets, the one of its own target."""
    from coreeval.evaluation.benchmarks import find_target

    if setup.config.dataset.target != ALL_TARGETS:
        return setup.task
    return load_task(setup.config.task, find_target(sample.id) or "")


T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class RoleRequest:
    """One request as a model gets it."""

    messages: tuple[Message, ...]
    schema_name: str
    schema: Mapping[str, object]


class _RequestCaught(Exception):
    """The role has asked; nobody answers."""

    def __init__(self, shown: RoleRequest) -> None:
        super().__init__("the role has asked")
        self.shown = shown


class _CatchingAsker:
    """An asker that hears the question and stops the role there."""

    async def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        shape: OutputSchema[T],
        *,
        check: Callable[[T], None] = accept_any,
    ) -> T:
        """Raise the question."""
        said = tuple(dict(message) for message in messages)
        raise _RequestCaught(
            RoleRequest(messages=said, schema_name=shape.name, schema=shape.schema)
        )


async def render_request(situation: RoleInput, prompts: PromptSet) -> RoleRequest:
    """Return what the role would ask in a situation.

    Raises:
        UsageError: it would ask nothing, as without any news.
    """
    observer = cast(ModelClient, _CatchingAsker())
    player = LLM_ROLES[situation.role](situation.task, observer, prompts)
    try:
        await cast("Callable[..., object]", player)(**situation.given)  # type: ignore[misc]
    except _RequestCaught as asked:
        return asked.shown
    raise UsageError(
        f"the {situation.role} asks no model here: there is nothing to ask about",
        where=situation.sample.id,
    )


def is_as_sent(situation: RoleInput, shown: RoleRequest, calls: Path) -> bool | None:
    """Tell whether the run that a situation is from sent these very messages.

    None where that cannot be known: no model was asked, or its calls are gone.
    """
    if not situation.calls or not calls.exists():
        return None
    store = open_calls(calls)
    try:
        records = [store.get(call.key) for call in situation.calls]
    finally:
        store.close()
    sent = [json.loads(record.request)["messages"] for record in records if record]
    return list(shown.messages) in sent if sent else None
