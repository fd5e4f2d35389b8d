"""Rendered prompts, read back: what each role is shown, as typed values.

The shapes are those of the blocks of data in `coreeval/prompts/*.md`; keys that nobody needs here
are left aside.
"""

import json
from datetime import date
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from coreeval.schema import Deletion, Person, Triple
from tests.support.llm_server import Request

T = TypeVar("T")
Fields = dict[str, str]


class Shown(BaseModel):
    """Base of what stands in a block."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ShownItem(Shown):
    fields: Fields
    label: str


class ShownNews(Shown):
    number: int
    title: str
    snippet: str = ""
    domain: str
    published: date


class Complaint(Shown):
    check: str
    message: str


class LastPlan(Shown):
    defects: tuple[Complaint, ...]


class LastTry(Shown):
    previous: Fields | None
    defects: tuple[Complaint, ...]


class ShownStatement(Shown):
    text: str
    quote: str
    translation: str
    modality: str
    speaker: str


class ShownChange(Shown):
    number: int
    before: Triple | None
    after: Triple
    field: str


class ShownPlan(Shown):
    statements: tuple[ShownStatement, ...]
    replacements: tuple[ShownChange, ...]
    delete: tuple[Deletion, ...]
    persons: tuple[Person, ...]


class _Named(Shown):
    name: str


class _Format(Shown):
    json_schema: _Named


class _Tool(Shown):
    function: _Named | None = None
    name: str = ""
    """Where Anthropic has it."""


class _Message(Shown):
    role: str
    content: str


class _Asked(Shown):
    messages: tuple[_Message, ...]
    response_format: _Format | None = None
    tools: tuple[_Tool, ...] = Field(default=())


class Prompted:
    """One request of a role, as the server got it."""

    def __init__(self, request: Request) -> None:
        self._asked = _Asked.model_validate(request)

    @property
    def shape(self) -> str:
        """The name of the answer's schema, which tells the role: extraction, plan, label, …"""
        if self._asked.tools:
            tool = self._asked.tools[0]
            return tool.function.name if tool.function else tool.name
        return self._asked.response_format.json_schema.name if self._asked.response_format else ""

    @property
    def is_asked_again(self) -> bool:
        """True for a further draw, which shows what was wrong with the one before."""
        return any(one.role == "assistant" for one in self._asked.messages)

    @property
    def user(self) -> str:
        """The first message of the user."""
        return next(one.content for one in self._asked.messages if one.role == "user")

    def block(self, name: str, shape: type[T]) -> T:
        """Return the data in a block."""
        text = self.user.split(f"<{name}>\n", 1)[1].split(f"\n</{name}>", 1)[0]
        return TypeAdapter(shape).validate_python(json.loads(text), strict=False)

    def reworded(self) -> Fields | None:
        """Return D^s as the composer is shown it; None if it is not."""
        text = self.user.split("<reworded>\n", 1)[1].split("\n</reworded>", 1)[0]
        return TypeAdapter[Fields | None](Fields | None).validate_python(json.loads(text))
