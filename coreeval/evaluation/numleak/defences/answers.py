"""Answers to ordinary questions, and what judges gave them: lines of a file of their own."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from coreeval.evaluation.benchmarks.files import Records, read_records, validate_record
from coreeval.evaluation.numleak.defences.questions import Category
from coreeval.schema import AnswerKind, Value
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


def write_utility(path: Path, replies: Iterable[UtilityReply]) -> None:
    """Write one line for each answer, whole or not at all."""
    lines = (json.dumps(one.model_dump(mode="json"), ensure_ascii=False) for one in replies)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_utility(path: Path) -> Records[UtilityReply]:
    """Read JSON lines; of lines about the same answer the first counts.

    Raises:
        DatasetError: the file cannot be read, or no line of it is such an answer.
    """
    found = read_records(path, partial(validate_record, UtilityReply), key=_key, twice=_twice)
    return found.require_records(path, what="a judged answer", whats="judged answers", prose=_PROSE)


def _key(one: UtilityReply) -> tuple[str, ...]:
    return (one.model, one.series, one.defence, one.question)


def _twice(_: UtilityReply, first: int) -> str:
    return f"the answer is there twice, first in line {first}"
