"""Numbers and quantities in texts, in digits or words, and the numbers that support them.

A quantity supports the same quantity in another unit.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import filterfalse
from math import prod

from coreeval.agents.text.vocabulary import vocabulary_of
from coreeval.agents.text.words import join_numbers, keep_results, normalise
from coreeval.languages import ENGLISH
from coreeval.tools.units import read_unit_at

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
"""Each unit's dimension, and its size in the base unit of that dimension."""
_LETTER = re.compile(r"[ -]?([cf])(?!\w)", re.IGNORECASE)
_MEASURES = {"c": "celsius", "f": "fahrenheit", "pound or pound sterling": "pound",
             "ounce or fluid ounce": "ounce", **{name: name for name in _FACTORS}}  # fmt: skip
"""The unit for each name or letter."""
MOST_ROUNDING = Decimal("0.05")
"""The largest share by which rounding may change a converted figure (own choice: 80 km as 50
miles)."""


@dataclass(frozen=True)
class Quantity:
    """A measured amount."""

    amount: Decimal
    unit: str
    written: str
    """The digits as written; they show how far the amount was rounded."""


def find_unit(text: str, position: int) -> str:
    """Return the name of the unit at a position in a text; empty if there is none."""
    letter = _LETTER.match(text, position)
    name = letter[1].lower() if letter else read_unit_at(text, position)[0]
    return _MEASURES.get(name.partition(" per ")[0], "")


def is_convertible(one: Quantity, other: Quantity) -> bool:
    """Return whether two quantities measure the same kind of thing in different units."""
    return is_convertible_unit(one.unit, other.unit)


def is_convertible_unit(one: str, other: str) -> bool:
    """Return whether two units are different units of the same kind of thing."""
    return one != other and _FACTORS[one][0] == _FACTORS[other][0]


def is_conversion(source: Quantity, stated: Quantity) -> bool:
    """Return whether a stated quantity equals the source's in another unit, rounded as written."""
    if not is_convertible(source, stated):
        return False
    slack = min(_half_last_place(stated), abs(stated.amount) * MOST_ROUNDING)
    return any(abs(value - stated.amount) <= slack for value in _convert(source, stated.unit))


def _convert(source: Quantity, unit: str) -> list[Decimal]:
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


_ONES = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
"""Number words without zero: `zero queue` is not a count, but means none."""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = """
third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
SMALL_NUMBERS = (
    {word: value for value, word in enumerate(_ONES.split(), start=1)}
    | {word: value * 10 for value, word in enumerate(_TENS.split(), start=2)}
    | {word: value for value, word in enumerate(_ORDINALS.split(), start=3)}
    | {"dozen": 12, "thirtieth": 30, "fortieth": 40, "fiftieth": 50, "hundredth": 100}
)
SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "mln": 10**6, "mn": 10**6,
    "billion": 10**9, "bln": 10**9, "bn": 10**9, "trillion": 10**12, "trn": 10**12, "tn": 10**12,
}  # fmt: skip
_SCALE_LETTERS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_SCALE = "|".join(SCALES)
_DIGITS = re.compile(
    rf"(?<![\w@#])(?P<value>(?P<year>[12]\d{{3}}(?= (?:{_SCALE})s\b))"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+:\d\d|\d+(?:\.\d+)?"
    r"|(?<![\w.])\.\d+)(?P<suffix>[^\W\d_]*)"
    rf"(?(year)|(?:[ -](?P<scale>{_SCALE})s?\b)?)",
    re.IGNORECASE,
)
"""A year may precede a vague number: `in 1999 hundreds of whales` is not 199,900."""
_WORD_FIGURES = re.compile(
    r"(?<![\w.,$£€#@])(?:2|4)(?= (?:the|a|an|my|your|ur|u|you|me|us|him|her|them|it|this|that|be|do"
    r"|go|get|see|have|all|everyone|everybody|some|those|these|what|make|say|know|our|his|their)\b)"
    r"|(?<=\bthe )two(?= (?:is|are|was|were|has|have|had|will|would|can|could|may|might|plan|want"
    r"|agreed)\b)|(?<=\b(?:in|of) )two(?= minds\b)"
    r"|(?<=\byou )two\b|(?<=\bus )two\b|(?<=\bwe )two\b|(?<=\bsame )two\b",
    re.IGNORECASE,
)
"""`2` and `4` for `to` and `for`, and a `two` that does not count (`in two minds`)."""
_SMALL = "|".join(sorted(SMALL_NUMBERS, key=len, reverse=True))
_SPELLED = re.compile(
    rf"(?<![\w@#])(?:{_SMALL}|{_SCALE})(?:(?:[ -]| and )(?:{_SMALL}|{_SCALE}))*\b", re.IGNORECASE
)
NUMBER_WORDS = frozenset({*SMALL_NUMBERS, *SCALES})
LONGEST_NUMBER = 200
"""The most characters of a number whose value is computed; a longer one supports only its own text
(own choice: news has none, and the value of a long text of only `million` cannot be stored)."""


@dataclass(frozen=True)
class Number:
    """A number in a text."""

    text: str
    """The number as written."""
    readings: frozenset[str]
    """Possible meanings: `5m` is five or five million."""
    quantity: Quantity | None = None
    """The number with its unit; None if no unit follows."""


@keep_results
def find_numbers(text: str, language: str = ENGLISH) -> Sequence[Number]:
    """Return the numbers of a text; `one` and `first` count as words, since they mostly are."""
    if language != ENGLISH:
        return tuple(_find_local_numbers(text, language))
    plain = _WORD_FIGURES.sub("_", normalise(text))
    rest = _DIGITS.sub(lambda found: " " * len(found.group()), plain)
    spelled = (_read_words(found.group()) for found in _SPELLED.finditer(rest))
    digits = (_read_digits(found, plain) for found in _DIGITS.finditer(plain))
    return (*digits, *(number for number in spelled if number is not None))


def _read_digits(found: re.Match[str], text: str) -> Number:
    value, suffix = found["value"], found["suffix"].casefold()
    if ":" in value:
        return Number(found.group(), frozenset({value}))
    if len(value) > LONGEST_NUMBER:
        return Number(found.group(), frozenset({found.group().casefold()}))
    amount = Decimal(value.replace(",", ""))
    end = found.end("scale") if found["scale"] else found.end("value")
    scaled = amount * SCALES.get((found["scale"] or suffix).casefold(), 1)
    readings = {_format_value(scaled)}
    if suffix in _SCALE_LETTERS and not found["scale"]:
        readings.add(_format_value(amount * _SCALE_LETTERS[suffix]))
    unit = find_unit(text, end)
    quantity = Quantity(scaled, unit, value) if unit else None
    return Number(found.group().strip(), frozenset(readings), quantity)


def _read_words(phrase: str) -> Number | None:
    parts = [part for part in re.split(r"[ -]", phrase.casefold()) if part != "and"]
    if parts[0] == "one" and parts[-1] in _ORDINALS.split():
        parts = parts[1:]
    if parts in (["one"], ["dozen"]) or not any(part in SMALL_NUMBERS for part in parts):
        return None
    if len(phrase) > LONGEST_NUMBER:
        return Number(phrase, frozenset({phrase.casefold()}))
    value = _add_up(
        [SMALL_NUMBERS.get(part, 0) for part in parts], [SCALES.get(p, 0) for p in parts]
    )
    return Number(phrase, frozenset({_format_value(Decimal(value))}))


def _add_up(small: Sequence[int], scales: Sequence[int]) -> int:
    """Return the value of number words, each a small number or a scale, and 0 in the other list."""
    total = current = 0
    for value, scale in zip(small, scales, strict=True):
        if value:
            current += value
        elif scale == 100:
            current *= 100
        elif current:
            total, current = total + current * scale, 0
        else:  # mil millones: a thousand times a million
            total *= scale
    return total + current


def _format_value(value: Decimal) -> str:
    return f"{value.normalize():f}"


def find_source_numbers(texts: Sequence[str], language: str = ENGLISH) -> list[Number]:
    """Return the numbers of news texts, including those split by the source."""
    found = [number for text in texts for number in find_numbers(text, language)]
    if language != ENGLISH:
        return found
    return found + [
        number for text in texts for number in find_numbers(join_numbers(normalise(text)))
    ]


def find_missing_numbers(
    text: str, supported: Sequence[Number], language: str = ENGLISH
) -> list[Number]:
    """Return the numbers of a text that no supported number equals or converts to."""
    stated = find_numbers(text, language)
    return list(filterfalse(_NumberIndex(supported).supports, stated)) if stated else []


class _NumberIndex:
    """The numbers of a source, by unit and by possible value, since a document has thousands."""

    def __init__(self, numbers: Iterable[Number]) -> None:
        self._readings = defaultdict[str, set[str]](set)
        self._quantities = defaultdict[str, dict[Quantity, None]](dict)
        for number in numbers:
            unit = number.quantity.unit if number.quantity else ""
            self._readings[unit] |= number.readings
            if number.quantity:
                self._quantities[unit].setdefault(number.quantity)

    def supports(self, stated: Number) -> bool:
        """Return whether a number supports a stated one; 80 km is 50 miles, not 80 miles."""
        own = stated.quantity
        for unit, readings in self._readings.items():
            if own and unit and is_convertible_unit(unit, own.unit):
                if any(is_conversion(one, own) for one in self._quantities[unit]):
                    return True
            elif not readings.isdisjoint(stated.readings):
                return True
        return False


# -- other languages ------------------------------------------------------------------------------

_LOCAL_VALUE = r"(?<![\w@#])(?:\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?|\d+:\d\d|\d+(?:[.,]\d+)?)"
_MARK = re.compile(r"[.,]")
_DECIMAL_COMMA = frozenset({"de"})
"""The languages in which a comma is always the decimal mark; Spanish differs by country."""


def _find_local_numbers(text: str, language: str) -> list[Number]:
    """Return the numbers of a text that is not in English, without units.

    Number words are found if those of the language are known.
    """
    plain = normalise(text)
    digits, spelled = _local_patterns(language)
    rest = digits.sub(lambda found: " " * len(found.group()), plain)
    in_digits = [_read_local_digits(found, language) for found in digits.finditer(plain)]
    in_words = (_read_local_words(found.group(), language) for found in spelled.finditer(rest))
    return in_digits + [number for number in in_words if number is not None]


@cache
def _local_patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of numbers in digits and in words."""
    words = vocabulary_of(language)
    scale = "|".join(words.scales) or r"(?!)"
    any_word = "|".join(sorted({*words.numbers, *words.scales}, key=len, reverse=True)) or r"(?!)"
    digits = rf"(?P<value>{_LOCAL_VALUE})(?P<scales>(?:[ -](?:{scale})\b)*)"
    spelled = rf"(?<![\w@#])(?:{any_word})(?:[ -](?:{any_word}))*\b"
    return re.compile(digits, re.IGNORECASE), re.compile(spelled, re.IGNORECASE)


def _read_local_digits(found: re.Match[str], language: str) -> Number:
    value, scales = found["value"], vocabulary_of(language).scales
    if ":" in value:
        return Number(value, frozenset({value}))
    if len(found.group()) > LONGEST_NUMBER:
        return Number(found.group(), frozenset({found.group().casefold()}))
    factor = prod(scales[word] for word in re.split(r"[ -]", found["scales"].casefold()) if word)
    readings = (_format_value(amount * factor) for amount in _local_amounts(value, language))
    return Number(found.group(), frozenset(readings))


def _local_amounts(value: str, language: str) -> list[Decimal]:
    """Return a number's possible values: `1.500` is 1500 in German, or also 1.5 in Spanish."""
    marks = _MARK.findall(value)
    if len(set(marks)) == 2 and marks.count(marks[-1]) == 1:
        return [Decimal(value.replace(marks[0], "").replace(marks[-1], "."))]
    whole = Decimal(_MARK.sub("", value))
    if len(marks) != 1:
        return [whole]
    part = Decimal(value.replace(",", "."))
    if len(value.partition(marks[0])[2]) != 3:
        return [part]
    if language in _DECIMAL_COMMA:
        return [part if marks == [","] else whole]
    return [whole, part]


def _read_local_words(phrase: str, language: str) -> Number | None:
    words, parts = vocabulary_of(language), re.split(r"[ -]", phrase.casefold())
    whole = words.numbers.get(phrase.casefold())
    if whole is not None:
        return Number(phrase, frozenset({str(whole)}))
    if not any(part in words.numbers for part in parts):
        return None
    if len(phrase) > LONGEST_NUMBER:
        return Number(phrase, frozenset({phrase.casefold()}))
    value = _add_up(
        [words.numbers.get(p, 0) for p in parts], [words.scales.get(p, 0) for p in parts]
    )
    return Number(phrase, frozenset({_format_value(Decimal(value))}))
