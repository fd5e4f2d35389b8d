"""The numbers of a free text with their units: `($1.2 million)` is -1,200,000 of money.

A number may have a sign of several kinds, brackets for a minus, separators of thousands, a
currency, a scale (`bn`, `thousand`) or a unit after it, or be written in words. Two numbers are
compared after scale and per cent are applied to the value, and only if their units do not
contradict each other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from coreeval.evaluation.numleak.parsing.answer_text import (
    GROUPING,
    join_thousands,
    normalise_signs,
    write_digits,
    write_powers_of_ten,
)
from coreeval.evaluation.numleak.parsing.dates import find_written_dates
from coreeval.evaluation.numleak.parsing.quantities import DIGITS, plain_number, says_fall
from coreeval.tools.units import (
    CURRENCIES,
    SCALES,
    TIMES,
    name_unit,
    read_unit_at,
    spell_units,
    write_powers,
)

LONGEST_TEXT: Final = 8000
"""The number of characters read from the end of a text: some 2,000 tokens."""
MOST_QUANTITIES: Final = 250
"""The most numbers to read from one text; the last ones are read."""

_PERCENT: Final = ("%", "percent", "per cent", "pct", "percentage point", "percentage points", "pp")
_BASIS_POINTS: Final = ("bp", "bps", "basis point", "basis points")
_MONEY: Final = {
    form: name for name, forms in CURRENCIES.items() for form in forms.split(", ")
} | dict.fromkeys(("pound", "pounds"), "pound or pound sterling")
_TIMES: Final = {form: name for name, forms in TIMES.items() for form in forms.split(", ")}
_UNITS: Final = {
    **dict.fromkeys(_PERCENT, "percent"),
    **dict.fromkeys(_BASIS_POINTS, "percent"),
    **_MONEY,
    **_TIMES,
    **dict.fromkeys(("x", "times"), ""),
}
"""The dimension of each unit that can contradict another."""


def _any_of(forms: Iterator[str]) -> str:
    return "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))


_BEFORE: Final = _any_of(form for form in _MONEY if not form.endswith(("dollars", "s", "n")))
_BEHIND: Final = _any_of(iter(_UNITS))
_QUANTITY: Final = re.compile(
    rf"(?P<open>\([ ]?)?(?P<sign>(?:\b(?:minus|negative)[ ]|(?<![\w.)%])[-+][ ]?))?"
    rf"(?:(?<![^\W\d_])(?P<money>{_BEFORE})[ ]?(?P<second>[-+][ ]?|\([ ]?)?)?"
    rf"(?<![\w.])(?<!\d,)(?<![^\W\d_]-)(?P<digits>{DIGITS})"
    rf"(?P<close>[ ]?\))?"
    rf"(?:[ ]?-?(?P<scale>{_any_of(iter(SCALES))})(?![^\W_]))?"
    rf"(?:[ ]?-?(?P<unit>{_BEHIND})(?![^\W_]))?(?P<last>[ ]?\))?(?!\w)(?![.,]\d)",
    re.IGNORECASE,
)
_MARKUP: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf)\{([^{}\n]{0,200})\}"), r"\1"),
    (re.compile(r"\\(?=[%$,;!])|\\[()\[\]]|\$(?=[^$\n]{1,40}\\%\$?)|(?<=\\%)\$|\*\*|`|__"), ""),
    (re.compile(r"\{,\}"), ","),
    (GROUPING, "_"),
    (re.compile(r"[^\S\n]+"), " "),
)
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
_NO_UNITS: Final = ("in", "of", "the", "a")
_STRUCK: Final = "\u2020"
_IS_VALUE: Final = re.compile(r"(?:^|[:=]|\b(?:is|was|were|of|by|to|be|at|about|than))\s*$", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in a text."""

    value: float
    """The value as written, with its sign: neither scale nor per cent is applied to it."""
    unit: str = ""
    """`percent`, a currency, a span of time, a measure such as `kilometre per hour`, or empty; the
    unit of an item may be any word."""
    scale: float = 0.0
    """The factor of its scale; 0 if it names none."""
    falls: bool = False
    """Whether the words describe it as the size of a fall, and it has no sign."""
    is_aside: bool = False
    """Whether it is in brackets after other text."""
    is_year: bool = False
    step: float = 1.0
    """The unit of its last digit: 0.01 for 2.50."""
    start: int = 0
    end: int = 0

    @property
    def folded(self) -> float:
        """Return the value with its scale applied, and per cent as a share."""
        return self.value * (self.scale or 1.0) * (0.01 if self.unit == "percent" else 1.0)


def normalise_numbers(text: str, most: int | None = LONGEST_TEXT) -> str:
    """Return a text with plain signs and numbers in digits, without markup.

    Only the last `most` characters count, or all if `most` is None.
    """
    said = write_powers(text if most is None else text[-most:])
    for mark, left in _MARKUP:
        said = mark.sub(left, said)
    said = normalise_signs(write_powers_of_ten(said))
    return write_digits(join_thousands(said)).strip()


def find_quantities(text: str) -> list[Quantity]:
    """Return the numbers of a text from `normalise_numbers`, in order, without dates.

    Years and days of dates only count if there is no other number.
    """
    shown = text
    for date in find_written_dates(text):
        shown = shown[: date.start] + _STRUCK * (date.end - date.start) + shown[date.end :]
    numbers = [one for one in iter_quantities(shown) if not one.is_year]
    found = (numbers or list(iter_quantities(text)))[-MOST_QUANTITIES:]
    return [_mark_fall(one, text) for one in found]


def _mark_fall(quantity: Quantity, text: str) -> Quantity:
    signed = quantity.value < 0 or "+" in text[quantity.start : quantity.end]
    return replace(quantity, falls=not signed and says_fall(text, quantity.start, quantity.end))


def read_quantity(text: str, unit: str = "") -> Quantity | None:
    """Return the number if the whole text is one, such as an accepted answer; otherwise None.

    `unit` is the name of its probable unit.
    """
    said = spell_units(normalise_numbers(text).rstrip("."), unit)
    found = [one for one in iter_quantities(said) if one.end - one.start >= len(said.strip())]
    return found[0] if found else None


def read_unit(text: str) -> Quantity:
    """Return the quantity of 1 in a unit such as `%`, `$ million` or `thousand shares`."""
    words = re.sub(r"[()\[\],]", " ", text.casefold()).split()
    parts = [part for word in words for part in _split_money(word)]
    pairs = [" ".join(two) for two in pairwise(words)]
    is_share = any(_UNITS.get(part) == "percent" for part in (*pairs, *parts))
    unit, scale = "percent" if is_share else name_unit(text), 0.0
    for part in parts:
        own = name_unit(part)
        is_unit = bool(unit and own) and unit.startswith(own)
        if not scale and not is_unit and (len(part) > 1 or len(parts) > 1):
            scale = SCALES.get(part, 0.0)
    others = [part for part in parts if part not in SCALES and part not in _NO_UNITS]
    return Quantity(value=1.0, unit=unit or " ".join(others or parts[: not scale]), scale=scale)


def _split_money(word: str) -> tuple[str, ...]:
    """Return the currency sign and the scale in a word such as `$mn`, or the word."""
    sign = next((sign for sign in ("us$", "$", "\u20ac", "\u00a3") if word.startswith(sign)), "")
    return tuple(filter(None, (sign, word.removeprefix(sign))))


def iter_quantities(text: str) -> Iterator[Quantity]:
    """Yield all numbers of a normalised text in order; `1 million 200 thousand` is one."""
    last: Quantity | None = None
    for found in _QUANTITY.finditer(text):
        own = _make_quantity(found, text)
        if last and _continues(last, own, text):
            last = replace(last, value=last.value + own.folded / last.scale, end=own.end)
            continue
        if last:
            yield last
        last = own
    if last:
        yield last


def _continues(first: Quantity, second: Quantity, text: str) -> bool:
    """Return whether a number is the smaller part of the previous one."""
    between = text[first.end : second.start].strip() in ("", "and")
    return between and not first.unit and not second.unit and 0 < second.folded < first.scale


def _make_quantity(found: re.Match[str], text: str) -> Quantity:
    sign = f"{found['sign'] or ''}{found['second'] or ''}".lower()
    bracketed = _is_bracketed(found)
    is_value = not bracketed or bool(found["money"]) or _introduces(text, found.start())
    negative = any(word in sign for word in ("-", "minus", "negative")) or (bracketed and is_value)
    value = float(plain_number(found["digits"]))
    unit = _unit_of(found)
    if (found["unit"] or "").lower() in _BASIS_POINTS and not found["money"]:
        value /= 100
    measure, end = read_unit_at(text, found.start("unit") if found["unit"] else found.end())
    if found["money"] or (unit and not measure):
        measure, end = "", found.end()
    plain = not (sign or found["money"] or found["scale"] or found["unit"] or measure)
    return Quantity(
        value=-value if negative else value,
        unit=measure or unit,
        scale=SCALES.get((found["scale"] or "").lower(), 0.0),
        is_aside=bracketed and not is_value,
        step=_step_of(found["digits"]),
        is_year=plain and _YEAR.fullmatch(found["digits"]) is not None,
        start=found.start(),
        end=max(end, found.end()),
    )


def _introduces(text: str, at: int) -> bool:
    """Return whether words before a position say that the value follows."""
    return _IS_VALUE.search(text[max(0, at - 20) : at]) is not None


def _step_of(digits: str) -> float:
    """Return the unit of the last digit: 1 for a whole number."""
    _, point, decimals = digits.rpartition(".")
    return float(f"1e-{len(decimals)}") if point and decimals.isdecimal() else 1.0


def _is_bracketed(found: re.Match[str]) -> bool:
    opened = found["open"] or "(" in (found["second"] or "")
    return bool(opened and (found["close"] or found["last"]))


def _unit_of(found: re.Match[str]) -> str:
    behind, before = (_UNITS.get((found[name] or "").lower(), "") for name in ("unit", "money"))
    return before or behind


def scale_like(quantity: Quantity, unit: Quantity) -> Quantity:
    """Return a quantity with the unit and scale of another if it has none."""
    return replace(quantity, unit=quantity.unit or unit.unit, scale=quantity.scale or unit.scale)
