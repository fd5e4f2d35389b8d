"""A file of recorded answers about series: every line is a reply or a bad line with its reason."""

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Final

from coreeval.evaluation.benchmarks.files import (
    BadRecord,
    Object,
    Records,
    read_records,
    validate_record,
)
from coreeval.evaluation.benchmarks.rows import is_encodable
from coreeval.evaluation.numleak.points import LARGEST
from coreeval.evaluation.numleak.replies import VARIANTS, Reply

_KEYS: Final = frozenset(Reply.model_fields)
_QUESTION: Final = (
    "model", "series", "date", "variant", "other_date", "name", "phrasing", "stated", "defence",
    "suffix", "shown_date", "seed", "draw",
)  # fmt: skip
"""What makes two lines answers to one question."""
_ASKED_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "phrasing": ("phrasing",), "contradiction": ("stated",), "continuation": ("shown", "wanted"),
}  # fmt: skip
_PROSE: Final = "a line is {model, series, date, variant, response, truth?}"


def read_replies(path: Path) -> Records[Reply]:
    """Read JSON lines, plain or .gz; of lines that answer one question the first counts.

    Blank lines are none, and keys besides those of `Reply` are passed over.

    Raises:
        DatasetError: the file cannot be read, is empty, or no line of it is a reply.
    """
    found = read_records(path, _reply, key=_question, twice=_twice)
    return found.require_records(path, what="an answer", whats="answers", prose=_PROSE)


def _question(reply: Reply) -> tuple[object, ...]:
    return tuple(getattr(reply, key) for key in _QUESTION)


def _twice(_: Reply, first: int) -> str:
    return (
        f"the question is there twice, first in line {first}; tell draws apart by `draw`, drawings "
        "of dates by `seed`"
    )


# -- one line -------------------------------------------------------------------------------------


def _reply(values: Object) -> Reply | BadRecord:
    """Return the reply in a line, or what is wrong with it."""
    defect = next(_defects(values), None)
    return BadRecord(defect) if defect else _made(values)


def _made(values: Mapping[str, object]) -> Reply | BadRecord:
    known = {key: value for key, value in values.items() if key in _KEYS}
    known |= {key: str(known[key]) for key in ("date", "other_date", "shown_date")
              if isinstance(known.get(key), int)}  # fmt: skip
    return validate_record(Reply, known)


def _defects(values: Mapping[str, object]) -> Iterator[str]:
    """Yield what makes an object no reply, as far as the types of `Reply` do not tell it well."""
    for key in ("model", "series", "date", "response"):
        if key not in values:
            yield f"{key} is missing"
    yield from _variant_defects(values.get("variant", "value"), values)
    for key in ("truth", "stated"):
        value = values.get(key)
        if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
            yield f"{key} is no number but {value}"
        elif isinstance(value, int | float) and abs(value) > LARGEST:
            yield f"{key} is larger than {LARGEST:g}"
    for key in _KEYS & values.keys():
        text = values[key]
        if isinstance(text, str) and not is_encodable(text):
            yield f"{key} holds half a character (a lone surrogate)"


def _variant_defects(variant: object, values: Mapping[str, object]) -> Iterator[str]:
    if variant not in VARIANTS:
        yield f"there is no variant {variant!r}; there are {', '.join(VARIANTS)}"
    if variant in ("pair", "forced_choice") and values.get("other_date") is None:
        yield f"a {variant} compares two dates: other_date is missing"
    for key in _ASKED_WITH.get(str(variant), ()):
        if values.get(key) is None:
            yield f"a {variant} says what it was asked with: {key} is missing"
    if variant == "fictitious" and not values.get("name"):
        yield "a fictitious series has a name: name is missing"
    if variant == "defended" and not values.get("defence"):
        yield "a defended answer was given under a defence: defence is missing"
