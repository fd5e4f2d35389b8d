"""The units that texts name beside their numbers: measures, rates of them, currencies and times."""

import re
from collections.abc import Mapping
from typing import Final

MEASURES: Final[dict[str, str]] = {
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
    "celsius": r"(?:\u00b0|degrees?|deg) ?(?:celsius|centigrade|c)|celsius",
    "fahrenheit": r"(?:\u00b0|degrees?|deg) ?(?:fahrenheit|f)|fahrenheit",
}
"""The spellings of each unit of length, mass, area, volume and temperature, as patterns."""
_TIMES: Final[Mapping[str, str]] = {
    "second": r"seconds?",
    "minute": r"minutes?",
    "hour": r"hours?",
    "day": r"days?",
    "week": r"weeks?",
    "month": r"months?",
    "year": r"years?",
}
_SHORT_TIMES: Final = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour",
                       "d": "day"}  # fmt: skip
_MONEY: Final[Mapping[str, str]] = {
    "dollar": r"(?:us|[ac]|hk)?\$|(?:us )?dollars?|usd",
    "euro": r"\u20ac|euros?|eur",
    "pound": rf"\u00a3|gbp|{MEASURES['pound']}",
    "yen": r"\u00a5|yen|jpy",
}
"""Pounds may be money or a mass."""
_JOINED: Final[Mapping[str, str]] = {
    "kilometre per hour": r"kph|kmh|kmph",
    "mile per hour": r"mph",
}
_NAMES: Final = {**MEASURES, "tonne": r"tonnes?|tons?", **_JOINED, **_MONEY, **_TIMES}
_BY_GROUP: Final = tuple(_NAMES)
_RATE: Final = "|".join((*_TIMES.values(), *_SHORT_TIMES))
_UNIT: Final = re.compile(
    rf"(?:{'|'.join(f'({form})' for form in _NAMES.values())})"
    rf"(?:(?: ?/ ?| per | an? )(?P<rate>{_RATE})(?!\w)|(?![\w/]))",
    re.IGNORECASE,
)


_START: Final = re.compile(r"(?<![^\W\d_])(?=\S)")


def find_units(text: str) -> frozenset[str]:
    """Return the names of the units in a text, such as `kilometre per hour` of `km/h`."""
    found, end = list[re.Match[str]](), 0
    for start in _START.finditer(text):
        unit = _UNIT.match(text, start.start()) if start.start() >= end else None
        if unit:
            found.append(unit)
            end = unit.end()
    return frozenset(_name_unit(each) for each in found)


def read_unit_at(text: str, position: int) -> tuple[str, int]:
    """Return the name of the unit at a position in a text, and where it ends; "" if there is none.

    A space or a hyphen may stand before it.
    """
    start = position + (text[position : position + 1] in (" ", "-"))
    found = _UNIT.match(text, start)
    return (_name_unit(found), found.end()) if found else ("", position)


def _name_unit(found: re.Match[str]) -> str:
    name = next(name for name, said in zip(_BY_GROUP, found.groups(), strict=False) if said)
    rate = found["rate"]
    if not rate:
        return name
    return f"{name} per {_SHORT_TIMES.get(rate.lower(), rate.lower().removesuffix('s'))}"


def is_measured(unit: str) -> bool:
    """Return whether a unit is one of length, mass, area, volume or temperature, or their rate."""
    name = unit.partition(" per ")[0]
    return name in MEASURES and name != "pound"
