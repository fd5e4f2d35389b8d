"""Numbers, shares, money, intervals, p-values, times and sizes as text for people.

A value that is None or not finite is shown as a word, which the caller may choose. Reports, the
viewer and estimates differ in units and in the decimals of small amounts: each function says where
it is used.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Final, Protocol, TypeGuard

Form = str | Callable[[float], str]
"""A Python format, such as `.3f` or `+.1%`, or a function that writes a number."""
NOT_DEFINED: Final = "n/a"
NOT_MEASURED: Final = "not measured"
NO_PRICE: Final = "unknown price"
_NARROW: Final = "\N{NARROW NO-BREAK SPACE}"


class Estimated(Protocol):
    """A number with the ends of its interval; each is None or nan if it is undefined."""

    @property
    def estimate(self) -> float | None:
        """Return the number."""

    @property
    def ci_low(self) -> float | None:
        """Return the lower end of the interval."""

    @property
    def ci_high(self) -> float | None:
        """Return the upper end of the interval."""


class Counted(Estimated, Protocol):
    """A number with its interval and sample size."""

    @property
    def n(self) -> int:
        """Return the size of the sample."""


def is_defined(value: float | None) -> TypeGuard[float]:
    """Return whether there is a finite number."""
    return value is not None and isfinite(value)


def format_number(value: float | None, form: Form = ".3f", undefined: str = NOT_DEFINED) -> str:
    """Format a number, or return the word for one that is undefined."""
    if not is_defined(value):
        return undefined
    return form(value) if callable(form) else format(value, form)


def format_count(value: float | None, undefined: str = NOT_DEFINED) -> str:
    """Format a count for a page, with narrow no-break spaces between thousands."""
    return format_number(value, ",.0f", undefined).replace(",", _NARROW)


def format_measure(value: float | None) -> str:
    """Format a number in the unit of a series: three decimals, or one if it has many digits."""
    form = ".3f" if is_defined(value) and abs(value) < 100 else ",.1f"
    return format_number(value, form, "undefined")


def format_name(name: str) -> str:
    """Return an internal name as words: `rejected_facts` becomes "rejected facts"."""
    return name.replace("_", " ")


def plural(number: float, name: str, names: str = "") -> str:
    """Return the singular or plural that matches a number."""
    return name if number == 1 else names or f"{name}s"


def format_quantity(number: float, name: str, names: str = "") -> str:
    """Format a count with its unit: `1 sample`, `1,200 samples`, `0 entries`."""
    return f"{number:,.0f} {plural(number, name, names)}"


# -- shares ---------------------------------------------------------------------------------------


def format_percent(share: float | None, undefined: str = NOT_DEFINED) -> str:
    """Format a share as a percentage: `12.5 %`."""
    return format_number(share, lambda value: f"{100 * value:.1f} %", undefined)


def format_points(difference: float | None) -> str:
    """Format a difference of two shares in percentage points, with its sign and without a unit."""
    return format_number(difference, lambda value: f"{100 * value:+.1f}")


# -- intervals and p-values -----------------------------------------------------------------------


def format_interval(
    low: float | None, high: float | None, form: Form, *, joint: str = " to ", undefined: str = ""
) -> str:
    """Format the ends of an interval, or return the word for one that is undefined."""
    if not (is_defined(low) and is_defined(high)):
        return undefined
    return f"{format_number(low, form)}{joint}{format_number(high, form)}"


def format_estimate(
    found: Estimated | None,
    form: str,
    *,
    ends: str = "",
    n: int | None = None,
    undefined: str = NOT_MEASURED,
) -> str:
    """Format a number with its interval and sample size, if known: `0.52 (0.41 to 0.63, n = 9)`.

    Args:
        found: The number.
        form: The form of the number.
        ends: The form of the ends of its interval, if it is another one.
        n: The size of the sample, if it is to be shown.
        undefined: The word for a number that is undefined.
    """
    if found is None or not is_defined(found.estimate):
        return undefined
    interval = format_interval(found.ci_low, found.ci_high, ends or form)
    known = ", ".join(filter(None, (interval, "" if n is None else f"n = {n}")))
    return format_number(found.estimate, form) + (f" ({known})" if known else "")


def format_share(found: Counted) -> str:
    """Format a share with its interval and its sample: `12.5% (3.1% to 33.3%, n = 24)`."""
    return format_estimate(found, ".1%", n=found.n)


def format_counted(found: Counted, form: str, undefined: str) -> str:
    """Format a number with its interval, or a remark that it has none, and its n."""
    if not is_defined(found.estimate):
        return f"{undefined} (n {found.n})"
    interval = "no interval"
    if has_interval(found):
        interval = format_interval(found.ci_low, found.ci_high, form)
    return f"{format_number(found.estimate, form)} ({interval}, n {found.n})"


def has_interval(found: Estimated) -> bool:
    """Return whether a number has an interval of more than zero width."""
    low, high = found.ci_low, found.ci_high
    return is_defined(low) and high is not None and low < high


def format_p_value(value: float | None, digits: int = 3) -> str:
    """Format a p-value; one too small for its decimals is shown as `< 0.001`, not 0."""
    least = 10.0**-digits
    if is_defined(value) and value < least:
        return f"< {least:.{digits}f}"
    return format_number(value, f".{digits}f")


# -- money ----------------------------------------------------------------------------------------


def format_usd(value: float | None) -> str:
    """Format US dollars for a report or a page: `1,012.35 USD`, and four decimals below 1."""
    form = ",.2f" if value == 0 or (value or 0) >= 1 else ".4f"
    return format_number(value, lambda usd: f"{usd:{form}} USD", NO_PRICE)


def format_expected_usd(value: float) -> str:
    """Format US dollars of an estimate, without a unit: two decimals, or four below 0.1."""
    return f"{value:,.2f}" if value >= 0.1 or not value else f"{value:.4f}"


def format_price(usd: float | None, digits: int) -> str:
    """Format a cost: `0.0123 USD`, `unknown price`."""
    return format_number(usd, lambda value: f"{value:.{digits}f} USD", NO_PRICE)


def describe_price(usd: float | None) -> str:
    """Format a cost to follow the name of an item: `for 1.23 USD`, `at an unknown price`."""
    return f"for {format_usd(usd)}" if is_defined(usd) else f"at an {NO_PRICE}"


# -- times, rates, sizes --------------------------------------------------------------------------

_SPANS: Final = ((86400, "days", "d"), (3600, "hours", "h"), (60, "minutes", "min"))
"""Seconds in a unit, its name, and its symbol."""


def format_span(seconds: float) -> str:
    """Format a time span in whole units, the largest that fits at least twice: `3 hours`."""
    return _format_time(seconds, lambda number, name, _symbol: f"{number:.0f} {name}")


def format_expected_time(seconds: float) -> str:
    """Format the time of an estimate, with one decimal, in the same units: `3.2 h`."""
    return _format_time(seconds, lambda number, _name, symbol: f"{number:.1f} {symbol}")


def _format_time(seconds: float, written: Callable[[float, str, str], str]) -> str:
    for length, name, symbol in _SPANS:
        if seconds >= 2 * length:
            return written(seconds / length, name, symbol)
    return f"{seconds:.0f} s"


def format_duration(seconds: float | None, undefined: str = NOT_DEFINED) -> str:
    """Format the duration of a step or an answer, in milliseconds to hours."""
    if not is_defined(seconds):
        return undefined
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_rate(per_minute: float) -> str:
    """Format a rate with three digits, or whole from 100 on."""
    return f"{per_minute:.0f}" if per_minute >= 100 else f"{per_minute:.3g}"


def format_amount(number: float) -> str:
    """Format a large number briefly, such as a number of tokens: `9,999`, `12.3k`, `1.23M`."""
    if number >= 1e6:
        return f"{number / 1e6:,.2f}M"
    return f"{number / 1e3:.1f}k" if number >= 1e4 else f"{number:,.0f}"


def format_size(size: float) -> str:
    """Format a number of bytes in the largest unit that fits."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def list_first(items: Sequence[str], most: int) -> str:
    """Return the first items and the number of the others: `a, b and 3 more`."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
