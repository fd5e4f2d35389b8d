"""The shapes of answers that are not labels: the letter of an option, and free text.

Both are read from `{"answer": "..."}` or from prose, without thoughts. A text is bounded: only the
first characters of a longer one count.
"""

import re
from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final

from pydantic import Field

from coreeval.evaluation.answer_parsers import TargetAnswer, read_choice
from coreeval.models.answer_text import extract_final_answer, extract_json, iter_objects
from coreeval.models.answers import InvalidAnswer, OutputSchema
from coreeval.schema import Task
from coreeval.tasks.kinds.choice import option_fields

LONGEST_SHORT: Final = 2_000
"""The number of characters of a short answer that count: the most in an accepted answer."""
LONGEST_SUMMARY: Final = 20_000
_KEYS: Final = ("answer", "final_answer", "summary", "text")
"""Keys of an object that may hold its answer, the surest first."""
_MARKED: Final = re.compile(
    r"^[^\w\n]{0,20}(?:so |thus |therefore |hence )?,? ?(?:the )?(?:(?:final|short|correct) )?"
    r"answer(?: is\b:?|:)[ \t]*(?P<said>\S[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that announces the answer."""
_BOXED: Final = re.compile(r"\\boxed\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_HEADING: Final = re.compile(r"[\W_]{0,20}(?:summary|tl;dr)[*_]{0,4}:[*_\s]{0,20}", re.IGNORECASE)
_MOST_ITEMS: Final = 1_000


class GivenAnswer(TargetAnswer):
    """The answer of a target under the key `answer`: a letter or a text, which is its label."""

    label: str = Field(alias="answer")


class OptionShape(OutputSchema[TargetAnswer]):
    """The letter of one of a sample's options, as `read_choice` reads it.

    Args:
        task: A task of the kind choice, with the letters of the samples to ask about.
    """

    def __init__(self, task: Task) -> None:
        self._options: Mapping[str, str] = dict.fromkeys(option_fields(task.fields), "")
        super().__init__(GivenAnswer, name="OptionAnswer", choices={"answer": [*self._options]})

    def for_options(self, fields: Mapping[str, str]) -> "OptionShape":
        """Return the shape for a sample with these fields; its options may be named by text."""
        found = copy(self)
        found._options = {letter: fields[letter] for letter in self._options}
        return found

    def parse(self, text: str, *, mend: bool = False) -> TargetAnswer:
        """Parse an answer in JSON or prose.

        Raises:
            InvalidAnswer: the answer names no option, or several.
        """
        letter = read_choice(text, self._options)
        if not letter:
            raise InvalidAnswer(f"it does not choose one of {', '.join(self._options)}")
        return GivenAnswer(answer=letter)


class FreeShape(OutputSchema[TargetAnswer]):
    """Free text: the part of a short answer after "the answer is", otherwise all of it."""

    def __init__(self, *, short: bool) -> None:
        self._short = short
        super().__init__(GivenAnswer, name="FreeAnswer")

    def parse(self, text: str, *, mend: bool = False) -> TargetAnswer:
        """Parse an answer in JSON or prose.

        Raises:
            InvalidAnswer: the answer is empty, or an object without an answer.
        """
        plain = read_free_answer(text, short=self._short)
        if not plain:
            has_object = any(True for _ in iter_objects(extract_final_answer(text)))
            raise InvalidAnswer("its object has no answer" if has_object else "empty")
        return GivenAnswer(answer=plain)


def read_free_answer(text: str, *, short: bool) -> str:
    """Return the answer in JSON or prose; "" if it is empty, or an object without an answer."""
    said = extract_final_answer(text)
    objects = [value for value, _, _ in iter_objects(said)]
    found = _read_objects(objects)
    if not found and not (objects and said.lstrip()[:1] in "[{"):
        found = _read_prose(said, short=short)
    most = LONGEST_SHORT if short else LONGEST_SUMMARY
    return found.strip()[:most].strip().encode("utf-8", "replace").decode()


def _read_prose(said: str, *, short: bool) -> str:
    text = extract_json(said)
    if not short:
        return _HEADING.sub("", text, count=1) if _HEADING.match(text) else text
    boxed = _BOXED.findall(text)
    marked = boxed or [found["said"] for found in _MARKED.finditer(text)]
    return str(marked[-1]).strip("*_` ") if marked else text


def _read_objects(objects: list[object]) -> str:
    """Return the answer in the last object with an answer; "" if there is none."""
    found = [text for one in objects if (text := "\n".join(_texts_in(one)).strip())]
    return found[-1] if found else ""


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts of an object's answer; a list of points has several."""
    if isinstance(value, dict):
        key = next((key for key in _KEYS if key in value), None)
        value = value[key] if key else None
    for each in value[:_MOST_ITEMS] if isinstance(value, list) else [value]:
        if isinstance(each, bool):
            yield "true" if each else "false"
        elif isinstance(each, str | int | float):
            yield str(each)
