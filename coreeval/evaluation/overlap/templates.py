"""Texts that are the same but for numbers, names and short insertions: items of one template."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from coreeval.evaluation.overlap.minhash import COARSE
from coreeval.evaluation.overlap.near import NearPairs, resembling
from coreeval.evaluation.overlap.normal import plain_words
from coreeval.evaluation.overlap.shingles import shingles_of
from coreeval.evaluation.overlap.slots import Slots

TEMPLATE = 0.6
"""Least resemblance of two texts whose numbers and names are masked: docs/overlap.md."""
Node = tuple[int, int]
"""A side and the place of a text there."""


def template_pairs(left: Sequence[str], right: Sequence[str] | None, slots: Slots) -> NearPairs:
    """Return the pairs between two lists of texts, or within one, that have one template.

    Args:
        left: Texts.
        right: Other texts; None for pairs within the first.
        slots: What is a number and what a name in them.
    """
    sides = [each for each in (left, right) if each is not None]
    cut = [shingles_of([plain_words(slots.mask(text)) for text in each]) for each in sides]
    return resembling(cut, TEMPLATE, COARSE)


def connected(pairs: Iterable[tuple[Node, Node]]) -> Iterator[list[Node]]:
    """Yield what is connected by pairs, each group in the order of its first appearance."""
    leader: dict[Node, Node] = {}
    for one, other in pairs:
        first, second = _leader(leader, one), _leader(leader, other)
        leader[second] = first
    groups: dict[Node, list[Node]] = defaultdict(list)
    for each in leader:
        groups[_leader(leader, each)].append(each)
    yield from groups.values()


def _leader(leader: dict[Node, Node], each: Node) -> Node:
    above = leader.setdefault(each, each)
    while above != leader[above]:
        leader[each] = above = leader[above]
    return above
