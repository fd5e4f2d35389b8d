"""Year shift: every year of an item moves by the same number of years, the reasoning stays."""

from collections.abc import Sequence
from random import Random

from coreeval.evaluation.modifications.outcome import Modified, Unmodified
from coreeval.evaluation.modifications.years import FIRST, LAST, Year, years_in
from coreeval.schema import Item

SHIFTS = (-56, -28, 28, 56)
"""After 28 years the calendar repeats from 1901 to 2099: weekdays and leap days stay right."""
DECADE_SHIFTS = (-60, -40, -20, 20, 40, 60)
"""Where decades are named; leap days stay right, weekdays do not."""


def shift_years(item: Item, *, seed: int) -> Modified | Unmodified:
    """Move all years of the input by one shift, drawn by seed and item; the output stays.

    An item whose answer is one of its years is left alone: the right answer would move too.
    """
    years = [*years_in(item.input)]
    if not years:
        return Unmodified(id=item.id, reason="it names no year")
    if {year.value for year in years} & {year.value for year in years_in(item.output)}:
        return Unmodified(id=item.id, reason="its answer is one of its years")
    shifts = _possible(years)
    if not shifts:
        reason = f"its years reach too far to stay within {FIRST} and {LAST}"
        return Unmodified(id=item.id, reason=reason)
    shift = Random(f"{seed}:{item.id}").choice(shifts)
    twin = item.model_copy(update={"input": _shifted(item.input, years, shift)})
    changes = {str(value): str(value + shift) for value in sorted({year.value for year in years})}
    return Modified(item=twin, changes=changes)


def _possible(years: Sequence[Year]) -> list[int]:
    """Return the shifts after which every year is still written as one and read as the same."""
    shifts = DECADE_SHIFTS if any(year.decade for year in years) else SHIFTS
    return [shift for shift in shifts if all(_fits(year, year.value + shift) for year in years)]


def _fits(year: Year, moved: int) -> bool:
    return FIRST < moved <= LAST and (year.end - year.start == 4 or 1970 <= moved <= 2069)


def _shifted(text: str, years: Sequence[Year], shift: int) -> str:
    for year in reversed(years):
        digits = str(year.value + shift)[4 - (year.end - year.start) :]
        text = text[: year.start] + digits + text[year.end :]
    return text
