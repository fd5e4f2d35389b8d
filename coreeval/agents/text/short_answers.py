"""Compares short answers and options by wording and value, and finds them in texts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from math import isclose
from typing import Final

from coreeval.agents.text.numbers import SCALES, find_numbers
from coreeval.agents.text.vocabulary import vocabulary_of
from coreeval.agents.text.words import (
    has_span,
    normalise,
    split_words,
    stem,
)
from coreeval.languages import ENGLISH
from coreeval.tasks.kinds.base import UNSPACED
from coreeval.tools.units import find_factor, name_unit, read_unit_at, spell_units, units_agree

_SAME: Final = 0.6
"""The F1 of words from which an answer with more or fewer words counts as the same: it may add a
title or a first name (own choice)."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_LIGHT_SIGNS: Final = frozenset(".,;:!?\"'")
_TOKEN: Final = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[^\w\s]|_")
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LETTER: Final = re.compile(r"(?<=\s)[A-Z](?=\s|$)")
"""A letter with a meaning, as in `vitamin C`."""
_JOINS: Final = re.compile(r"\b(?:and|or|und|oder|y|o)\b|[/;&]", re.IGNORECASE)
_DENIES: Final = re.compile(r"\b(?:not|never|no longer|nicht|nie|nunca)\b|n't\b", re.IGNORECASE)
_FALLS: Final = re.compile(
    r"\b(?:decreas|declin|drop|fall|fell|loss|lost|lower|reduc|shrink|shrank|down|less|fewer)\w*",
    re.IGNORECASE,
)
_PERCENT: Final = re.compile(r"%|\bper ?cent\b|\bprozent\b|\bpor ciento\b", re.IGNORECASE)
_SCALES: Final = tuple(Decimal(10) ** power for power in (3, 6, 9, 12))


def is_same_wording(one: str, other: str, language: str = ENGLISH) -> bool:
    """Return whether two short texts have the same words, or are the same number.

    Articles, case and punctuation are ignored, but not the signs of numbers, units and formulas.
    """
    return _fold_wording(one, language) == _fold_wording(other, language)


def _fold_wording(text: str, language: str) -> Sequence[str]:
    plain = _HYPHEN.sub(" ", normalise(text)).casefold()
    value = read_value(text, language)
    if value is not None and value.is_alone:
        sign = "-" if value.is_negative else ""
        rest = f"%{value.rest}" if value.is_percent else value.rest
        return [sign, *sorted(f"{each.normalize():f}" for each in value.readings), rest.casefold()]
    tokens = _TOKEN.findall(_THOUSANDS.sub("", plain) if language == ENGLISH else plain)
    told = [one for one in tokens if one not in _LIGHT_SIGNS and one not in _ARTICLES]
    return told or tokens


def is_same_answer(gold: str, said: str, language: str = ENGLISH) -> bool:
    """Return whether an answer in words is the gold, possibly with words added or omitted.

    The answer must have all numbers of the gold. Neither may have a word instead of one of the
    other's.
    """
    if is_same_wording(gold, said, language):
        return True
    if _JOINS.search(said) and not _JOINS.search(gold):
        return False
    if bool(_DENIES.search(said)) != bool(_DENIES.search(gold)):
        return False
    one, other = _list_parts(gold, language), _list_parts(said, language)
    if not one or not other or not (one <= other or other <= one):
        return False
    numbers = {part for part in one if any(map(str.isdigit, part))}
    return numbers <= other and 2 * len(one & other) >= _SAME * (len(one) + len(other))


def _list_parts(text: str, language: str) -> set[str]:
    """Return the compared parts of an answer: the stems of its words, or its letters."""
    if UNSPACED.search(text):
        return set(UNSPACED.findall(text)) | set(re.findall(r"\d+", text))
    words, plain = split_words(text), _THOUSANDS.sub("", normalise(text))
    light = vocabulary_of(language).function_words
    stems = {stem(word, language) for word in words if word not in light} or set(words)
    exact = {*re.findall(r"\d+", plain), *_LETTER.findall(plain)}
    return {part for part in stems if not part[0].isdigit()} | exact


def has_answer(text: str, answer: str) -> bool:
    """Return whether a text contains an answer, as whole words if its script has spaces."""
    if UNSPACED.search(answer):
        return normalise(answer).casefold() in normalise(text).casefold()
    return has_span(text, answer)


# -- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StatedValue:
    """The one number that a short answer states."""

    readings: frozenset[Decimal]
    """Its possible values, without its sign."""
    is_negative: bool
    is_percent: bool
    is_scaled: bool
    """Whether it includes a word such as million."""
    half_place: Decimal
    """Half a unit of its last digit, which is the largest rounding error."""
    rest: str
    """The text beside the number, such as a unit, without a percent sign."""

    @property
    def is_alone(self) -> bool:
        """Return whether the only text beside the number is a unit of one word."""
        return len(self.rest.split()) <= 1

    def times(self, scale: int) -> "StatedValue":
        """Return the value with its possible values multiplied."""
        return replace(self, readings=frozenset(one * scale for one in self.readings))


def read_value(text: str, language: str = ENGLISH) -> StatedValue | None:
    """Return the number of a short answer; None if it has none, or several."""
    found = find_numbers(text, language)
    if len(found) != 1:
        return None
    try:
        readings = frozenset(map(Decimal, found[0].readings))
    except InvalidOperation:  # a time of day, or a number too long to parse
        return None
    plain = normalise(text)
    before, _, after = plain.partition(found[0].text)
    written = found[0].text.partition(".")[2] if language == ENGLISH else ""
    places = len(re.match(r"\d*", written).group())  # type: ignore[union-attr]
    return StatedValue(
        readings=readings,
        is_negative=_is_negative(before, after),
        is_percent=_PERCENT.search(plain) is not None,
        is_scaled=any(map(str.isdigit, found[0].text)) and any(map(str.isalpha, found[0].text)),
        half_place=Decimal(5).scaleb(-places - 1),
        rest=" ".join(_PERCENT.sub(" ", f"{before.rstrip(' -+(')} {after.strip(' .)')}").split()),
    )


def is_other_unit(rest: str, *units: str) -> bool:
    """Return whether the text beside a number begins with a unit that is not among those given.

    Empty units do not count; if all are empty, every unit is accepted.
    """
    named = read_unit_at(rest, 0)[0]
    due = [(name_unit(unit), read_scale(unit)) for unit in units if unit.strip()]
    return bool(named and due) and not any(
        units_agree(named, unit) or (scale and isclose(find_factor(named, unit), scale))
        for unit, scale in due
        if unit
    )


def read_scale(unit: str) -> int:
    """Return the scale in a unit, such as 1,000,000 for `$ million`; 0 if it has none."""
    words = re.findall(r"[^\W\d_]+", unit.casefold())
    return next((SCALES[word] for each in words if (word := each.removesuffix("s")) in SCALES), 0)


def _is_negative(before: str, after: str) -> bool:
    sign = before.rstrip(" $\u20ac\u00a3")
    minus = sign.endswith("-") and not sign[:-1][-1:].isalnum()
    in_brackets = sign.endswith("(") and after.lstrip(" %").startswith(")")
    return minus or in_brackets or bool(re.search(r"\bminus ?$", before, re.IGNORECASE))


def is_same_value(
    gold: str, said: str, *, tolerance: str = "", unit: str = "", language: str = ENGLISH
) -> bool:
    """Return whether a number is the gold, within a tolerance such as `0.5` or `1%`.

    If one of them is a percentage, a bare number may be the percentage or its ratio. A fall may be
    a negative number. If the unit of the gold names a scale, such as `billion dollars`, bare
    numbers have that scale; otherwise one of them may omit the scale.
    """
    gold, said = (spell_units(each, name_unit(unit)) for each in (gold, said))
    due, given = read_value(gold, language), read_value(said, language)
    if due is None or given is None or is_other_unit(given.rest, unit, due.rest):
        return False
    scale = read_scale(unit)
    if scale and not due.is_scaled:
        due = due.times(scale)
        tolerance = tolerance if tolerance.endswith("%") else str(Decimal(tolerance or 0) * scale)
    if scale and not given.is_scaled:
        given = replace(given, readings=given.readings | given.times(scale).readings)
    if scale:
        due, given = replace(due, is_scaled=True), replace(given, is_scaled=True)
    if due.is_negative != given.is_negative and not _FALLS.search(f"{gold} {said}"):
        return False
    return any(
        abs(one - other) <= read_margin(tolerance, one)
        for one in due.readings
        for other in _list_meanings(given, due)
    )


def read_margin(tolerance: str, value: Decimal) -> Decimal:
    """Return the largest difference of a number from a value; almost 0 without a tolerance."""
    if tolerance.endswith("%"):
        return abs(value) * Decimal(tolerance[:-1]) / 100
    return Decimal(tolerance or "0") + abs(value) * _EPSILON


_EPSILON: Final = Decimal("1e-9")


def _list_meanings(given: StatedValue, due: StatedValue) -> set[Decimal]:
    found = set(given.readings)
    if given.is_percent and not due.is_percent:
        found |= {value / 100 for value in given.readings}
    elif due.is_percent and not given.is_percent:
        found |= {value * 100 for value in given.readings}
    if given.is_scaled == due.is_scaled:
        return found
    factors = [1 / scale if given.is_scaled else scale for scale in _SCALES]
    return found | {value * factor for value in found for factor in factors}
