"""Searches two benchmarks, or one, for hits: each pair of texts has at most one kind.

There are six kinds of hit. Paraphrases are texts with the same meaning in other words, or in
another language: their embeddings are close.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np

from coreeval.errors import UsageError
from coreeval.evaluation.overlap.minhash import find_near_pairs
from coreeval.evaluation.overlap.passages import find_boilerplate, find_passages
from coreeval.evaluation.overlap.shingles import normal_key
from coreeval.evaluation.overlap.templates import (
    SlotAgreement,
    TextSlots,
    find_template_pairs,
    group_connected,
)
from coreeval.schema import BadRow
from coreeval.tools.embeddings import Embedder, Vectors, normalise_vectors


@dataclass(frozen=True, slots=True)
class TextEntry:
    """One item with its text and answer."""

    id: str
    text: str
    """The fields of the item, one per line."""
    answer: str | None = None
    """The label or reference of the item; None if it has none."""
    cluster: str = ""
    """The cluster of the item; empty if the benchmark does not state it."""


@dataclass(frozen=True)
class BenchmarkTexts:
    """The items of one split, and the rows that are not valid items."""

    name: str
    """The name given by the user."""
    entries: tuple[TextEntry, ...]
    bad_rows: tuple[BadRow, ...] = ()


PARAPHRASE = 0.75
"""The least cosine of two paraphrases, chosen for all-MiniLM-L6-v2: docs/overlap.md."""
MOST = 5
"""The most paraphrases of a text to keep, the likeliest ones."""
ROWS = 1024
"""The number of texts of each side to compare at once, to limit memory."""


def find_paraphrases(
    left: Sequence[str], right: Sequence[str] | None, embeds: Embedder, threshold: float
) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs between two lists of texts, or within one, that have similar embeddings.

    Args:
        left: Texts.
        right: Other texts; None for pairs within the first list.
        embeds: The embedder.
        threshold: Minimum cosine similarity.
    """
    one = normalise_vectors(embeds(left))
    other = one if right is None else normalise_vectors(embeds(right))
    for start in range(0, len(one), ROWS):
        found = list(_find_near(one[start : start + ROWS], other, threshold))
        for row, column, cosine in _keep_likeliest(found):
            if right is not None or start + row < column:
                yield start + row, column, cosine


def _find_near(rows: Vectors, other: Vectors, threshold: float) -> Iterator[tuple[float, int, int]]:
    for start in range(0, len(other), ROWS):
        cosines = rows @ other[start : start + ROWS].T
        for row, column in zip(*np.nonzero(cosines >= threshold), strict=True):
            yield float(cosines[row, column]), int(row), start + int(column)


def _keep_likeliest(found: list[tuple[float, int, int]]) -> Iterator[tuple[int, int, float]]:
    """Yield the most similar pairs of each row, one more than `MOST` as a text may match itself."""
    kept: dict[int, int] = {}
    for cosine, row, column in sorted(found, reverse=True):
        kept[row] = kept.get(row, 0) + 1
        if kept[row] <= MOST + 1:
            yield row, column, min(cosine, 1.0)


HitKind = Literal["exact", "normalised", "near", "contained", "paraphrase", "template"]
KINDS: Final[tuple[HitKind, ...]] = get_args(HitKind)
SAME: Final[tuple[HitKind, ...]] = KINDS[:-1]
"""Kinds whose texts are the same item, unlike those of a template."""
THRESHOLD = 0.4
"""The least similarity of a near hit, between chance and edits: docs/overlap.md."""

LEAST_THRESHOLD = 0.2
"""The least threshold that may be chosen."""


@dataclass(frozen=True)
class PassageSpan:
    """The position of the text of one side of a hit inside that of the other."""

    side: Literal["a", "b"]
    """The side with the longer text."""
    start: int
    """The start of the passage, in characters of that text."""
    end: int


@dataclass(frozen=True)
class Hit:
    """Two similar texts, and the items that contain them."""

    kind: HitKind
    similarity: float
    """The Jaccard index of their shingles, or 1 if the texts differ only in case and punctuation.
    For a contained text, the index of the text and the passage; for paraphrases, the cosine; for a
    template, the index of two of its items with masked numbers and names."""
    a: tuple[TextEntry, ...]
    """Items with the first text, up to case, punctuation and blanks; for a template, all items."""
    b: tuple[TextEntry, ...]
    within: PassageSpan | None = None
    """The position of a contained text."""

    @property
    def same_answer(self) -> bool | None:
        """Return whether all items have the same answer; None if an item has no answer."""
        answers = {entry.answer for entry in (*self.a, *self.b)}
        return None if None in answers else len(answers) == 1

    @property
    def texts(self) -> tuple[str, str]:
        """Return the two texts; if one contains the other, only the passage of the longer one."""
        one, other = self.a[0].text, self.b[0].text
        if self.within is None:
            return one, other
        part = slice(self.within.start, self.within.end)
        return (one[part], other) if self.within.side == "a" else (one, other[part])


@dataclass(frozen=True, kw_only=True)
class OverlapSearch:
    """The required similarity of two texts."""

    threshold: float = THRESHOLD
    """The least similarity of near and contained texts, above 0 and below 1."""
    embeds: Embedder | None = None
    """The embedder; None to skip the search for paraphrases."""
    paraphrase: float = PARAPHRASE
    """The least cosine of paraphrases."""


def check_threshold(threshold: float, where: str) -> None:
    """Raise an error for a similarity that occurs by chance, or only between equal texts.

    Args:
        threshold: The least similarity of a near hit.
        where: The option or argument, for the error.

    Raises:
        UsageError: the similarity is not valid.
    """
    if not LEAST_THRESHOLD <= threshold < 1:
        hint = (
            "use a value from 0.2 to 0.99; below 0.2, texts are alike by chance (see coreeval docs "
            "overlap)"
        )
        raise UsageError(f"{threshold} is not a valid threshold", where=where, hint=hint)


@dataclass(frozen=True)
class BenchmarkOverlap:
    """The hits between two benchmarks, or within one, the surest first."""

    a: BenchmarkTexts
    b: BenchmarkTexts | None
    search: OverlapSearch
    hits: tuple[Hit, ...]
    short: tuple[int, ...]
    """The number of different texts of each benchmark that are too short, except to test
    equality."""
    crowded: int
    """The number of buckets in which not all texts were compared with each other."""

    def items(self, kinds: Sequence[HitKind] = SAME) -> tuple[int, ...]:
        """Return the number of items of each benchmark that have a hit of the given kinds."""
        found = [hit for hit in self.hits if hit.kind in kinds]
        left, right = (
            {each.id for hit in found for each in side(hit)} for side in (_first_side, _second_side)
        )
        return (len(left | right),) if self.b is None else (len(left), len(right))


def _first_side(hit: Hit) -> tuple[TextEntry, ...]:
    return hit.a


def _second_side(hit: Hit) -> tuple[TextEntry, ...]:
    return hit.b


Groups = Mapping[str, Sequence[TextEntry]]
"""The entries by the key that equal texts share, see `key_of`."""
Pair = tuple[int, int, float]
"""The indices of two different texts, and their similarity."""
_Direction = tuple[Sequence[str] | None, Sequence[str] | None, Literal["a", "b"]]
"""The texts to find, the texts to search, and the side of the latter."""


def find_overlap(
    a: BenchmarkTexts, b: BenchmarkTexts | None = None, *, search: OverlapSearch | None = None
) -> BenchmarkOverlap:
    """Find the texts that two benchmarks share, or the duplicates within one.

    Args:
        a: The first benchmark.
        b: The second benchmark; None to search within the first.
        search: The required similarity of two texts.
    """
    how = search or OverlapSearch()
    left, right = _group_by_text(a), None if b is None else _group_by_text(b)
    sides = _Sides(left, right)
    near = find_near_pairs(*sides.texts, how.threshold)
    pairs = _pairs_by_kind(sides, near.pairs, how)
    whole = _find_repeats(left) if right is None else _find_shared(left, right)
    hits = [*whole, *_make_hits(sides, pairs), *_find_templates(sides, pairs.template)]
    hits.sort(key=lambda hit: (KINDS.index(hit.kind), -hit.similarity))
    short = near.short[:1] if right is None else near.short
    return BenchmarkOverlap(a, b, how, tuple(hits), short, near.crowded + pairs.crowded)


def _group_by_text(texts: BenchmarkTexts) -> Groups:
    groups: dict[str, list[TextEntry]] = {}
    for entry in texts.entries:
        groups.setdefault(normal_key(entry.text), []).append(entry)
    return groups


def _find_shared(left: Groups, right: Groups) -> Iterator[Hit]:
    """Yield a hit for each text that both sides have, exact if two items have it verbatim."""
    for key in (key for key in left if key in right):
        a, b = left[key], right[key]
        same = {entry.text for entry in a} & {entry.text for entry in b}
        yield Hit("exact" if same else "normalised", 1.0, tuple(a), tuple(b))


def _find_repeats(groups: Groups) -> Iterator[Hit]:
    """Yield a hit for each text that several items have, exact if two of them have it verbatim."""
    for entries in groups.values():
        if len(entries) > 1:
            same = len({entry.text for entry in entries}) < len(entries)
            first, *others = entries
            yield Hit("exact" if same else "normalised", 1.0, (first,), tuple(others))


@dataclass(frozen=True)
class _Sides:
    """The different texts of two benchmarks, or of one."""

    left: Groups
    right: Groups | None

    @cached_property
    def texts(self) -> tuple[list[str], list[str] | None]:
        """Return the text of the first item of each group, by side."""
        return _first_texts(self.left), None if self.right is None else _first_texts(self.right)

    def entries(self) -> tuple[list[Sequence[TextEntry]], list[Sequence[TextEntry]]]:
        """Return the items of each text, by side; for a single benchmark, the same items twice."""
        left = list(self.left.values())
        return left, left if self.right is None else list(self.right.values())

    def same(self) -> set[tuple[int, int]]:
        """Return the pairs of indices of the texts that both benchmarks have."""
        if self.right is None:
            return set()
        places = {key: place for place, key in enumerate(self.left)}
        return {(places[key], at) for at, key in enumerate(self.right) if key in places}

    def compare(self, slots: TextSlots, pair: Pair) -> SlotAgreement:
        """Compare the numbers and names of two texts."""
        left, right = self.texts
        return slots.compare(left[pair[0]], (left if right is None else right)[pair[1]])


def _first_texts(groups: Groups) -> list[str]:
    return [entries[0].text for entries in groups.values()]


@dataclass
class _Pairs:
    near: list[Pair] = field(default_factory=list)
    contained: list[tuple[Pair, PassageSpan]] = field(default_factory=list)
    paraphrase: list[Pair] = field(default_factory=list)
    template: list[Pair] = field(default_factory=list)
    crowded: int = 0
    """The number of buckets in which not all texts were compared with each other."""


def _pairs_by_kind(sides: _Sides, alike: Iterable[Pair], how: OverlapSearch) -> _Pairs:
    """Return the pairs of each kind, given the pairs whose whole texts are similar."""
    left, right = sides.texts
    slots = TextSlots([*left, *(right or [])])
    known, found = sides.same(), _Pairs()
    for pair in (each for each in alike if each[:2] not in known):
        differ = sides.compare(slots, pair) == "differ"
        (found.template if differ else found.near).append(pair)
    known.update(pair[:2] for pair in found.near)
    masked = find_template_pairs(left, right, slots)
    found.crowded = masked.crowded
    for pair in (each for each in masked.pairs if each[:2] not in known):
        agree = sides.compare(slots, pair) == "agree"
        (found.near if agree else found.template).append(pair)
    known.update(pair[:2] for pair in found.near)
    found.contained = list(_find_contained(sides, slots, known, how.threshold))
    known.update(pair[:2] for pair, _ in found.contained)
    if how.embeds is not None:
        known.update(pair[:2] for pair in found.template)
        found.paraphrase = [
            pair
            for pair in find_paraphrases(left, right, how.embeds, how.paraphrase)
            if pair[:2] not in known and sides.compare(slots, pair) != "differ"
        ]
    return found


def _find_contained(
    sides: _Sides, slots: TextSlots, known: set[tuple[int, int]], threshold: float
) -> Iterator[tuple[Pair, PassageSpan]]:
    """Yield the texts of one side that occur inside a text of the other, in both directions."""
    left, right = sides.texts
    boilerplate = find_boilerplate([left] if right is None else [left, right])
    directions: tuple[_Direction, ...] = ((left, right, "b"), (right, left, "a"))
    for items, hosts, side in directions:
        if items is None:
            continue
        texts = items if hosts is None else hosts
        for each in find_passages(items, hosts, threshold, boilerplate):
            places = (each.item, each.host) if side == "b" else (each.host, each.item)
            part = texts[each.host][each.start : each.end]
            if places not in known and slots.compare(items[each.item], part) != "differ":
                yield (*places, each.similarity), PassageSpan(side, each.start, each.end)


def _make_hits(sides: _Sides, pairs: _Pairs) -> Iterator[Hit]:
    left, right = sides.entries()
    of_kind: tuple[tuple[HitKind, list[Pair]], ...] = (
        ("near", pairs.near),
        ("paraphrase", pairs.paraphrase),
    )
    for kind, found in of_kind:
        for i, j, similarity in found:
            yield Hit(kind, similarity, tuple(left[i]), tuple(right[j]))
    for (i, j, similarity), span in pairs.contained:
        # the span is a position in the first item's text, which represents the others
        yield Hit("contained", similarity, tuple(left[i]), tuple(right[j]), span)


def _find_templates(sides: _Sides, pairs: Sequence[Pair]) -> Iterator[Hit]:
    """Yield a hit with all items of each template, starting with the two most similar texts."""
    left, right = sides.entries()
    side = 0 if sides.right is None else 1
    ranked = sorted(pairs, key=lambda pair: -pair[2])
    degree = {(0, i): similarity for i, _, similarity in reversed(ranked)}
    for group in group_connected(((0, i), (side, j)) for i, j, _ in ranked):
        first, *others = group
        one = [first] if side == 0 else [each for each in group if each[0] == 0]
        rest = others if side == 0 else [each for each in group if each[0] == 1]
        a = tuple(entry for _, place in one for entry in left[place])
        b = tuple(entry for _, place in rest for entry in right[place])
        yield Hit("template", degree[first], a, b)
