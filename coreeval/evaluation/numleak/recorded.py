"""A file of recorded answers about series: every line is a reply or a bad line with its reason."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import ValidationError

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.lines import Line, lines_of
from coreeval.evaluation.benchmarks.rows import bad_row, encodable
from coreeval.evaluation.numleak.points import LARGEST
from coreeval.evaluation.numleak.replies import VARIANTS, Reply
from coreeval.schema import BadRow

_ENDING: Final = ".gz"
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


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The good lines of a file in its order, and the others."""

    good: tuple[Reply, ...]
    bad: tuple[BadRow, ...]


def read_replies(path: Path) -> Recorded:
    """Read JSON lines, plain or .gz; of lines that answer one question the first counts.

    Blank lines are none, and keys besides those of `Reply` are passed over.

    Raises:
        DatasetError: the file cannot be read, is empty, or no line of it is a reply.
    """
    found = list(_rows(path))
    good = tuple(row for row in found if isinstance(row, Reply))
    bad = tuple(row for row in found if isinstance(row, BadRow))
    if not found:
        raise DatasetError("the file of answers is empty", where=str(path), hint=_PROSE)
    if not good:
        first = bad[0]
        raise DatasetError(
            f"none of its {len(bad)} lines is an answer; line {first.line}: {first.reason}",
            where=str(path),
            hint=_PROSE,
        )
    return Recorded(good=good, bad=bad)


def _rows(path: Path) -> Iterator[Reply | BadRow]:
    seen: dict[tuple[object, ...], int] = {}
    with opened(path) as file:
        for line in lines_of(file):
            if not line.raw.strip():
                continue
            reply = _reply(line)
            if isinstance(reply, Reply):
                question = tuple(getattr(reply, key) for key in _QUESTION)
                first = seen.setdefault(question, line.number)
                if first == line.number:
                    yield reply
                    continue
                reply = f"the question is there twice, first in line {first}; tell draws apart by "
                reply += "`draw`, drawings of dates by `seed`"
            yield bad_row(path.name, line.number, reply, line.raw)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, packed or not; what goes wrong while it is read is told as well."""
    try:
        with path.open("rb") as file:
            packed = path.suffix.lower() == _ENDING
            yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"the file cannot be read: {error}", where=str(path)) from None


# -- one line -------------------------------------------------------------------------------------


def _reply(line: Line) -> Reply | str:
    """Return the reply in a line, or what is wrong with it."""
    values = object_in(line)
    return values if isinstance(values, str) else next(_defects(values), None) or _made(values)


def object_in(line: Line) -> dict[str, object] | str:
    """Return the JSON object in a line, or why there is none."""
    if not line.valid:
        return "the line is not UTF-8"
    try:
        values = json.loads(line.raw)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return values if isinstance(values, dict) else "JSON, but no object"


def _made(values: Mapping[str, object]) -> Reply | str:
    known = {key: value for key, value in values.items() if key in _KEYS}
    known |= {key: str(known[key]) for key in ("date", "other_date", "shown_date")
              if isinstance(known.get(key), int)}  # fmt: skip
    try:
        return Reply.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"


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
        if isinstance(text, str) and not encodable(text):
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
