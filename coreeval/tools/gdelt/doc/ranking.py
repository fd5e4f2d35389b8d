"""Which query an article belongs to, and which article is best: the local store's rules, by hand.

DOC 2.0 finds words anywhere in a text and shows the title only. What nobody can quote is no
evidence, so an article belongs to a query by the words of its title.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from coreeval.schema import EntityQuery, Evidence, Precision, Window
from coreeval.tools.gdelt.items import Item
from coreeval.tools.gdelt.screen import is_question
from coreeval.tools.gdelt.titles import without_outlet
from coreeval.tools.gdelt.words import keys, query_keys

TOPIC_SHARE = 0.3
"""What a title must share with a topic, as in the local store (docs/knowledge.md)."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
"""Best first."""
_CERTAINTY: Mapping[Precision, float] = {"exact": 1, "url": 0.75, "cluster": 0.5, "crawl": 0}
_MOST_SITES = 50


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


@dataclass(frozen=True)
class _Match:
    item: Item
    share: float
    score: float

    @property
    def order(self) -> tuple[float, float, float, str]:
        """Sorts the best first."""
        published = self.item.published_at.timestamp()
        return (-self.share, -self.score, -published, self.item.id)


def ranked(
    queries: Sequence[EntityQuery], items: Sequence[Item], window: Window, k: int, worst: Precision
) -> dict[str, tuple[Evidence, ...]]:
    """Return up to `k` pieces of evidence for each query, best first.

    Stories come in the order of their best article; a second site that tells the same story follows
    it at once, as in the local store.
    """
    told = Counter(item.story for item in items)
    usable = {item.id: item for item in items if _usable(item, window, worst)}
    titles = Titles()
    for item in usable.values():
        titles.add(item.id, item.article.title)
    scores = {key: _score(item, window) for key, item in usable.items()}

    def found(query: EntityQuery) -> Iterator[Evidence]:
        shares = titles.matches(query).items()
        matches = [_Match(usable[key], share, scores[key]) for key, share in shares]
        for item in _best(matches, k):
            yield _evidence(item, shared=told[item.story] > 1)

    return {query.id: tuple(found(query)) for query in queries}


def _usable(item: Item, window: Window, worst: Precision) -> bool:
    in_time = window.start <= item.published_at < window.end
    return in_time and PRECISIONS.index(item.precision) <= PRECISIONS.index(worst)


def _score(item: Item, window: Window) -> float:
    """Return the score of a match in the title (weights: docs/knowledge.md, untuned)."""
    decay_s = max((window.end - window.start).total_seconds() / 3, 1.0)
    age_s = (window.end - item.published_at).total_seconds()
    notable = min(1.0, math.log1p(item.domains) / math.log1p(_MOST_SITES))
    quality = (_CERTAINTY[item.precision] + (not is_question(item.article.title))) / 3
    return 0.40 + 0.20 * math.exp(-age_s / decay_s) + 0.25 * notable + 0.15 * quality


def _best(matches: Sequence[_Match], k: int) -> list[Item]:
    """Return the best items, two of a story at most: its best, and the best of another site."""
    stories: defaultdict[str, list[_Match]] = defaultdict(list)
    for match in sorted(matches, key=lambda match: match.order):
        stories[match.item.story].append(match)
    best: list[Item] = []
    for lead, *others in stories.values():
        other = next((one for one in others if one.item.domain != lead.item.domain), None)
        best += [lead.item, *([other.item] if other else [])]
    return best[:k]


def _evidence(item: Item, *, shared: bool) -> Evidence:
    return Evidence(
        id=item.id,
        url=item.article.url,
        domain=item.domain,
        title=item.article.title,
        published_at=item.published_at,
        published_precision=item.precision,
        cluster=item.story if shared else "",
        origin=item.article.origin,
    )
