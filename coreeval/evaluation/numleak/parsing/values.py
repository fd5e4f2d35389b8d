"""Read a value from an answer, by rules that docs/numleak_parsing.md states."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.asides import without_asides
from coreeval.evaluation.numleak.parsing.candidates import (
    RANKS,
    SAID,
    TOLD,
    Asked,
    Candidate,
    Candidates,
    candidates_of,
)
from coreeval.evaluation.numleak.parsing.dates import dates_in, struck
from coreeval.evaluation.numleak.parsing.others import without_others
from coreeval.evaluation.numleak.parsing.owners import owners_of
from coreeval.evaluation.numleak.parsing.quantities import Quantity, quantities
from coreeval.evaluation.numleak.parsing.text import plain
from coreeval.evaluation.numleak.parsing.wording import cut_off, declines, sends_away, stands
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Status
from coreeval.evaluation.numleak.series.units import Unit
from coreeval.schema import AnswerKind

_BRACKETED: Final = re.compile(r"\(\s*[\d.,]+\s*[^\s\d)]{0,3}\)\W*$")
NO_NUMBER: Final = ("no number that is said to be the value", "no words")
"""Why there is no value where an answer has no number that could be one."""


class ReadValue(NamedTuple):
    """What an answer to a question for a value says."""

    value: float | None
    """In the unit of the series; None unless `status` is parsed."""
    status: Status
    note: str
    """Why there is no value, or by which rule there is one."""


def read_value(
    response: str | None,
    *,
    unit: Unit,
    period: Period,
    name: str = "",
    signed: bool = True,
    kind: AnswerKind = "answered",
) -> ReadValue:
    """Read the one value that an answer gives for a period (rules: docs/numleak_parsing.md).

    Args:
        response: What was said.
        unit: Of the series.
        period: The date asked about.
        name: All that the series is called, comma by comma; where it is empty, numbers of other
            series are not known as such.
        signed: Whether values can be below zero: `- 4.4` may then be a dash or a minus.
        kind: How the answer ended.
    """
    if kind == "refused":
        return ReadValue(None, "refused", "declined by its provider")
    text = stands(plain(response or ""))
    if not text and response and response.strip():
        return ReadValue(None, "truncated", "thoughts and no answer")
    text = without_asides(without_others(text, name) if name else text)
    dates = dates_in(text, period)
    shown = struck(text, dates)
    found = quantities(shown, unit)
    if kind == "truncated" and found and found[-1].end >= len(shown.rstrip(" .,")):
        found.pop()
    if _BRACKETED.match(text):
        return ReadValue(None, "unparsed", "a number in brackets, which may stand for a minus")
    owned = list(zip(found, owners_of(text, dates, found), strict=True))
    candidates = candidates_of(shown, owned, Asked(unit, period, name, signed))
    cut = kind == "truncated" or cut_off(text)
    rivals = [one.value for one in found if one.rival and one.measure == "own"]
    chosen = _chosen(candidates.told, rivals, least=SAID if declines(text) else TOLD if cut else 0)
    if chosen is not None:
        return ReadValue(chosen.value, "parsed", RANKS[chosen.rank])
    return _silent(text, found, candidates, cut=cut)


def _chosen(said: list[Candidate], rivals: Sequence[float], *, least: int) -> Candidate | None:
    """Return the plainest candidate: the last of those called an estimate, else the only one."""
    rank = max((one.rank for one in said), default=-1)
    best = [one for one in said if one.rank == rank]
    if rank < least or (rank < SAID and len({*rivals, *(one.value for one in best)}) > 1):
        return None
    return best[-1] if best else None


def _silent(text: str, found: list[Quantity], candidates: Candidates, *, cut: bool) -> ReadValue:
    """Say why an answer gives no value."""
    if declines(text) or (sends_away(text) and not candidates.told):
        return ReadValue(None, "refused", "declined in words")
    if cut:
        return ReadValue(None, "truncated", "cut off before it says a value")
    if len({one.value for one in candidates.told}) > 1 or any(one.rival for one in found):
        return ReadValue(None, "unparsed", "several different numbers")
    if any(quantity.measure == "other" for quantity in found):
        return ReadValue(None, "unparsed", "a number in another unit")
    if candidates.held_back:
        return ReadValue(None, "unparsed", "a number that is not plainly the value")
    return ReadValue(None, "unparsed", NO_NUMBER[0 if text else 1])
