"""The share of a summary's sentences that its document supports, computed by rules.

A sentence counts as supported if the document contains all of its numbers and names, and at least
`LEAST_SHARE` of its content words. A sentence without a number, name or content word ("It is so.")
does not count. The meaning of a sentence is not checked: this finds invented content, not reversed
statements.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from coreeval.evaluation.metrics.quantities import Quantity, iter_quantities, normalise_numbers
from coreeval.evaluation.metrics.text import find_words
from coreeval.tools.gdelt.words import plain_words, search_keys

LEAST_SHARE: Final = 0.5
"""Own choice, measured on ECTSum (docs/scoring.md): of 2,515 sentences of its summaries, their own
transcript supports 80 % and another company's 14 %. A larger share loses more of the former."""
_BULLET: Final = re.compile(r"^[\s>#*\u2022\u25cf\u2013-]+|^\s*\(?\d{1,2}[.)]\s+")
_SENTENCE: Final = re.compile(
    r"[^.!?\u3002\uff01\uff1f]+(?:[.!?]+(?!\s|$)[^.!?\u3002\uff01\uff1f]*)*[.!?\u3002\uff01\uff1f]*"
)
_WORD: Final = re.compile(r"[^\W_][\w'\u2019-]*")
_SHORT: Final = 4
_MOST_CAPITALS: Final = 0.5
"""With a larger share of capitalised words, capitals do not mark names in a text."""


def support_share(document: str, summary: str) -> float:
    """Return the share of sentences that the document supports; 0 if no sentence counts."""
    sentences = split_sentences(summary)
    if not sentences:
        return 0.0
    facts, named = _read_document(document), _has_named(summary)
    verdicts = [facts.supports(each, named=named) for each in sentences]
    told = [verdict for verdict in verdicts if verdict is not None]
    return sum(told) / len(told) if told else 0.0


def split_sentences(text: str) -> list[str]:
    """Return the sentences and points of a text that contain a word."""
    found = list[str]()
    for line in text.splitlines():
        parts = _SENTENCE.findall(_BULLET.sub("", line))
        found += [part.strip() for part in parts if _WORD.search(part)]
    return found


@dataclass(frozen=True)
class _DocumentFacts:
    """The words, content words and numbers of a document."""

    keys: frozenset[str]
    words: frozenset[str]
    numbers: Sequence[float]
    """The numbers without signs, as written and with scale and per cent applied, sorted."""

    def supports(self, sentence: str, *, named: bool) -> bool | None:
        """Return whether the document supports a sentence; None if the sentence does not count."""
        text = normalise_numbers(sentence if named else sentence.lower(), None)
        numbers = list(iter_quantities(text))
        keys = _content_keys(_strike(text, numbers))
        if not (keys or numbers or (named and _names_in(sentence))):
            return None
        return (
            sum(key in self.keys for key in keys) >= LEAST_SHARE * len(keys)
            and all(self._has_number(one) for one in numbers)
            and not (named and any(name not in self.words for name in _names_in(sentence)))
        )

    def _has_number(self, said: Quantity) -> bool:
        """Return whether a number of the document is this one, exactly or after rounding."""
        factor = said.folded / said.value if said.value else 1.0
        is_rounded = bool(said.scale or said.unit or said.step < 1)
        slack = said.step * factor / 2 if is_rounded else 0.0
        value = abs(said.folded)
        slack += 1e-9 * value
        at = bisect_left(self.numbers, value - slack)
        return at < len(self.numbers) and self.numbers[at] <= value + slack


@lru_cache(maxsize=4)
def _read_document(text: str) -> _DocumentFacts:
    plain = normalise_numbers(text, None)
    numbers = {abs(one.folded) for one in iter_quantities(plain)}
    words = (word.casefold() for word in plain_words(text))
    return _DocumentFacts(frozenset(_content_keys(text)), frozenset(words), sorted(numbers))


def _strike(text: str, numbers: Sequence[Quantity]) -> str:
    """Return a text without its numbers and their units."""
    ends = [0, *(one.end for one in numbers)]
    starts = [*(one.start for one in numbers), len(text)]
    return " ".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _content_keys(text: str) -> set[str]:
    """Return the content words of a text, without those with digits; characters for Chinese."""
    found = search_keys(text)
    if not text.isascii():
        found = [part for key in found for part in find_words(key)]
    return {_stem(key) for key in found if not any(map(str.isdigit, key))}


def _stem(key: str) -> str:
    """Return a key without the past tense ending, which search keys keep."""
    return key.removesuffix("d").removesuffix("e") if len(key) > _SHORT else key


def _has_named(text: str) -> bool:
    """Return whether capitals mark names in a text."""
    words: list[str] = _WORD.findall(text)
    capitals = sum(word[0].isupper() for word in words)
    return bool(capitals <= _MOST_CAPITALS * len(words))


def _names_in(sentence: str) -> list[str]:
    """Return the capitalised words after the first, in lower case."""
    words = [word for word in plain_words(sentence) if not word[0].isdigit()]
    return [word.casefold() for word in words[1:] if word[0].isupper() and len(word) > 1]
