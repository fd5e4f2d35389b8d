"""How numbers look on the page, and where their marks lie."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Json = Mapping[str, Any]
NOT_DEFINED: Final = "n/a"
MARGIN: Final = 2.0
"""Per cent of an axis that is kept free at each end, so that no mark is cut."""


def percent(share: float | None) -> str:
    """Return a share of one; what is not defined has no number."""
    return NOT_DEFINED if share is None else f"{100 * share:.1f} %"


def figure(value: float | None, sign: str = "") -> str:
    """Return a number with three decimals."""
    return NOT_DEFINED if value is None else f"{value:{sign}.3f}"


def points(difference: float | None) -> str:
    """Return a difference of two shares in percentage points."""
    return NOT_DEFINED if difference is None else f"{100 * difference:+.1f}"


def p_value(value: float | None) -> str:
    """Return a p-value; a smaller one than three decimals show is not 0."""
    return "< 0.001" if value is not None and value < 0.001 else figure(value)


def share_span(found: Json) -> str:
    """Return the ends of an interval of shares; one sample has none."""
    return _span(found, percent)


def points_span(found: Json) -> str:
    """Return the ends of an interval of a difference, in percentage points."""
    return _span(found, points)


def figure_span(found: Json, sign: str = "") -> str:
    """Return the ends of an interval; one that is not defined has none."""
    return _span(found, lambda end: figure(end, sign))


def _span(found: Json, form: Callable[[float | None], str]) -> str:
    if found["ci_low"] is None:
        return ""
    return f"{form(found['ci_low'])} … {form(found['ci_high'])}"


def number(value: int) -> str:
    """Return a count with its thousands set apart."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def usd(value: float | None) -> str:
    """Return US dollars; small sums with as many digits as say something."""
    if value is None:
        return "unknown (no price known)"
    return f"{value:.2f} USD" if value == 0 or value >= 1 else f"{value:.4f} USD"


def words(name: str) -> str:
    """Return a name of ours as words."""
    return name.replace("_", " ")


def place(value: float, axis: tuple[float, float]) -> str:
    """Return where a value lies on an axis, for SVG; what lies beyond it lies at its end."""
    low, high = axis
    share = (min(max(value, low), high) - low) / ((high - low) or 1)
    return f"{MARGIN + (100 - 2 * MARGIN) * share:.2f}%"


def extent(value: float, axis: tuple[float, float]) -> str:
    """Return how long a value is on an axis, for SVG."""
    low, high = axis
    return f"{(100 - 2 * MARGIN) * value / ((high - low) or 1):.2f}%"


def axis_round(values: Sequence[float | None], least: float) -> tuple[float, float]:
    """Return an axis from -x to x that has room for all that is defined, and for `least`."""
    furthest = max([least, *(abs(value) for value in values if value is not None)])
    steps = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1, 2, 5, 10)
    step = next((each for each in steps if furthest <= each), furthest)
    return -step, step
