"""Whether the answers about a series without a stated unit are in percent."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.answer_text import normalise_text
from coreeval.evaluation.numleak.parsing.dates import remove_dates
from coreeval.evaluation.numleak.parsing.phrases import (
    drop_retracted,
    sentence_before,
    strike_asides,
)
from coreeval.evaluation.numleak.parsing.quantities import find_numbers, is_index_level
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import load_units

_ANY_PERIOD: Final = Period(date.min, "annual")
_NUMBER_ASIDE: Final = re.compile(
    r"^(?P<value>\W*\d[\d.,]* ?(?:%|percent)) \([-+~ ]*\d[\d.,]*\)", re.IGNORECASE
)
"""A number in brackets right after the number in percent that begins an answer: `-0.1% (230.7)`."""
_SPAN_OF_TIME: Final = re.compile(r"(?:day|week|month|quarter|year)s?$", re.IGNORECASE)


class _AnswerUnits(NamedTuple):
    """The units of the numbers in an answer."""

    percent: bool
    """Whether a number is in percent."""
    other: bool
    """Whether a number is in another unit, or is the level of an index or a price."""
    bare: frozenset[float]
    """The numbers without a unit."""


def are_in_percent(responses: Iterable[str | None]) -> bool:
    """Return whether more answers are in percent than are not (docs/numleak_parsing.md).

    An answer with numbers in percent and others is not: `7.2 million (4.5 percent)`. Numbers
    without a unit count neither way alone, nor as part of a name that most answers with numbers in
    percent repeat, such as S&P 500.
    """
    found = [_find_units(response) for response in responses if response]
    names = _find_names([one for one in found if one.percent])
    plain = sum(one.percent and not one.other and one.bare <= names for one in found)
    return plain > sum(one.percent or one.other for one in found) - plain


def _find_names(found: Sequence[_AnswerUnits]) -> frozenset[float]:
    """Return the numbers without a unit that most of these answers have."""
    counts = Counter(value for one in found for value in one.bare)
    return frozenset(value for value, count in counts.items() if 2 * count > len(found))


def _find_units(response: str) -> _AnswerUnits:
    text = strike_asides(drop_retracted(normalise_text(response)))
    text = _NUMBER_ASIDE.sub(r"\g<value>", remove_dates(text, _ANY_PERIOD))
    numbers = [one for one in find_numbers(text, load_units()["percent"]) if not one.aside]
    percents = {round(one.value, 6) for one in numbers if one.measure == "own"}
    bare = [
        one
        for one in numbers
        if one.measure == "bare" and round(100 * one.value, 6) not in percents
    ]
    other = any(
        one.measure == "other" and not _SPAN_OF_TIME.search(text[one.start : one.end])
        for one in numbers
    ) or any(is_index_level(sentence_before(text, one.start)) for one in bare)
    return _AnswerUnits(bool(percents), other, frozenset(one.value for one in bare))
