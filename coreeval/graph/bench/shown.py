"""Exactly what a model is shown: the messages of a role and the schema of its answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from pydantic import BaseModel

from coreeval.agents.team import LLM_ROLES
from coreeval.errors import UsageError
from coreeval.graph.bench.situations import Situation
from coreeval.models import ModelClient, OutputSchema
from coreeval.models.client import accept_any
from coreeval.prompts import Message, PromptSet
from coreeval.tools.stores.call_store import open_calls

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One request as a model gets it."""

    messages: tuple[Message, ...]
    schema_name: str
    schema: Mapping[str, object]


class _Asked(Exception):
    """The role has asked; nobody answers."""

    def __init__(self, shown: Shown) -> None:
        super().__init__("the role has asked")
        self.shown = shown


class _Listener:
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
        raise _Asked(Shown(messages=said, schema_name=shape.name, schema=shape.schema))


async def shown_in(situation: Situation, prompts: PromptSet) -> Shown:
    """Return what the role would ask in a situation.

    Raises:
        UsageError: it would ask nothing, as without any news.
    """
    listener = cast(ModelClient, _Listener())
    player = LLM_ROLES[situation.role](situation.task, listener, prompts)
    try:
        await cast("Callable[..., object]", player)(**situation.given)  # type: ignore[misc]
    except _Asked as asked:
        return asked.shown
    raise UsageError(
        f"the {situation.role} asks no model here: there is nothing to ask about",
        where=situation.sample.id,
    )


def as_sent(situation: Situation, shown: Shown, calls: Path) -> bool | None:
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
