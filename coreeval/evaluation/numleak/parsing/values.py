"""Read a value from an answer, by rules that docs/numleak_parsing.md states."""

import re
from bisect import bisect_left
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.dates import without_dates
from coreeval.evaluation.numleak.parsing.quantities import Quantity, quantities
from coreeval.evaluation.numleak.parsing.text import plain
from coreeval.evaluation.numleak.parsing.wording import (
    cut_off,
    declines,
    endorsement,
    no_statement,
    sends_away,
    sentence_before,
    stands,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import LARGEST, Status
from coreeval.evaluation.numleak.series.units import Unit
from coreeval.schema import AnswerKind

_BEHIND_BARE: Final = re.compile(
    r"\W*$|[.,;:)!\"\n±]|\+/-| (?:in|for|as|during|or|\(|±)", re.IGNORECASE
)
_BEFORE_BARE: Final = re.compile(
    r"(?:^|[:=~]|\b(?:was|is|were|at|approximately|approx\.?|about|around|roughly|nearly|circa))"
    r"[\s(]*$",
    re.IGNORECASE,
)
_BRACKETED: Final = re.compile(r"\(\s*[\d.,]+\s*[^\s\d)]{0,3}\)\W*$")
_LABEL_WORDS: Final = 6
"""A line of its own says a value with at most so many words beside it."""
_LINE: Final = 200
"""Characters of such a line."""
NO_NUMBER: Final = ("no number that is said to be the value", "no words")
"""Why there is no value where an answer has no number that could be one."""
_RANKS: Final = ("a number in its unit", "a line of its own", "said to be it", "a point estimate")


class ReadValue(NamedTuple):
    """What an answer to a question for a value says."""

    value: float | None
    """In the unit of the series; None unless `status` is parsed."""
    status: Status
    note: str
    """Why there is no value, or by which rule there is one."""


class _Candidate(NamedTuple):
    """A number that may be the estimate, and how plainly it is said to be it."""

    value: float
    rank: int
    """Index of `_RANKS`."""


def read_value(
    response: str | None, *, unit: Unit, period: Period, kind: AnswerKind = "answered"
) -> ReadValue:
    """Read the one value that an answer gives for a period (rules: docs/numleak_parsing.md)."""
    if kind == "refused":
        return ReadValue(None, "refused", "declined by its provider")
    text = stands(plain(response or ""))
    shown = without_dates(text, period)
    found = quantities(shown, unit)
    if kind == "truncated" and found and found[-1].end >= len(shown.rstrip(" .,")):
        found.pop()
    if _BRACKETED.match(text):
        return ReadValue(None, "unparsed", "a number in brackets, which may stand for a minus")
    starts = [quantity.start for quantity in found]
    said = [one for one in (_candidate(each, shown, starts) for each in found) if one]
    cut = kind == "truncated" or cut_off(text)
    chosen = _chosen(said, least=2 if declines(text) else 1 if cut else 0)
    if chosen is not None:
        return ReadValue(chosen.value, "parsed", _RANKS[chosen.rank])
    return _silent(text, found, said, cut=cut)


def _silent(text: str, found: list[Quantity], said: list[_Candidate], *, cut: bool) -> ReadValue:
    """Say why an answer gives no value."""
    if declines(text) or (sends_away(text) and not said):
        return ReadValue(None, "refused", "declined in words")
    if cut:
        return ReadValue(None, "truncated", "cut off before it says a value")
    if len({one.value for one in said}) > 1:
        return ReadValue(None, "unparsed", "several different numbers")
    if any(quantity.measure == "other" for quantity in found):
        return ReadValue(None, "unparsed", "a number in another unit")
    return ReadValue(None, "unparsed", NO_NUMBER[0 if text else 1])


def _chosen(said: list[_Candidate], *, least: int) -> _Candidate | None:
    """Return the plainest candidate: the last of those called an estimate, else the only one."""
    rank = max((one.rank for one in said), default=-1)
    best = [one for one in said if one.rank == rank]
    if rank < least or (rank < 2 and len({one.value for one in best}) > 1):
        return None
    return best[-1] if best else None


def _candidate(quantity: Quantity, text: str, starts: list[int]) -> _Candidate | None:
    """Return a number as a candidate; None where it is no statement of a value in the unit."""
    before = sentence_before(text, quantity.start)
    if quantity.aside or quantity.measure == "other" or no_statement(before):
        return None
    if abs(quantity.value) > LARGEST:
        return None
    rank = _rank(quantity, before, text, starts)
    candidate = _Candidate(quantity.value, rank)
    return candidate if quantity.measure == "own" or _stated(quantity, rank, before, text) else None


def _stated(quantity: Quantity, rank: int, before: str, text: str) -> bool:
    """Whether a number without a unit stands where a value does: not the 500 of S&P 500."""
    if not _BEHIND_BARE.match(text, quantity.end):
        return False
    signed = text[quantity.start] in "+-"
    return rank >= 2 or (rank == 1 and (signed or _BEFORE_BARE.search(before) is not None))


def _rank(quantity: Quantity, before: str, text: str, starts: list[int]) -> int:
    if said := endorsement(before):
        return said + 1
    leads = not re.search(r"\w", text[: quantity.start])
    return 2 if leads else int(_alone(quantity, text, starts))


def _alone(quantity: Quantity, text: str, starts: list[int]) -> bool:
    """Whether a line has one number and little else."""
    start = text.rfind("\n", 0, quantity.start) + 1
    end = len(text) if (end := text.find("\n", quantity.end)) < 0 else end
    if end - start > _LINE or bisect_left(starts, end) - bisect_left(starts, start) > 1:
        return False
    rest = re.findall(r"\w+", text[start : quantity.start] + " " + text[quantity.end : end])
    return len(rest) <= _LABEL_WORDS
