"""From queries to the words that are looked up, with what each weighs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coreeval.schema import EntityQuery
from coreeval.tools.gdelt.themes import THEMES
from coreeval.tools.gdelt.words import query_keys

TOPIC_SHARE = 0.3
"""What an article must share with a topic: this part of the weight of its words, where a rare word
weighs more (ln(1 + articles / articles with the word)). A topic is a description, and a headline
puts it its own way. With most of the words asked for, 39 of 60 samples had fewer than six
candidates and found no knowledge (docs/quality.md, round 1)."""
NAMED = ("named", "alias")
"""Rungs whose query is a name: all of its words must be there."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way to put a query: the words of its text, of an alias, or of what GDELT leaves of it."""

    query: int
    """Place of the query in the batch."""
    words: tuple[str, ...]
    share: float
    """The part of the words' weight that an article must have."""
    alone: bool
    """A name of a single word whose query has a context that can settle whom it means."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One word of a spelling."""

    word: str
    weight: float
    """As a part of the spelling's whole weight."""
    seed: bool
    """Whether articles are looked for by it; each that has enough words has at least one seed."""


def spellings(queries: Sequence[EntityQuery]) -> list[Spelling]:
    """Return the ways to put each query; none for a query without content words."""
    return [one for place, query in enumerate(queries) for one in _spellings(place, query)]


def _spellings(place: int, query: EntityQuery) -> Iterator[Spelling]:
    texts = [query.text, *query.aliases]
    texts += [cut for text in texts if (cut := _cut(text))]
    named = query.rung in NAMED
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


def weighed(spelling: Spelling, held: Mapping[str, int], articles: int) -> Iterator[Asked]:
    """Yield a spelling's words, the heaviest first, `held` telling how many articles have each.

    Words become seeds until what is left weighs less than an article may lack.
    """
    weights = {word: math.log(1 + articles / (held.get(word) or 1)) for word in spelling.words}
    whole, left = sum(weights.values()), 1.0
    for word, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        seed = left >= spelling.share - 1e-6
        left -= weight / whole
        yield Asked(word, weight / whole, seed)


def themes(query: EntityQuery) -> list[int]:
    """Return the places in `THEMES` of the themes that a topic is part of."""
    if query.rung in NAMED:
        return []
    words = query_keys(query.text)
    return [place for place, text in enumerate(THEMES) if query_keys(text) <= words]


def contexts(query: EntityQuery) -> list[frozenset[str]]:
    """Return the words of each context of a query, without the query's own."""
    own = query_keys(query.text).union(*map(query_keys, query.aliases))
    return [words for text in query.context if (words := query_keys(text) - own)]
