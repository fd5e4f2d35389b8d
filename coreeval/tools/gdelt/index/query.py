"""Turns a query into matches: its words, their weights, and their articles in a store.

Articles are found by their text, a name or a theme.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import EntityQuery
from coreeval.tools.gdelt.index.storage import Flags, Items, Numbers, find_members
from coreeval.tools.gdelt.index.view import NOTHING, ONE, StoreView
from coreeval.tools.gdelt.words import THEMES, query_keys

TOPIC_SHARE = 0.3
"""The share of a topic's words, by weight, that an article must have; a rare word weighs more (ln(1
+ articles / articles with the word)). A topic is a description, which a headline words differently.
With most of the words required, 39 of 60 samples had fewer than six candidates and found no
knowledge (docs/quality.md, round 1)."""
NAME_RUNGS = ("named", "alias")
"""Rungs whose query is a name: all of its words must occur."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """One spelling of a query: the words of its text, an alias, or the name as GDELT cuts it."""

    query: int
    """The position of the query in the batch."""
    words: tuple[str, ...]
    share: float
    """The share of the words' weight that an article must have."""
    alone: bool
    """Whether it is a name of one word whose query has a context to disambiguate it."""


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a spelling."""

    word: str
    weight: float
    """The word's share of the spelling's weight."""
    seed: bool
    """Whether articles are looked up by it; an article with enough words has at least one seed."""


def list_spellings(queries: Sequence[EntityQuery]) -> list[Spelling]:
    """Return the spellings of each query; none for a query without content words."""
    return [one for place, query in enumerate(queries) for one in _spellings(place, query)]


def _spellings(place: int, query: EntityQuery) -> Iterator[Spelling]:
    texts = [query.text, *query.aliases]
    texts += [cut for text in texts if (cut := _cut(text))]
    named = query.rung in NAME_RUNGS
    for words in dict.fromkeys(found for text in texts if (found := query_keys(text))):
        yield Spelling(
            query=place,
            words=tuple(sorted(words)),
            share=1.0 if named else TOPIC_SHARE,
            alone=named and len(words) == 1 and bool(query.context),
        )


def _cut(name: str) -> str:
    """Return a name as GKG spells it: cut at its first non-ASCII letter (research: gdelt §5)."""
    cut = next((at for at, letter in enumerate(name) if not letter.isascii()), None)
    if cut is None or len(name[:cut].split()) < 2:
        return ""
    return name[:cut]


def weigh_words(spelling: Spelling, held: Mapping[str, int], articles: int) -> Iterator[QueryWord]:
    """Yield a spelling's words, the heaviest first; `held` is the number of articles per word.

    Words become seeds until the remaining words weigh less than an article may lack.
    """
    weights = {word: math.log(1 + articles / (held.get(word) or 1)) for word in spelling.words}
    whole, left = sum(weights.values()), 1.0
    for word, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        seed = left >= spelling.share - 1e-6
        left -= weight / whole
        yield QueryWord(word, weight / whole, seed)


def find_themes(query: EntityQuery) -> list[int]:
    """Return the indices in `THEMES` of the themes that a topic belongs to."""
    if query.rung in NAME_RUNGS:
        return []
    words = query_keys(query.text)
    return [place for place, text in enumerate(THEMES) if query_keys(text) <= words]


def list_contexts(query: EntityQuery) -> list[frozenset[str]]:
    """Return the words of each context of a query, without the query's own words."""
    own = query_keys(query.text).union(*map(query_keys, query.aliases))
    return [words for text in query.context if (words := query_keys(text) - own)]


MOST_NAMES = 200
"""The most names that a spelling may match, most mentioned first: 'John' is part of thousands."""
IN_TITLE, IN_TEXT, BY_NAME = 0.40, 0.32, 0.20
"""The quality of a match, as a part of the score (research: gdelt §8; untuned)."""
_LEAST = 5e-7
"""The tolerance of comparisons of weights, which have six digits."""
Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SpellingWeights:
    """A spelling and the weights of its words."""

    words: tuple[QueryWord, ...]
    share: float
    alone: bool


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """The search terms of one query."""

    spellings: tuple[SpellingWeights, ...]
    themes: tuple[int, ...]
    contexts: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Matches:
    """An article that a query finds, possibly in several ways."""

    article: Numbers
    """The article's number in the store."""
    whole: Weights
    """The share of the query's words that the article has, by weight."""
    match: Weights
    """The quality of the match: `IN_TITLE`, `IN_TEXT` or `BY_NAME`."""


def find_matches(view: StoreView, question: SearchTerms, deep: int | None) -> Iterator[Matches]:
    """Yield the matches of a query.

    A match is either in the text (headline and description together) or in one name: words of a
    name that occur in two different names do not count as a mention. `deep` is the number of
    articles per day to consider for a name that very many articles mention; None considers all.
    """
    for wanted in question.spellings:
        for articles, whole, match in (
            _in_text(view, wanted),
            _in_names(view, wanted, None if wanted.alone else deep),
        ):
            if not len(articles):
                continue
            counts = view.sure(articles)
            if wanted.alone:
                counts &= _match_contexts(view, articles, question.contexts)
            yield Matches(articles[counts], whole[counts], match[counts])
    for theme in question.themes:
        articles = view.articles_of_theme(theme) >> ONE
        articles = articles[view.sure(articles)]
        # After all articles that have enough of the topic's words.
        few = np.full(len(articles), TOPIC_SHARE)
        yield Matches(articles, few, np.full(len(articles), BY_NAME))


def _in_text(view: StoreView, wanted: SpellingWeights) -> tuple[Numbers, Weights, Weights]:
    articles, whole, titled = _having([view.words(asked.word) for asked in wanted.words], wanted)
    return articles, whole, np.where(titled, IN_TITLE, IN_TEXT)


def _in_names(
    view: StoreView, wanted: SpellingWeights, deep: int | None
) -> tuple[Numbers, Weights, Weights]:
    names, whole, _ = _having([view.names(asked.word) for asked in wanted.words], wanted)
    if len(names) > MOST_NAMES:
        kept = _most_mentioned(view, names, whole)
        names, whole = names[kept], whole[kept]
    articles, which = view.mentions(names, deep)
    return articles, whole[which], np.full(len(articles), BY_NAME)


def _most_mentioned(view: StoreView, names: Numbers, whole: Weights) -> NDArray[np.intp]:
    """Return the indices of the names to consider: up to `MOST_NAMES` of each part, in order."""
    kept = []
    for part, here, own in view.split_by_part(names):
        mentioned = part.index.mentions.counts(own)
        best = np.lexsort((own, -mentioned, -whole[here]))[:MOST_NAMES]
        kept.append(np.sort(best) + here.start)
    return np.concatenate(kept)


def _having(lists: Sequence[Items], wanted: SpellingWeights) -> tuple[Numbers, Weights, Flags]:
    """Return the items with enough of the words: their numbers, word weights and common flags.

    Args:
        lists: The items with each word.
        wanted: The words, and the share of their weight that suffices.
    """
    both = [each for each in zip(wanted.words, lists, strict=True) if len(each[1])]
    left = sum(asked.weight for asked, _ in both)
    seeds = [items for asked, items in both if asked.seed]
    if left < wanted.share - _LEAST or not seeds:
        return NOTHING, np.zeros(0), np.zeros(0, bool)
    numbers = _union(seeds)
    whole, flagged = np.zeros(len(numbers)), np.ones(len(numbers), bool)
    for asked, items in both:
        alone = len(seeds) == 1 and asked.seed
        has, flag = _each(items) if alone else find_members(items, numbers)
        whole += asked.weight * has
        flagged &= flag | ~has
        left -= asked.weight
        enough = whole >= wanted.share - _LEAST - left
        numbers, whole, flagged = numbers[enough], whole[enough], flagged[enough]
    return numbers, whole.round(6), flagged


def _each(items: Items) -> tuple[Flags, Flags]:
    """Return the result of `find_members` for a list's own numbers."""
    return np.ones(len(items), bool), (items & ONE).astype(bool)


def _union(several: Sequence[Items]) -> Numbers:
    """Return the distinct numbers of ascending lists."""
    if len(several) == 1:
        return several[0] >> ONE
    joined = np.sort(np.concatenate(several)) >> ONE
    return joined[np.flatnonzero(np.diff(joined, prepend=joined[:1] + ONE))]


def _match_contexts(
    view: StoreView, articles: Numbers, contexts: Sequence[frozenset[str]]
) -> Flags:
    """Return for each article whether it has a word of a context, or a name with all its words.

    A name of a single word is ambiguous.
    """
    settled = np.zeros(len(articles), bool)
    for words in contexts:
        for word in words:
            items = view.words(word)
            if len(items):
                settled |= find_members(items, articles)[0]
        named, _ = view.mentions(_names_of(view, words))
        settled |= np.isin(articles, named)
    return settled


def _names_of(view: StoreView, words: frozenset[str]) -> Numbers:
    """Return the names that contain all of some words."""
    lists = sorted((view.names(word) for word in words), key=len)
    names = lists[0] >> ONE
    for items in lists[1:]:
        names = names[find_members(items, names)[0]] if len(names) else names
    return names
