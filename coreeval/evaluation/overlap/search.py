"""What two benchmarks have in common, or one with itself: exact, normalised and near hits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from coreeval.evaluation.overlap.near import NearPairs, near_pairs
from coreeval.evaluation.overlap.normal import key_of
from coreeval.evaluation.overlap.texts import Entry, Texts

Kind = Literal["exact", "normalised", "near"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
THRESHOLD = 0.4
"""Resemblance of a near hit: between what chance gives and what edits leave, docs/overlap.md."""
Groups = Mapping[str, Sequence[Entry]]
"""The entries by what is the same about them, see `key_of`."""


@dataclass(frozen=True)
class Hit:
    """Two texts that are the same or nearly so, and the items that have them."""

    kind: Kind
    similarity: float
    """Jaccard index of their shingles; 1 where the texts are the same but for case and signs."""
    a: tuple[Entry, ...]
    """Items with the first text, which may differ in case, signs and blanks."""
    b: tuple[Entry, ...]

    @property
    def same_answer(self) -> bool | None:
        """Whether all its items have one answer; None where one of them has none."""
        answers = {entry.answer for entry in (*self.a, *self.b)}
        return None if None in answers else len(answers) == 1


@dataclass(frozen=True)
class Overlap:
    """The hits between two benchmarks, or within one, the surest first."""

    a: Texts
    b: Texts | None
    threshold: float
    hits: tuple[Hit, ...]
    short: tuple[int, ...]
    """Different texts of each benchmark that are too short to be compared but as a whole."""
    crowded: int
    """Buckets in which not each text was compared with each."""

    def items(self, kinds: Sequence[Kind] = KINDS) -> tuple[int, ...]:
        """Return how many items of each benchmark are in a hit of some kinds."""
        found = [hit for hit in self.hits if hit.kind in kinds]
        left, right = ({each.id for hit in found for each in side(hit)} for side in (_a, _b))
        return (len(left | right),) if self.b is None else (len(left), len(right))


def _a(hit: Hit) -> tuple[Entry, ...]:
    return hit.a


def _b(hit: Hit) -> tuple[Entry, ...]:
    return hit.b


def find_overlap(a: Texts, b: Texts | None = None, *, threshold: float = THRESHOLD) -> Overlap:
    """Find what two benchmarks have in common; with one, what it has twice.

    Args:
        a: The first benchmark.
        b: The second; None to look within the first.
        threshold: The least resemblance of a near hit, above 0 and below 1.
    """
    left, right = _grouped(a), None if b is None else _grouped(b)
    near = near_pairs(
        [each[0].text for each in left.values()],
        None if right is None else [each[0].text for each in right.values()],
        threshold,
    )
    whole = _twice(left) if right is None else _shared(left, right)
    hits = [*whole, *_near(left, left if right is None else right, near)]
    hits.sort(key=lambda hit: (KINDS.index(hit.kind), -hit.similarity))
    short = near.short[:1] if right is None else near.short
    return Overlap(a, b, threshold, tuple(hits), short, near.crowded)


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


def _near(left: Groups, right: Groups, near: NearPairs) -> Iterator[Hit]:
    keys = list(left), list(right)
    for i, j, similarity in near.pairs:
        one, other = keys[0][i], keys[1][j]
        if one != other:
            yield Hit("near", similarity, tuple(left[one]), tuple(right[other]))
