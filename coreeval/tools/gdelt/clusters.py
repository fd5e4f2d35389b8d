"""Near-duplicate titles: the same event told by several sites (research: gdelt §5)."""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from coreeval.tools.gdelt.titles import without_outlet
from coreeval.tools.gdelt.words import keys

MIN_JACCARD = 0.6
SPAN = timedelta(hours=48)
"""Both as research: gdelt §5 has them; untuned."""
MIN_WORDS = 3
"""Titles with fewer content words are twins only if they are equal."""


def cluster(items: Sequence[tuple[datetime, str]]) -> list[int]:
    """Return for each (time, title) the position of its cluster's earliest member.

    A title joins the first leader within the span whose words overlap enough, so a cluster never
    grows beyond the span. Only leaders that share one of the title's rarest words are compared: a
    pair above the threshold must share one (prefix filtering), so nothing is missed.
    """
    words = [frozenset(keys(without_outlet(title))) for _, title in items]
    rarity = Counter(word for found in words for word in found)
    leaders: defaultdict[str, deque[int]] = defaultdict(deque)
    cluster_of = list(range(len(items)))
    for at in sorted(range(len(items)), key=lambda index: (items[index][0], index)):
        prefix = _prefix(words[at], rarity)
        start = items[at][0] - SPAN
        near = _near(prefix, leaders, start, items)
        match = min((leader for leader in near if _same(words[leader], words[at])), default=None,
                    key=lambda leader: (items[leader][0], leader))  # fmt: skip
        if match is not None:
            cluster_of[at] = match
            continue
        for word in prefix:
            leaders[word].append(at)
    return cluster_of


def _prefix(words: frozenset[str], rarity: Counter[str]) -> list[str]:
    """Return the rarest words, enough that any title above the threshold shares one of them."""
    ordered = sorted(words, key=lambda word: (rarity[word], word))
    return ordered[: len(ordered) - math.ceil(MIN_JACCARD * len(ordered)) + 1]


def _near(
    prefix: Sequence[str],
    leaders: dict[str, deque[int]],
    start: datetime,
    items: Sequence[tuple[datetime, str]],
) -> Iterator[int]:
    """Yield the leaders that share a word and are recent enough; forget the others."""
    for word in prefix:
        known = leaders[word]
        while known and items[known[0]][0] < start:
            known.popleft()
        yield from known


def _same(left: frozenset[str], right: frozenset[str]) -> bool:
    if left == right:
        return True
    if min(len(left), len(right)) < MIN_WORDS:
        return False
    return len(left & right) >= MIN_JACCARD * len(left | right)
