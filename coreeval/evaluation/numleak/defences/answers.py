"""Answers to ordinary questions, and what judges gave them: lines of a file of their own."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.lines import Line, read_lines
from coreeval.evaluation.benchmarks.rows import bad_row
from coreeval.evaluation.numleak.defences.questions import Category
from coreeval.schema import AnswerKind, BadRow, Value
from coreeval.tools.files import write_text

MOST: Final = 4
"""The best score; the worst is 0 (NumLeak, section 5)."""
_PROSE: Final = "a line is {model, series, defence, question, category, asked, response, scores}"


class Scored(Value):
    """What one judge made of an answer."""

    judge: str
    score: Annotated[int, Field(ge=0, le=MOST)] | None
    """None where it would not or could not score."""
    reason: str = ""


class UtilityReply(Value):
    """One answer to an ordinary question."""

    model: Annotated[str, Field(min_length=1)]
    series: str
    defence: str
    question: str
    """Its id."""
    category: Category
    asked: str
    """Its words."""
    points: str = ""
    """What a good answer says."""
    response: str | None
    kind: AnswerKind = "answered"
    scores: tuple[Scored, ...] = ()
    """Of the first judge, then of the second, as far as they were asked."""


@dataclass(frozen=True, kw_only=True)
class UtilityRecorded:
    """The good lines of a file in its order, and the others."""

    good: tuple[UtilityReply, ...]
    bad: tuple[BadRow, ...]


def write_utility(path: Path, replies: Iterable[UtilityReply]) -> None:
    """Write one line for each answer, whole or not at all."""
    lines = (json.dumps(one.model_dump(mode="json"), ensure_ascii=False) for one in replies)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_utility(path: Path) -> UtilityRecorded:
    """Read JSON lines; of lines about the same answer the first counts.

    Raises:
        DatasetError: the file cannot be read, or no line of it is such an answer.
    """
    found = list(_rows(path))
    good = tuple(row for row in found if isinstance(row, UtilityReply))
    bad = tuple(row for row in found if isinstance(row, BadRow))
    if not good:
        first = f"; line {bad[0].line}: {bad[0].reason}" if bad else ""
        raise DatasetError(
            f"none of its {len(bad)} lines is a judged answer{first}", where=str(path), hint=_PROSE
        )
    return UtilityRecorded(good=good, bad=bad)


def _rows(path: Path) -> Iterator[UtilityReply | BadRow]:
    seen = dict[tuple[str, ...], int]()
    for line in read_lines(path):
        if not line.raw.strip():
            continue
        found = _reply(line)
        if isinstance(found, UtilityReply):
            key = (found.model, found.series, found.defence, found.question)
            first = seen.setdefault(key, line.number)
            if first == line.number:
                yield found
                continue
            found = f"the answer is there twice, first in line {first}"
        yield bad_row(path.name, line.number, found, line.raw)


def _reply(line: Line) -> UtilityReply | str:
    """Return the answer in a line, or what is wrong with it."""
    if not line.valid:
        return "the line is not UTF-8"
    try:
        return UtilityReply.model_validate_json(line.raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg'].lower()}" if place else str(first["msg"]).lower()
