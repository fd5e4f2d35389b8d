"""What a store has for a query: articles by their text, by a name, by a theme."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coreeval.tools.gdelt.parts.postings import Flags, Items, Numbers, members
from coreeval.tools.gdelt.search.questions import TOPIC_SHARE, Asked
from coreeval.tools.gdelt.search.views import NOTHING, ONE, View

NAMES_AT_MOST = 200
"""Names that a spelling may stand for, the most mentioned first: 'John' is part of thousands."""
IN_TITLE, IN_TEXT, BY_NAME = 0.40, 0.32, 0.20
"""How well an article matches, as a part of its score (research: gdelt §8; nobody has tuned it)."""
_LEAST = 5e-7
"""Weights are compared with six digits."""
Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One spelling with its words weighed."""

    words: tuple[Asked, ...]
    share: float
    alone: bool


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for to answer one query."""

    spellings: tuple[Wanted, ...]
    themes: tuple[int, ...]
    contexts: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Articles that a query finds, some of them in several ways."""

    article: Numbers
    """Number in the store."""
    whole: Weights
    """The part of the query's words that it has, by weight."""
    match: Weights
    """How well it matches: `IN_TITLE`, `IN_TEXT` or `BY_NAME`."""


def find(view: View, question: Question, deep: int) -> Iterator[Found]:
    """Yield what there is for a query.

    A match is either in the text (headline and description together) or in one name: the words of
    a name that stand in two different names are no mention of it. `deep` is how many articles of
    one day are looked at for a name that very many have.
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
                counts &= _settled(view, articles, question.contexts)
            yield Found(articles[counts], whole[counts], match[counts])
    for theme in question.themes:
        articles = view.themed(theme) >> ONE
        articles = articles[view.sure(articles)]
        # After all articles that have enough of the topic's words.
        few = np.full(len(articles), TOPIC_SHARE)
        yield Found(articles, few, np.full(len(articles), BY_NAME))


def _in_text(view: View, wanted: Wanted) -> tuple[Numbers, Weights, Weights]:
    articles, whole, titled = _having([view.words(asked.word) for asked in wanted.words], wanted)
    return articles, whole, np.where(titled, IN_TITLE, IN_TEXT)


def _in_names(view: View, wanted: Wanted, deep: int | None) -> tuple[Numbers, Weights, Weights]:
    names, whole, _ = _having([view.names(asked.word) for asked in wanted.words], wanted)
    if len(names) > NAMES_AT_MOST:
        kept = _most_mentioned(view, names, whole)
        names, whole = names[kept], whole[kept]
    articles, which = view.mentions(names, deep)
    return articles, whole[which], np.full(len(articles), BY_NAME)


def _most_mentioned(view: View, names: Numbers, whole: Weights) -> NDArray[np.intp]:
    """Return which names are looked at: so many of each part, in order."""
    kept = []
    for part, here, own in view.divided(names):
        mentioned = part.index.mentions.counts(own)
        best = np.lexsort((own, -mentioned, -whole[here]))[:NAMES_AT_MOST]
        kept.append(np.sort(best) + here.start)
    return np.concatenate(kept)


def _having(lists: Sequence[Items], wanted: Wanted) -> tuple[Numbers, Weights, Flags]:
    """Return what has enough of the words: numbers, the weight of their words, all words flagged.

    Args:
        lists: For each word what has it.
        wanted: The words, and how much of their weight is enough.
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
        has, flag = _each(items) if alone else members(items, numbers)
        whole += asked.weight * has
        flagged &= flag | ~has
        left -= asked.weight
        enough = whole >= wanted.share - _LEAST - left
        numbers, whole, flagged = numbers[enough], whole[enough], flagged[enough]
    return numbers, whole.round(6), flagged


def _each(items: Items) -> tuple[Flags, Flags]:
    """Return what `members` does of a list's own numbers."""
    return np.ones(len(items), bool), (items & ONE).astype(bool)


def _union(several: Sequence[Items]) -> Numbers:
    """Return the numbers of ascending lists, each once."""
    if len(several) == 1:
        return several[0] >> ONE
    joined = np.sort(np.concatenate(several)) >> ONE
    return joined[np.flatnonzero(np.diff(joined, prepend=joined[:1] + ONE))]


def _settled(view: View, articles: Numbers, contexts: Sequence[frozenset[str]]) -> Flags:
    """Tell which articles have a word of a context, or a name that has all words of one.

    A name of a single word means many.
    """
    settled = np.zeros(len(articles), bool)
    for words in contexts:
        for word in words:
            items = view.words(word)
            if len(items):
                settled |= members(items, articles)[0]
        named, _ = view.mentions(_names_of(view, words))
        settled |= np.isin(articles, named)
    return settled


def _names_of(view: View, words: frozenset[str]) -> Numbers:
    """Return the names that have all of some words."""
    lists = sorted((view.names(word) for word in words), key=len)
    names = lists[0] >> ONE
    for items in lists[1:]:
        names = names[members(items, names)[0]] if len(names) else names
    return names
