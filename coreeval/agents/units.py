"""Quantities with units: whether one is the other in another unit, by arithmetic."""

import re
from dataclasses import dataclass
from decimal import Decimal

_FACTORS: dict[str, tuple[str, str]] = {
    "kilometre": ("length", "1000"), "mile": ("length", "1609.344"), "metre": ("length", "1"),
    "foot": ("length", "0.3048"), "inch": ("length", "0.0254"), "centimetre": ("length", "0.01"),
    "yard": ("length", "0.9144"), "millimetre": ("length", "0.001"),
    "kilogram": ("mass", "1"), "pound": ("mass", "0.45359237"), "tonne": ("mass", "1000"),
    "ounce": ("mass", "0.028349523125"), "gram": ("mass", "0.001"),
    "hectare": ("area", "10000"), "acre": ("area", "4046.8564224"),
    "square kilometre": ("area", "1000000"), "square mile": ("area", "2589988.110336"),
    "litre": ("volume", "1"), "gallon": ("volume", "3.785411784"),
    "celsius": ("temperature", "1"), "fahrenheit": ("temperature", "1"),
}  # fmt: skip
"""Dimension and size in the dimension's base unit."""
_SPELLINGS: dict[str, str] = {
    "square kilometre": r"square kilomet(?:er|re)s?|sq\.? ?km|km2|km\u00b2",
    "square mile": r"square miles?|sq\.? ?mi",
    "kilometre": r"kilomet(?:er|re)s?|kms?",
    "centimetre": r"centimet(?:er|re)s?|cm",
    "millimetre": r"millimet(?:er|re)s?|mm",
    "mile": r"miles?",
    "metre": r"met(?:er|re)s?",
    "foot": r"feet|foot|ft",
    "inch": r"inch(?:es)?",
    "yard": r"yards?",
    "kilogram": r"kilograms?|kilos?|kgs?",
    "gram": r"grams?",
    "pound": r"pounds?|lbs?",
    "tonne": r"tonnes?",
    "ounce": r"ounces?|oz",
    "hectare": r"hectares?|ha",
    "acre": r"acres?",
    "litre": r"lit(?:er|re)s?",
    "gallon": r"gallons?",
    "celsius": r"(?:\u00b0|degrees?|deg) ?(?:celsius|centigrade|c)|celsius|c",
    "fahrenheit": r"(?:\u00b0|degrees?|deg) ?(?:fahrenheit|f)|fahrenheit|f",
}
_UNIT = re.compile(
    r"[ -]?(?:" + "|".join(f"({pattern})" for pattern in _SPELLINGS.values()) + r")(?!\w)",
    re.IGNORECASE,
)
_NAMES = tuple(_SPELLINGS)
MOST_OFF = Decimal("0.05")
"""Most that rounding may change a converted figure, as a share (own choice: 80 km as 50 miles)."""


@dataclass(frozen=True)
class Quantity:
    """An amount of something measured."""

    amount: Decimal
    unit: str
    written: str
    """Its digits as written; they tell how far it was rounded."""


def unit_after(text: str, position: int) -> str:
    """Return the name of the unit that stands at a position of a text, else an empty string."""
    found = _UNIT.match(text, position)
    return _NAMES[found.lastindex - 1] if found and found.lastindex else ""


def alike(one: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities measure the same kind of thing in different units."""
    return one.unit != other.unit and _FACTORS[one.unit][0] == _FACTORS[other.unit][0]


def converts(source: Quantity, stated: Quantity) -> bool:
    """Tell whether a stated quantity is a source's in another unit, rounded as it is written."""
    if not alike(source, stated):
        return False
    slack = min(_half_last_place(stated), abs(stated.amount) * MOST_OFF)
    return any(abs(value - stated.amount) <= slack for value in _converted(source, stated.unit))


def _converted(source: Quantity, unit: str) -> list[Decimal]:
    """Return the amount in another unit; a temperature may be a reading or a difference."""
    amount = source.amount
    if unit == "fahrenheit":
        return [amount * 9 / 5, amount * 9 / 5 + 32]
    if unit == "celsius":
        return [amount * 5 / 9, (amount - 32) * 5 / 9]
    return [amount * Decimal(_FACTORS[source.unit][1]) / Decimal(_FACTORS[unit][1])]


def _half_last_place(quantity: Quantity) -> Decimal:
    digits = Decimal(quantity.written.replace(",", ""))
    exponent = digits.as_tuple().exponent if "." in quantity.written else None
    if not isinstance(exponent, int):
        exponent = len(str(int(digits))) - len(str(int(digits)).rstrip("0") or "0")
    scale = quantity.amount / digits if digits else Decimal(1)
    return Decimal(5) * Decimal(10) ** (exponent - 1) * scale
