"""A target's answer: one of the task's labels, as JSON or as the bare word."""

import re
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, create_model

from coreeval.models.reading import json_text
from coreeval.models.shapes import AnswerShape
from coreeval.schema import Task, Value

_AROUND = " \t\r\n\"'`*.\u2018\u2019\u201c\u201d"
"""What may stand round a bare label."""


class TargetAnswer(Value):
    """What every target answers; the schema that is sent narrows it to the task's labels."""

    label: str


class LabelShape(AnswerShape[TargetAnswer]):
    """Exactly one of a task's label names.

    A label is known whatever its case, and however its words are joined; a model that says nothing
    but a label, as templates ask for, has answered although it is no JSON.
    """

    def __init__(self, task: Task) -> None:
        names = tuple(label.name for label in task.labels)
        self._by_key = {_key(name): name for name in names}
        one_of = cast("type[str]", Literal[names])  # made at run time: mypy sees a str
        known = Annotated[one_of, BeforeValidator(self._named)]  # type: ignore[valid-type]
        super().__init__(create_model("LabelAnswer", __base__=TargetAnswer, label=known))

    def parse(self, text: str, *, mend: bool = False) -> TargetAnswer:
        """Read an answer, as JSON or as a bare label.

        Raises:
            InvalidAnswer: it is neither.
        """
        name = self._by_key.get(_key(json_text(text)))
        return TargetAnswer(label=name) if name else super().parse(text, mend=mend)

    def _named(self, value: object) -> object:
        """Return a label as the task spells it."""
        return self._by_key.get(_key(value), value) if isinstance(value, str) else value


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.strip(_AROUND)).casefold()
