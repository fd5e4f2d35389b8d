"""A file of scored candidates: every line is a candidate, a line of another kind, or a bad one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated, Final

from pydantic import AliasChoices, Field, ValidationError

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.lines import lines_of
from coreeval.evaluation.benchmarks.rows import bad_row, encodable
from coreeval.evaluation.numleak.recorded import object_in, opened
from coreeval.schema import BadRow, Value

TRUE: Final = "true"
"""What the candidate with the published value is called."""
_RECORD: Final = "record"
"""The `type` of a line with a candidate, where lines have one."""
_PROSE: Final = 'a line is {model, date, candidate, mean_logprob}; one candidate is called "true"'


class Candidate(Value):
    """One possible answer, and how probable a model finds it."""

    model: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("model", "model_tag"))]
    series: str = ""
    date: Annotated[str, Field(min_length=1)]
    candidate: Annotated[str, Field(min_length=1)]
    """What kind it is: `true`, or what the others are called."""
    text: Annotated[str | None, Field(validation_alias=AliasChoices("text", "candidate_text"))] = (
        None
    )
    mean_logprob: Annotated[float, Field(le=0)]
    """Natural logarithm of its probability, divided by its tokens."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The candidates of a file in its order, and what else is in it."""

    good: tuple[Candidate, ...]
    bad: tuple[BadRow, ...]
    others: int
    """Lines whose `type` says that they are no candidate, such as summaries."""


def read_candidates(path: Path) -> Scored:
    """Read JSON lines, plain or .gz; of lines about the same candidate of a date the first counts.

    Raises:
        DatasetError: the file cannot be read, is empty, or no line of it is a candidate.
    """
    found = list(_rows(path))
    good = tuple(row for row in found if isinstance(row, Candidate))
    bad = tuple(row for row in found if isinstance(row, BadRow))
    if not found:
        raise DatasetError("the file of candidates is empty", where=str(path), hint=_PROSE)
    if not good:
        first = f"; line {bad[0].line}: {bad[0].reason}" if bad else ""
        raise DatasetError(
            f"none of its {len(found)} lines is a candidate{first}", where=str(path), hint=_PROSE
        )
    return Scored(good=good, bad=bad, others=sum(row is None for row in found))


def _rows(path: Path) -> Iterator[Candidate | BadRow | None]:
    seen: dict[tuple[str, ...], int] = {}
    with opened(path) as file:
        for line in lines_of(file):
            if not line.raw.strip():
                continue
            found = object_in(line)
            if isinstance(found, dict) and found.get("type", _RECORD) != _RECORD:
                yield None
                continue
            made = found if isinstance(found, str) else _candidate(found)
            if isinstance(made, Candidate):
                key = (made.model, made.series, made.date, made.candidate)
                first = seen.setdefault(key, line.number)
                if first == line.number:
                    yield made
                    continue
                made = f"this candidate of this date is there twice, first in line {first}"
            yield bad_row(path.name, line.number, made, line.raw)


def _candidate(values: Mapping[str, object]) -> Candidate | str:
    known = {key: value for key, value in values.items() if key in _KEYS}
    if isinstance(known.get("date"), int):
        known["date"] = str(known["date"])
    try:
        made = Candidate.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
    if not isfinite(made.mean_logprob):
        return f"mean_logprob is no number but {made.mean_logprob}"
    if not all(encodable(text) for text in known.values() if isinstance(text, str)):
        return "it holds half a character (a lone surrogate)"
    return made


_KEYS: Final = frozenset(
    {"model", "model_tag", "series", "date", "candidate", "text", "candidate_text", "mean_logprob"}
)
