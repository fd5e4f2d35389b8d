"""Grades a short answer against the accepted ones: as text, number, date, or yes and no.

Text is compared as the official evaluation of SQuAD 1.1 does (Rajpurkar et al. 2016): exact match
and token F1 of normalised texts, the maximum over the accepted answers. That form drops signs and
decimal points, so -5 becomes 5 and 1.5 becomes 15: numbers are compared as numbers, and have no F1.
A date is the same day in any notation.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from math import isclose
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.metrics.performance import compare_squad
from coreeval.evaluation.metrics.quantities import (
    LONGEST_TEXT,
    Quantity,
    find_quantities,
    normalise_numbers,
    read_quantity,
    read_unit,
    scale_like,
)
from coreeval.evaluation.numleak.parsing.answer_text import normalise_signs, write_iso_dates
from coreeval.evaluation.numleak.parsing.dates import WrittenDate, find_written_dates
from coreeval.tools.units import find_factor, name_unit, spell_units, units_agree

AnswerType = Literal["text", "number", "date", "yes_no"]


_KEPT_GOLDS: Final = 100
"""The most questions whose accepted numbers or dates stay read: there may be many of them."""


class Grade(NamedTuple):
    """The grade of an answer."""

    right: bool
    score: float
    """The score, from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """The accepted answers to a question."""

    answers: Sequence[str]
    """At least one answer; the first is the gold."""
    type: AnswerType = "text"
    unit: str = ""
    """The unit of a bare number, such as `%` or `$ million`."""
    tolerance: str = ""
    """The largest allowed error of a number: absolute in the gold's unit, or relative, such as
    `1%`."""
    question: str = ""
    """If the question asks about a fall, the size of a fall has no sign."""


def grade_short_answer(said: str, due: Accepted) -> Grade:
    """Return whether an answer is right, and its score.

    If a gold is not of its type (number, date, yes or no), it is compared as text.
    """
    due = replace(due, answers=tuple(due.answers))
    grade = _GRADERS.get(due.type, _grade_text)(said, due)
    return grade or _grade_text(said, due)


def _grade_text(said: str, due: Accepted) -> Grade:
    return Grade(*compare_squad(due.answers, said))


# -- numbers --------------------------------------------------------------------------------------

_SURE: Final = (re.compile(r"\banswer(?: is|:| =)", re.I), re.compile("[=~]"))
"""Text before the number that is the answer, the surest first."""
_RIVAL: Final = re.compile(r"\s*(?:or|to|and|[-/,;])\s*(?:maybe|perhaps|about)?\s*", re.I)
_AFTER_LEADING: Final = re.compile(r"\s*(?:$|[.;,(\n]|\b(?:because|since|as|from|in)\b)")
_BEFORE_LEADING: Final = re.compile(r"[\W_]*(?:(?:about|approximately|around|roughly)\s*)?[\W_]*")
_FALL_ASKED: Final = re.compile(
    r"\b(?:decreas|declin|drop|fall|fell|loss|lost|lower|reduc|shrink|shrank|down)\w*", re.I
)
_SCALE_ASKED: Final = re.compile(r"\bin (thousands|millions|billions)\b", re.I)
_EPSILON: Final = 1e-12
"""The largest relative difference of equal numbers in binary."""


def _grade_number(said: str, due: Accepted) -> Grade | None:
    targets = _targets(due)
    if not targets:
        return None
    unit = targets[0].quantity.unit
    found = _choose_quantity(spell_units(normalise_numbers(said), unit), unit)
    fall_asked = _FALL_ASKED.search(due.question) is not None
    right = found is not None and any(_is_same(found, one, fall_asked) for one in targets)
    return Grade(right, float(right))


class _Target(NamedTuple):
    """An accepted number, and the largest error of an answer, both with scale applied."""

    quantity: Quantity
    margin: float
    scale: float
    """The factor for a bare number from the unit of the item."""
    is_free: bool
    """Whether the item has no unit, so that 42% may be 42."""


@lru_cache(maxsize=_KEPT_GOLDS)
def _targets(due: Accepted) -> tuple[_Target, ...]:
    """Return the accepted numbers; the gold must be one. The answers are a tuple."""
    unit = _read_item_unit(due)
    found = [read_quantity(each, unit.unit) for each in due.answers]
    gold = found[0]
    if gold is None:
        return ()
    whole = scale_like(gold, unit)
    step = whole.scale or 1.0
    step *= 0.01 if whole.unit == "percent" else 1.0
    numbers = [whole, *(_complete(each, gold, unit) for each in found[1:] if each)]
    if rate := _find_rate(due.question, whole.unit):
        numbers += [replace(each, unit=rate) for each in numbers if each.unit == whole.unit]
    return tuple(
        _Target(each, _margin(each, due.tolerance, step), unit.scale, not whole.unit)
        for each in numbers
    )


def _complete(other: Quantity, gold: Quantity, unit: Quantity) -> Quantity:
    """Return another accepted number with its unit.

    With 14.5%, a bare 0.145 is a share; with 350 km, a bare 350 is in km.
    """
    if other.unit or not gold.unit:
        return scale_like(other, unit)
    return other if gold.unit == "percent" else replace(other, unit=gold.unit)


def _find_rate(question: str, unit: str) -> str:
    """Return the rate that a question asks for, based on a unit; "" if it asks for none.

    The unit of the item does not change: it is kilometres even if the question asks for kilometres
    an hour.
    """
    asked = name_unit(question) if unit else ""
    return asked if asked.startswith(f"{unit} per ") else ""


def _read_item_unit(due: Accepted) -> Quantity:
    """Return the unit of a bare number; the question may give its scale."""
    unit = read_unit(due.unit)
    asked = None if unit.scale else _SCALE_ASKED.search(due.question)
    return replace(unit, scale=read_unit(f"in {asked[1]}").scale) if asked else unit


def _margin(quantity: Quantity, tolerance: str, step: float) -> float:
    """Return the largest difference from an accepted number, with scale applied."""
    least = _EPSILON * abs(quantity.folded)
    if tolerance.endswith("%"):
        return abs(quantity.folded) * float(tolerance[:-1]) / 100 + least
    return (float(tolerance) * step if tolerance else 0.0) + least


def _is_same(said: Quantity, target: _Target, fall_asked: bool) -> bool:
    due, margin, scale, is_free = target
    if not units_agree(said.unit, due.unit):
        factor = find_factor(said.unit, due.unit)
        return bool(factor) and abs(said.folded * factor - due.folded) <= margin
    readings = {said.folded if said.unit or due.unit != "percent" else said.folded / 100}
    if is_free and said.unit == "percent":
        readings.add(said.value * (said.scale or 1.0))
    if not said.scale and scale:
        readings |= {each * scale for each in readings}
    if said.falls:
        signs = {1.0, -1.0} if fall_asked else {-1.0}
        readings = {sign * abs(each) for sign in signs for each in readings}
    return any(abs(each - due.folded) <= margin for each in readings)


def _choose_quantity(text: str, unit: str) -> Quantity | None:
    """Return the number that an answer gives as its result; None if several are possible.

    If there are several, only numbers in the requested unit count. If they differ, it is the one
    after "the answer is" or the last equals sign, or the one that the answer begins with, unless an
    alternative is next to it.
    """
    every = [one for one in find_quantities(text) if not one.is_aside] or find_quantities(text)
    found = [one for one in every if unit and one.unit and units_agree(one.unit, unit)] or every
    if not found:
        return None
    if all(isclose(one.folded, other.folded) for one, other in pairwise(found)):
        return found[0]
    at = next((place for place in map(partial(_behind_last, text), _SURE) if place), 0)
    behind = [place for place, one in enumerate(found) if one.start >= at - 1]
    if not behind or (not at and not _leads(text, found[0])):
        return None
    chosen, *rest = found[behind[0] :]
    rival = rest and _RIVAL.fullmatch(text, chosen.end, max(chosen.end, rest[0].start))
    return None if rival and not isclose(rest[0].folded, chosen.folded) else chosen


def _behind_last(text: str, mark: re.Pattern[str]) -> int:
    """Return the end of the last mark in a text; 0 if there is none."""
    return max((found.end() for found in mark.finditer(text)), default=0)


def _leads(text: str, first: Quantity) -> bool:
    """Return whether an answer begins with a number and a stop."""
    before = _BEFORE_LEADING.fullmatch(text, 0, first.start)
    return before is not None and _AFTER_LEADING.match(text, first.end) is not None


# -- dates ----------------------------------------------------------------------------------------

_DAY: Final = r"\d\d?"
_DOTTED: Final = re.compile(rf"\b({_DAY})\.({_DAY})\.(\d{{4}})\b")
_DASHED: Final = re.compile(rf"\b({_DAY})-({_DAY})-(\d{{4}})\b")
_WEEKDAY: Final = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b,?|\b(?:mon|tue|wed|thu|fri|sat|sun)\b\.?,?",
    re.I,
)
_ONES: Final = (
    *("first", "second", "third", "fourth", "fifth"),
    *("sixth", "seventh", "eighth", "ninth"),
)
_ORDINALS: Final = {
    **{word: day for day, word in enumerate(_ONES, 1)},
    **{"tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14},
    **{"fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19},
    **{"twentieth": 20, "thirtieth": 30, "thirty-first": 31},
    **{f"twenty-{word}": 20 + day for day, word in enumerate(_ONES, 1)},
}
_ORDINAL: Final = re.compile(
    rf"\b(?:the )?({'|'.join(sorted(_ORDINALS, key=len, reverse=True))})\b(?! quarter)"
    r"|\bthe (?=\d\d?(?:st|nd|rd|th)\b)",
    re.I,
)
_LONE_YEAR: Final = re.compile(r"(?<![\d.,/$-])(?:1[0-9]|20)\d\d(?![\d/-]|[.,]\d)")
_DAY_BEFORE: Final = re.compile(
    r"(?<![\w./-])([0-3]?\d)(?:st|nd|rd|th)? (?:and|or|to|until) (?:the )?\Z", re.I
)
_FILLER: Final = re.compile(r"[\W_]*(?:(?:on|in|the|of|at)\b[\W_]*)*", re.I)


def _grade_date(said: str, due: Accepted) -> Grade | None:
    accepted = _read_dates(tuple(due.answers))
    if not accepted:
        return None
    found = _find_dates(said)
    precise = [day for day in found if day.days] or found
    right = bool(precise) and any(
        all(_is_same_date(each, own) for each in precise) for own in accepted
    )
    text = _grade_text(said, due)
    return Grade(right or text.right, 1.0 if right else text.score)


@lru_cache(maxsize=_KEPT_GOLDS)
def _read_dates(texts: tuple[str, ...]) -> tuple[WrittenDate, ...]:
    """Return the accepted dates."""
    return tuple(day for each in texts if (day := _read_date(each)))


def _read_date(text: str) -> WrittenDate | None:
    """Return the date if the whole text is one; None if it is not, or has other words."""
    plain = _plain_date(text)
    found = _find_dates(text)
    if len(found) != 1:
        return None
    rest = plain[: found[0].start] + plain[found[0].end :]
    return found[0] if _FILLER.fullmatch(rest) else None


def _find_dates(text: str) -> list[WrittenDate]:
    plain = _plain_date(text)
    if found := find_written_dates(plain):
        return [*found, *_find_other_days(plain, found)]
    return [
        WrittenDate(*year.span(), int(year[0]), frozenset()) for year in _LONE_YEAR.finditer(plain)
    ]


def _find_other_days(plain: str, found: Sequence[WrittenDate]) -> Iterator[WrittenDate]:
    """Yield each day that shares its month with the next date: "between 25 and 26 June"."""
    for date in found:
        other = _DAY_BEFORE.search(plain, max(0, date.start - 20), date.start)
        if other:
            days = frozenset((month, int(other[1])) for month, _ in date.days)
            yield date._replace(days=days)


def _plain_date(text: str) -> str:
    """Return the end of a text with its dates in the supported spellings."""
    said = write_iso_dates(normalise_signs(text[-LONGEST_TEXT:]))
    said = _DOTTED.sub(r"\3-\2-\1", _WEEKDAY.sub(" ", said))
    said = _ORDINAL.sub(lambda found: str(_ORDINALS[found[1].lower()]) if found[1] else "", said)
    return " ".join(_DASHED.sub(r"\1/\2/\3", said).split())


def _is_same_date(said: WrittenDate, due: WrittenDate) -> bool:
    """Return whether a date has every part of an accepted one and does not contradict it."""
    if due.year is not None and said.year != due.year:
        return False
    if not due.days:
        return True
    return any(
        month == own_month and own in (day, None)
        for month, day in said.days
        for own_month, own in due.days
    )


# -- yes and no -----------------------------------------------------------------------------------

_YES_NO: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("yes", "yeah", "yep", "true", "correct"), True),
    **dict.fromkeys(("no", "nope", "false", "incorrect"), False),
}
_SAYS: Final = "|".join(_YES_NO)
_ECHO: Final = re.compile(
    r"[\W_]*(?:yes\s*(?:/|or)\s*no|no\s*(?:/|or)\s*yes|true\s*(?:/|or)\s*false)[*_)\s]{0,8}[?:]",
    re.I,
)
"""The start of an answer that repeats both choices: "Yes or no? No."."""
_NOT_THE_ANSWER: Final = (
    r"one|longer|more|less|answers?|mentions?|information|info|evidence|indication|details?|data|ideas?"
    r"|clue|doubt|problem|comment|context|opinion|way\s+(?:to|of)"
)
"""Words after `no` that make it no answer: "No mention of it."."""
_FIRST_WORD: Final = re.compile(rf"[\W_]*({_SAYS})\b(?!\s+(?:{_NOT_THE_ANSWER})\b)", re.I)
_NEXT_WORD: Final = re.compile(
    rf"[\W_]*(?:(?:and|or|but|then|well|wait|sorry|rather|actually)\b[\W_]*){{0,3}}({_SAYS})\b(?!\s+\w|\.\s*\d)",
    re.I,
)
"""The next words, if they answer again: "Yes and no", not "Yes, no other" or "Yes, No. 1"."""
_LAST_WORD: Final = re.compile(
    r"[:.,;!?\u2026\u2013\u2014-][\s\"'*_]{0,8}(?:actually\s{1,8})?(yes|no)[\W_]{0,20}\Z", re.I
)
_SAID_TO_BE: Final = re.compile(
    rf"\b(?:answer|conclusion)(?:\s+is|\s+would be|\s*[:=])+[\W_]*({_SAYS})\b", re.I
)
_CONCLUDES: Final = re.compile(
    rf"\b(?:so|therefore|thus|hence)\b[\s,:*_\"']{{0,8}}({_SAYS})[\W_]{{0,20}}\Z", re.I
)
"""The last words, if they draw the conclusion: "No evidence supports it, so no."."""
_LAST_LINE: Final = re.compile(rf"(?:^|\n)[\W_]{{0,20}}({_SAYS})[\W_]{{0,20}}\Z", re.I)


def _grade_yes_no(said: str, due: Accepted) -> Grade | None:
    gold = _YES_NO.get(due.answers[0].strip().casefold())
    if gold is None:
        return None
    text = said[-LONGEST_TEXT:]
    echo = _ECHO.match(text)
    text = text[echo.end() :] if echo else text
    first = _FIRST_WORD.match(text)
    found = [first or _LAST_LINE.search(text.strip()), _CONCLUDES.search(text)]
    if first:
        found += [_NEXT_WORD.match(text, first.end()), _LAST_WORD.search(text)]
    words = [*_SAID_TO_BE.findall(text), *(each[1] for each in found if each)]
    told = {_YES_NO[word.lower()] for word in words}
    right = told == {gold}
    return Grade(right, float(right))


_GRADERS: Final[Mapping[str, Callable[[str, Accepted], Grade | None]]] = {
    "number": _grade_number,
    "date": _grade_date,
    "yes_no": _grade_yes_no,
}
