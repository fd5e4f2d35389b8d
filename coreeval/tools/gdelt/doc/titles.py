"""Which queries an article belongs to while more is asked for: by the words of its title.

DOC 2.0 finds words anywhere in a text and shows the title only. What nobody can quote is no
evidence.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from coreeval.schema import EntityQuery
from coreeval.tools.gdelt.search.questions import TOPIC_SHARE
from coreeval.tools.gdelt.titles import without_outlet
from coreeval.tools.gdelt.words import keys, query_keys


@dataclass(frozen=True)
class Titles:
    """The words of many titles, by which queries find them."""

    by_word: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: set[str] = field(default_factory=set)

    def add(self, key: str, title: str) -> None:
        """Add one article."""
        self.ids.add(key)
        for word in keys(without_outlet(title)):
            self.by_word[word].add(key)

    def matches(self, query: EntityQuery) -> dict[str, float]:
        """Return the articles with all words of a name, or enough of a topic: share by id."""
        least = 1.0 if query.rung in ("named", "alias") else TOPIC_SHARE
        best: dict[str, float] = {}
        for words in _variants(query):
            for key, share in self._shares(words).items():
                if share >= max(least, best.get(key, 0.0)):
                    best[key] = share
        return best

    def _shares(self, words: frozenset[str]) -> dict[str, float]:
        """Return the part of the words' weight that each article has; a rare word weighs more."""
        weights = {word: self._weight(word) for word in sorted(words)}
        found: defaultdict[str, float] = defaultdict(float)
        for word, weight in weights.items():
            for key in self.by_word.get(word, ()):
                found[key] += weight
        need = sum(weights.values())
        return {key: round(weight / need, 6) for key, weight in found.items()}

    def _weight(self, word: str) -> float:
        return math.log(1 + max(len(self.ids), 1) / max(len(self.by_word.get(word, ())), 1))


def _variants(query: EntityQuery) -> Iterator[frozenset[str]]:
    spellings = (query_keys(text) for text in (query.text, *query.aliases))
    yield from dict.fromkeys(words for words in spellings if words)
