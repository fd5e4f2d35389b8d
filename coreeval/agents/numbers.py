"""Numbers as a text states them, in digits or words, and what supports them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from coreeval.agents.units import Quantity, alike, converts, unit_after
from coreeval.agents.words import join_numbers, normalise

_UNITS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
"""Without zero: `zero queue` counts nothing, it says no."""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = """
third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
SMALL = (
    {word: value for value, word in enumerate(_UNITS.split(), start=1)}
    | {word: value * 10 for value, word in enumerate(_TENS.split(), start=2)}
    | {word: value for value, word in enumerate(_ORDINALS.split(), start=3)}
    | {"dozen": 12, "thirtieth": 30, "fortieth": 40, "fiftieth": 50, "hundredth": 100}
)
SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "mln": 10**6, "mn": 10**6,
    "billion": 10**9, "bln": 10**9, "bn": 10**9, "trillion": 10**12, "trn": 10**12, "tn": 10**12,
}  # fmt: skip
_LETTERS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_SCALE = "|".join(SCALES)
_DIGITS = re.compile(
    r"(?<![\w@#])(?P<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+:\d\d|\d+(?:\.\d+)?"
    r"|(?<![\w.])\.\d+)(?P<suffix>[^\W\d_]*)"
    rf"(?:[ -](?P<scale>{_SCALE})s?\b)?",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"(?<![\w.,$£€#@])(?:2|4)(?= (?:the|a|an|my|your|ur|u|you|me|us|him|her|them|it|this|that|be|do"
    r"|go|get|see|have|all|everyone|everybody|some|those|these|what|make|say|know|our|his|their)\b)"
    r"|(?<=\bthe )two(?= (?:are|were|have|had|will|would|can|could|may|might|plan|want|agreed)\b)"
    r"|(?<=\byou )two\b|(?<=\bus )two\b|(?<=\bwe )two\b|(?<=\bsame )two\b",
    re.IGNORECASE,
)
"""`2` and `4` that stand for `to` and `for`, and a `two` that counts nothing new."""
_SMALL = "|".join(sorted(SMALL, key=len, reverse=True))
_SPELLED = re.compile(
    rf"(?<![\w@#])(?:{_SMALL}|{_SCALE})(?:(?:[ -]| and )(?:{_SMALL}|{_SCALE}))*\b", re.IGNORECASE
)
NUMBER_WORDS = frozenset({*SMALL, *SCALES})


@dataclass(frozen=True)
class Number:
    """A number in a text."""

    text: str
    """As written."""
    readings: frozenset[str]
    """What it can mean: `5m` is five or five million."""
    quantity: Quantity | None = None
    """The number with its unit, where one follows."""


def numbers(text: str) -> list[Number]:
    """Return the numbers of a text; `one` and `first` are read as words, being mostly that."""
    plain = _SPOKEN.sub("_", normalise(text))
    rest = _DIGITS.sub(lambda found: " " * len(found.group()), plain)
    spelled = (_spelled(found.group()) for found in _SPELLED.finditer(rest))
    return [_written(found, plain) for found in _DIGITS.finditer(plain)] + [
        number for number in spelled if number is not None
    ]


def _written(found: re.Match[str], text: str) -> Number:
    value, suffix = found["value"], found["suffix"].casefold()
    if ":" in value:
        return Number(found.group(), frozenset({value}))
    amount = Decimal(value.replace(",", ""))
    end = found.end("scale") if found["scale"] else found.end("value")
    scaled = amount * SCALES.get((found["scale"] or suffix).casefold(), 1)
    readings = {_canonical(scaled)}
    if suffix in _LETTERS and not found["scale"]:
        readings.add(_canonical(amount * _LETTERS[suffix]))
    unit = unit_after(text, end)
    quantity = Quantity(scaled, unit, value) if unit else None
    return Number(found.group().strip(), frozenset(readings), quantity)


def _spelled(phrase: str) -> Number | None:
    parts = [part for part in re.split(r"[ -]", phrase.casefold()) if part != "and"]
    if parts[0] == "one" and parts[-1] in _ORDINALS.split():
        parts = parts[1:]
    if parts in (["one"], ["dozen"]) or not any(part in SMALL for part in parts):
        return None
    total = current = 0
    for part in parts:
        if part in SMALL:
            current += SMALL[part]
        elif SCALES[part] == 100:
            current *= 100
        else:
            total, current = total + current * SCALES[part], 0
    return Number(phrase, frozenset({_canonical(Decimal(total + current))}))


def _canonical(value: Decimal) -> str:
    return f"{value.normalize():f}"


def source_numbers(texts: Sequence[str]) -> list[Number]:
    """Return the numbers of news texts, those that the source has split joined as well."""
    found = [number for text in texts for number in numbers(text)]
    return found + [number for text in texts for number in numbers(join_numbers(normalise(text)))]


def missing_numbers(text: str, supported: Sequence[Number]) -> list[Number]:
    """Return the numbers of a text that no supported number equals or converts to."""
    return [
        number
        for number in numbers(text)
        if not any(_supports(source, number) for source in supported)
    ]


def _supports(source: Number, stated: Number) -> bool:
    """Tell whether one number is the other; 80 km is 50 miles and not 80 miles."""
    if source.quantity and stated.quantity and alike(source.quantity, stated.quantity):
        return converts(source.quantity, stated.quantity)
    return bool(source.readings & stated.readings)
