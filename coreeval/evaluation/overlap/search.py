"""From two benchmarks, or one, to their hits: each pair of texts is of one kind at most."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from coreeval.evaluation.overlap.hits import KINDS, Hit, Kind, Overlap, Search, Span
from coreeval.evaluation.overlap.letters import boilerplate_of
from coreeval.evaluation.overlap.near import near_pairs
from coreeval.evaluation.overlap.normal import key_of
from coreeval.evaluation.overlap.paraphrases import paraphrase_pairs
from coreeval.evaluation.overlap.passages import find_passages
from coreeval.evaluation.overlap.slots import Agreement, Slots
from coreeval.evaluation.overlap.templates import connected, template_pairs
from coreeval.evaluation.overlap.texts import Entry, Texts

Groups = Mapping[str, Sequence[Entry]]
"""The entries by what is the same about them, see `key_of`."""
Pair = tuple[int, int, float]
"""Places of two different texts and how alike they are."""
_Direction = tuple[Sequence[str] | None, Sequence[str] | None, Literal["a", "b"]]
"""Texts to find, those to find them in, and the side of the latter."""


def find_overlap(a: Texts, b: Texts | None = None, *, search: Search | None = None) -> Overlap:
    """Find what two benchmarks have in common; with one, what it has twice.

    Args:
        a: The first benchmark.
        b: The second; None to look within the first.
        search: How alike two texts are to be.
    """
    how = search or Search()
    left, right = _grouped(a), None if b is None else _grouped(b)
    sides = _Sides(left, right)
    near = near_pairs(*sides.texts, how.threshold)
    pairs = _pairs_by_kind(sides, near.pairs, how)
    whole = _twice(left) if right is None else _shared(left, right)
    hits = [*whole, *_hits(sides, pairs), *_templates(sides, pairs.template)]
    hits.sort(key=lambda hit: (KINDS.index(hit.kind), -hit.similarity))
    short = near.short[:1] if right is None else near.short
    return Overlap(a, b, how, tuple(hits), short, near.crowded + pairs.crowded)


def _grouped(texts: Texts) -> Groups:
    groups: dict[str, list[Entry]] = {}
    for entry in texts.entries:
        groups.setdefault(key_of(entry.text), []).append(entry)
    return groups


def _shared(left: Groups, right: Groups) -> Iterator[Hit]:
    """Yield a hit for each text that both have; exact if an item of each has the very same."""
    for key in (key for key in left if key in right):
        a, b = left[key], right[key]
        same = {entry.text for entry in a} & {entry.text for entry in b}
        yield Hit("exact" if same else "normalised", 1.0, tuple(a), tuple(b))


def _twice(groups: Groups) -> Iterator[Hit]:
    """Yield a hit for each text that several items have; exact if two have the very same."""
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
        """The first item's text of each."""
        return _first_texts(self.left), None if self.right is None else _first_texts(self.right)

    def entries(self) -> tuple[list[Sequence[Entry]], list[Sequence[Entry]]]:
        """Return the items of each text, by side; those of one benchmark twice."""
        left = list(self.left.values())
        return left, left if self.right is None else list(self.right.values())

    def same(self) -> set[tuple[int, int]]:
        """Return the places of texts that both benchmarks have."""
        if self.right is None:
            return set()
        places = {key: place for place, key in enumerate(self.left)}
        return {(places[key], at) for at, key in enumerate(self.right) if key in places}

    def compare(self, slots: Slots, pair: Pair) -> Agreement:
        """Return whether two texts have the same numbers and names."""
        left, right = self.texts
        return slots.compare(left[pair[0]], (left if right is None else right)[pair[1]])


def _first_texts(groups: Groups) -> list[str]:
    return [entries[0].text for entries in groups.values()]


@dataclass
class _Pairs:
    near: list[Pair] = field(default_factory=list)
    contained: list[tuple[Pair, Span]] = field(default_factory=list)
    paraphrase: list[Pair] = field(default_factory=list)
    template: list[Pair] = field(default_factory=list)
    crowded: int = 0
    """Buckets in which not each text was compared with each."""


def _pairs_by_kind(sides: _Sides, alike: Iterable[Pair], how: Search) -> _Pairs:
    """Return the pairs of each kind, given those that are alike as a whole."""
    left, right = sides.texts
    slots = Slots([*left, *(right or [])])
    known, found = sides.same(), _Pairs()
    for pair in (each for each in alike if each[:2] not in known):
        differ = sides.compare(slots, pair) == "differ"
        (found.template if differ else found.near).append(pair)
    known.update(pair[:2] for pair in found.near)
    masked = template_pairs(left, right, slots)
    found.crowded = masked.crowded
    for pair in (each for each in masked.pairs if each[:2] not in known):
        agree = sides.compare(slots, pair) == "agree"
        (found.near if agree else found.template).append(pair)
    known.update(pair[:2] for pair in found.near)
    found.contained = list(_contained(sides, slots, known, how.threshold))
    known.update(pair[:2] for pair, _ in found.contained)
    if how.embeds is not None:
        known.update(pair[:2] for pair in found.template)
        found.paraphrase = [
            pair
            for pair in paraphrase_pairs(left, right, how.embeds, how.paraphrase)
            if pair[:2] not in known and sides.compare(slots, pair) != "differ"
        ]
    return found


def _contained(
    sides: _Sides, slots: Slots, known: set[tuple[int, int]], threshold: float
) -> Iterator[tuple[Pair, Span]]:
    """Yield texts of one side that stand inside one of the other, in either direction."""
    left, right = sides.texts
    boilerplate = boilerplate_of([left] if right is None else [left, right])
    directions: tuple[_Direction, ...] = ((left, right, "b"), (right, left, "a"))
    for items, hosts, side in directions:
        if items is None:
            continue
        texts = items if hosts is None else hosts
        for each in find_passages(items, hosts, threshold, boilerplate):
            places = (each.item, each.host) if side == "b" else (each.host, each.item)
            part = texts[each.host][each.start : each.end]
            if places not in known and slots.compare(items[each.item], part) != "differ":
                yield (*places, each.similarity), Span(side, each.start, each.end)


def _hits(sides: _Sides, pairs: _Pairs) -> Iterator[Hit]:
    left, right = sides.entries()
    of_kind: tuple[tuple[Kind, list[Pair]], ...] = (
        ("near", pairs.near),
        ("paraphrase", pairs.paraphrase),
    )
    for kind, found in of_kind:
        for i, j, similarity in found:
            yield Hit(kind, similarity, tuple(left[i]), tuple(right[j]))
    for (i, j, similarity), span in pairs.contained:
        # the text whose place the span gives is the first item's, which stands for the others
        yield Hit("contained", similarity, tuple(left[i]), tuple(right[j]), span)


def _templates(sides: _Sides, pairs: Sequence[Pair]) -> Iterator[Hit]:
    """Yield a hit for each template, with all its items; the two likeliest texts come first."""
    left, right = sides.entries()
    side = 0 if sides.right is None else 1
    ranked = sorted(pairs, key=lambda pair: -pair[2])
    degree = {(0, i): similarity for i, _, similarity in reversed(ranked)}
    for group in connected(((0, i), (side, j)) for i, j, _ in ranked):
        first, *others = group
        one = [first] if side == 0 else [each for each in group if each[0] == 0]
        rest = others if side == 0 else [each for each in group if each[0] == 1]
        a = tuple(entry for _, place in one for entry in left[place])
        b = tuple(entry for _, place in rest for entry in right[place])
        yield Hit("template", degree[first], a, b)
