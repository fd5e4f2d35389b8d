"""A series without a definition: what its recorded answers and their truth imply."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from statistics import pstdev
from typing import Final

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series, SeriesDefinition, Unit
from coreeval.evaluation.numleak.series.definition import Source

SHARE: Final = 0.05
"""Tolerance in standard deviations of the truth: 25 basis points are about a twentieth of that of
the US market excess return (5.3 percentage points), on which NumLeak chose them."""
_PLAIN: Final = Unit(name="the unit of the file", points_name="units of the file")
_SHAPES: Final[dict[Frequency, re.Pattern[str]]] = {
    "annual": re.compile(r"\d{4}"),
    "quarterly": re.compile(r"\d{4}[- ]?[Qq][1-4]"),
    "monthly": re.compile(r"\d{4}-?\d{2}(-?01)?"),
    "daily": re.compile(r"\d{4}-?\d{2}-?\d{2}"),
}
"""How dates are written; the first of every month stands for the month."""


def implied_series(
    name: str, replies: Sequence[Reply], *, file: str, definition: SeriesDefinition | None = None
) -> Series | None:
    """Return a series made of the truth in recorded answers; None where that is not enough.

    Args:
        name: Its id.
        replies: All answers about it.
        file: What they were read from.
        definition: Its own, where there is one; else what the truth implies.
    """
    frequency = definition.frequency if definition else _frequency([r.date for r in replies])
    if frequency is None or not (values := _published(replies, frequency)):
        return None
    if definition:
        return Series(definition=definition, values=values, origin=file)
    spread = pstdev(values.values())
    if spread <= 0:
        return None
    percent = any("%" in (reply.response or "") for reply in replies)
    implied = SeriesDefinition.model_validate(
        {
            "id": re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_") or "series",
            "name": name,
            "quantity": "value",
            "unit": "percent" if percent else _PLAIN,
            "sign": "signed" if min(values.values()) < 0 else "positive",
            "decimals": max(map(_decimals, values.values())),
            "frequency": frequency,
            "source": Source(path=file),
            "release_lag_days": 0,
            "tolerances": (float(f"{SHARE * spread:.2g}"),),
        }
    )
    note = (
        f"no definition of {name} is known: {frequency}, the truth is that of the file, and the "
        f"tolerance of {implied.tolerance:g} is a twentieth of its standard deviation; "
        "--series FILE.yaml defines it"
    )
    return Series(definition=implied, values=values, notes=(note,), origin=file)


def _frequency(texts: Sequence[str]) -> Frequency | None:
    """Return the frequency that most texts are dates of, as they are written; None for none."""
    there = {
        frequency: sum(1 for text in texts if shape.fullmatch(text.strip()))
        for frequency, shape in _SHAPES.items()
    }
    best = max(there, key=lambda frequency: there[frequency])
    return best if there[best] else None


def _published(replies: Iterable[Reply], frequency: Frequency) -> dict[Period, float]:
    """Return the truth by date, in order of time; what is no date is none here either."""
    found = dict[Period, float]()
    for reply in replies:
        with suppress(ValueError):
            if reply.truth is not None and reply.other_date is None:
                found[Period.parse(reply.date, frequency)] = reply.truth
    return dict(sorted(found.items()))


def _decimals(value: float) -> int:
    """Return how many digits a number has after the point, at most eight."""
    return len(f"{value:.8f}".rstrip("0").partition(".")[2])
