"""A file of scored candidates: every line is a candidate, a line of another kind, or a bad one."""

from math import isfinite
from pathlib import Path
from typing import Annotated, Final

from pydantic import AliasChoices, Field

from coreeval.evaluation.benchmarks.files import (
    BadRecord,
    Object,
    Records,
    read_records,
    validate_record,
)
from coreeval.evaluation.benchmarks.rows import is_encodable
from coreeval.schema import Value

TRUE: Final = "true"
"""What the candidate with the published value is called."""
_RECORD: Final = "record"
"""The `type` of a line with a candidate, where lines have one."""
_KEYS: Final = frozenset(
    {"model", "model_tag", "series", "date", "candidate", "text", "candidate_text", "mean_logprob"}
)
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

    @property
    def key(self) -> tuple[str, ...]:
        """What it is about: there is one candidate of a kind for each date."""
        return (self.model, self.series, self.date, self.candidate)


def read_candidates(path: Path) -> Records[Candidate]:
    """Read JSON lines, plain or .gz; of lines about the same candidate of a date the first counts.

    Lines whose `type` says that they are no candidate, such as summaries, are passed over.

    Raises:
        DatasetError: the file cannot be read, is empty, or no line of it is a candidate.
    """
    found = read_records(path, _candidate, key=lambda one: one.key, twice=_twice)
    return found.require_records(path, what="a candidate", whats="candidates", prose=_PROSE)


def _twice(_: Candidate, first: int) -> str:
    return f"this candidate of this date is there twice, first in line {first}"


def _candidate(values: Object) -> Candidate | BadRecord | None:
    if values.get("type", _RECORD) != _RECORD:
        return None
    known = {key: value for key, value in values.items() if key in _KEYS}
    if isinstance(known.get("date"), int):
        known["date"] = str(known["date"])
    made = validate_record(Candidate, known)
    if isinstance(made, BadRecord):
        return made
    if not isfinite(made.mean_logprob):
        return BadRecord(f"mean_logprob is no number but {made.mean_logprob}")
    if not all(is_encodable(text) for text in known.values() if isinstance(text, str)):
        return BadRecord("it holds half a character (a lone surrogate)")
    return made
