"""The words and number formats of the languages that the checks know, by language.

The English word lists are in lexicon.py and numbers.py; the German and Spanish lists in german.py
and spanish.py are limited to those that the checks require. A language without words only gets
checks that need none: `language_checks` lists the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from coreeval.agents.text import german, spanish
from coreeval.agents.text.lexicon import (
    FUNCTION_WORDS,
    MONTHS,
    NOT_NAMES,
    PERSONAL_WORDS,
    REPORTING_WORDS,
    SYMBOLS,
    WEEKDAYS,
)
from coreeval.languages import ENGLISH

_NONE = frozenset[str]()


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words of one language that checks need, all in lower case."""

    function_words: frozenset[str] = _NONE
    """Words without checkable content."""
    personal_words: frozenset[str] = _NONE
    """Words of the anonymous speaker's own world, which need no support."""
    reporting_words: frozenset[str] = _NONE
    """Words that may introduce a quotation."""
    not_names: frozenset[str] = _NONE
    """Capitalised words that are not names."""
    first_person: frozenset[str] = _NONE
    """Words by which authors refer to themselves."""
    weekdays: frozenset[str] = _NONE
    months: frozenset[str] = _NONE
    endings: tuple[str, ...] = ()
    """Endings of inflected words, the longest first."""
    joins_words: bool = False
    """Whether compounds are written as one word, so that a part of a word counts as a word."""
    signs: Mapping[str, str] = field(default_factory=dict)
    """Signs, with the words for them."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The values of number words; `one` is excluded, because it is mostly an article."""
    scales: Mapping[str, int] = field(default_factory=dict)
    """The values of words such as million, which multiply the number before them."""


ENGLISH_WORDS = Vocabulary(
    function_words=FUNCTION_WORDS,
    personal_words=PERSONAL_WORDS,
    reporting_words=REPORTING_WORDS,
    not_names=NOT_NAMES,
    first_person=frozenset(
        ("i", "i'm", "i'd", "i've", "i'll", "im", "ive", "me", "my", "myself", "we",
         "we're", "we've", "us", "our")
    ),
    weekdays=WEEKDAYS,
    months=MONTHS,
    signs=SYMBOLS,
)  # fmt: skip
VOCABULARIES: Mapping[str, Vocabulary] = MappingProxyType(
    {
        ENGLISH: ENGLISH_WORDS,
        "de": Vocabulary(
            function_words=german.FUNCTION_WORDS,
            personal_words=german.PERSONAL_WORDS,
            reporting_words=german.REPORTING_WORDS,
            not_names=german.NOT_NAMES,
            first_person=german.FIRST_PERSON,
            weekdays=german.WEEKDAYS,
            months=german.MONTHS,
            endings=german.ENDINGS,
            joins_words=True,
            signs=german.SIGNS,
            numbers=german.NUMBERS,
            scales=german.SCALES,
        ),
        "es": Vocabulary(
            function_words=spanish.FUNCTION_WORDS,
            personal_words=spanish.PERSONAL_WORDS,
            reporting_words=spanish.REPORTING_WORDS,
            not_names=spanish.NOT_NAMES,
            first_person=spanish.FIRST_PERSON,
            weekdays=spanish.WEEKDAYS,
            months=spanish.MONTHS,
            endings=spanish.ENDINGS,
            signs=spanish.SIGNS,
            numbers=spanish.NUMBERS,
            scales=spanish.SCALES,
        ),
    }
)
"""The languages whose words are known."""
_UNKNOWN = Vocabulary()


def vocabulary_of(language: str) -> Vocabulary:
    """Return the words of a language; a vocabulary without words if they are not known."""
    return VOCABULARIES.get(language, _UNKNOWN)


FEWEST_WORDS = 4
"""The fewest words from which a language can be recognised (own choice)."""


@cache
def _telling_words(language: str) -> frozenset[str]:
    """Return the function words of a language that no other known language has."""
    others = (one.function_words for code, one in VOCABULARIES.items() if code != language)
    return vocabulary_of(language).function_words.difference(*others)


def count_telling_words(words: list[str], language: str) -> int:
    """Return the number of some words that only this one of the known languages has."""
    return sum(word in _telling_words(language) for word in words)


def recognise_language(words: list[str]) -> str | None:
    """Return the known language that most of some words indicate; None if no language leads."""
    counts = {code: count_telling_words(words, code) for code in VOCABULARIES}
    best = max(counts.values())
    leading = [code for code, count in counts.items() if count == best]
    return leading[0] if best and len(leading) == 1 else None
