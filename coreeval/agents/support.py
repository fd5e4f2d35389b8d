"""Whether news carries what is said: words, numbers and quotations against evidence."""

import re
from collections.abc import Iterable, Sequence

from coreeval.agents.lexicon import ABBREVIATIONS, CONDUCT_ALIKE, DEMONYMS, MONTH_SHORT, SYMBOLS
from coreeval.agents.numbers import NUMBER_WORDS, missing_numbers, source_numbers
from coreeval.agents.words import content_words, holds, join_numbers, normalise, stem, words
from coreeval.schema import Evidence


def evidence_text(item: Evidence) -> str:
    """Return all that a piece of evidence says."""
    return normalise(f"{item.title} . {item.snippet}")


def quoted_in(quote: str, text: str) -> bool:
    """Tell whether a quotation with something to say is a substring of a news text.

    Case, kinds of quotes and numbers that the source has split make no difference.
    """
    if not content_words(quote):
        return False
    repaired = join_numbers(normalise(quote))
    return holds(text, quote) or holds(join_numbers(normalise(text)), repaired)


_ALIKE = {stem(one): frozenset(map(stem, others)) for one, others in CONDUCT_ALIKE.items()}


class Support:
    """What some news texts carry."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._numbers = source_numbers(texts)
        self._stems = frozenset(stem(word) for text in texts for word in readings(text))

    @classmethod
    def of(cls, items: Sequence[Evidence], *, and_also: str = "") -> "Support":
        """Return what some pieces of evidence carry together, and a translation of one of them."""
        return cls([*(evidence_text(item) for item in items), and_also])

    def missing_words(self, text: str, *, allowed: frozenset[str] = frozenset()) -> list[str]:
        """Return the content words of a text that no evidence has, numbers apart."""
        return [
            word
            for word in dict.fromkeys(content_words(text))
            if word not in allowed and not _numeric(word) and stem(word) not in self._stems
        ]

    def missing_conduct(self, said: Iterable[str]) -> list[str]:
        """Return the words of conduct that no evidence has, not even in other words."""
        return [
            word
            for word in self.missing_words(" ".join(said))
            if not _ALIKE.get(stem(word), frozenset()) & self._stems
        ]

    def missing_numbers(self, text: str) -> list[str]:
        """Return the numbers of a text that no evidence states, in whatever unit."""
        return [number.text for number in missing_numbers(text, self._numbers)]


def readings(text: str) -> frozenset[str]:
    """Return the words of a text and those that its signs and short forms stand for.

    A long form supports its short form too, and a people its place.
    """
    lowered = text.casefold()
    signs = [name for sign, name in SYMBOLS.items() if sign in lowered]
    own = frozenset(words(" ".join([_CAMEL.sub(" ", text.replace("#", " ")), text, *signs])))
    written_out = (long for short, long in _FORMS.items() if short in own)
    shortened = (short for short, long in _FORMS.items() if own.issuperset(long.split()))
    return own.union(*(long.split() for long in written_out), shortened)


_FORMS = ABBREVIATIONS | DEMONYMS | MONTH_SHORT
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _numeric(word: str) -> bool:
    return word[0].isdigit() or word in NUMBER_WORDS
