"""In which samples two sides differ: found once, then filtered and shown a page at a time."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress
from typing import Literal, NamedTuple, get_args

from coreeval.releases.diff import NOT_THERE, Move
from coreeval.releases.release import texts_sha256
from coreeval.schema import Value
from coreeval.tools.stores.run_queries import SampleState
from coreeval.viewer.compared import Compared

Kind = Literal["outcome", "updated", "semantic", "label"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEPT = 4
"""Comparisons that are remembered, so that a page of one that was seen needs no other look."""


class Difference(NamedTuple):
    """A sample in which two sides differ."""

    sample: str
    before: str
    """Its outcome there, or `not there`."""
    after: str
    kinds: tuple[Kind, ...]
    """What differs; none where only one side has it."""


class DifferenceFilter(Value):
    """Which differences are shown: those that meet all that is said."""

    kind: Kind | None = None
    before: str | None = None
    """An outcome, or `not there`."""
    after: str | None = None
    text: str = ""
    """Part of an id; capitals do not matter."""


@dataclass(frozen=True)
class Contrast:
    """All differences between two sides."""

    differences: tuple[Difference, ...]
    """In the order of the later side; what only the earlier has comes last."""
    shared: int
    """Samples that both have."""

    @cached_property
    def moves(self) -> list[Move]:
        """Samples whose outcome differs, by both outcomes; the most frequent first."""
        found = Counter((one.before, one.after) for one in self.differences)
        return [
            Move(before=before, after=after, samples=number)
            for (before, after), number in found.most_common()
            if before != after
        ]

    @cached_property
    def kinds(self) -> Mapping[Kind, int]:
        """How many samples differ in each way."""
        found = Counter(kind for one in self.differences for kind in one.kinds)
        return {kind: found[kind] for kind in KINDS}

    @cached_property
    def one_sided(self) -> int:
        """How many samples only one side has."""
        return sum(not one.kinds for one in self.differences)

    def chosen(self, by: DifferenceFilter) -> Sequence[Difference]:
        """Return the differences that meet a filter."""
        everything = by == DifferenceFilter()
        return self.differences if everything else [o for o in self.differences if _meets(o, by)]


def contrast(before: Compared, after: Compared) -> Contrast:
    """Return in which samples two sides differ; it is found anew when one of them has changed."""
    return _contrast(before, before.stamp, after, after.stamp)


@lru_cache(KEPT)
def _contrast(before: Compared, _: object, after: Compared, __: object) -> Contrast:
    return contrast_of(before.standings.all(), after.standings.all())


def contrast_of(before: Iterable[SampleState], after: Iterable[SampleState]) -> Contrast:
    """Return in which samples a later side differs from an earlier one."""
    old = {row[0]: row for row in before}
    found, shared = list[Difference](), 0
    for row in after:
        was = old.pop(row[0], None)
        shared += was is not None
        kinds = _kinds(was, row) if was else ()
        if was is None or kinds:
            found.append(Difference(row[0], was[2] if was else NOT_THERE, row[2], kinds))
    gone = (Difference(row[0], row[2], NOT_THERE, ()) for row in old.values())
    return Contrast((*found, *gone), shared)


def _kinds(old: SampleState, new: SampleState) -> tuple[Kind, ...]:
    _, label, outcome, updated, semantic = old
    _, other_label, other_outcome, other_updated, other_semantic = new
    differs = (
        outcome != other_outcome,
        updated != other_updated and not _same(updated, other_updated),
        semantic != other_semantic and not _same(semantic, other_semantic),
        label != other_label,
    )
    return tuple(compress(KINDS, differs))


def _same(old: str | None, new: str | None) -> bool:
    """Tell whether two texts are the same, each as JSON in any order or as a digest."""
    if not old or not new:
        return False
    if old.startswith("{") and new.startswith("{"):
        return len(old) == len(new) and json.loads(old) == json.loads(new)
    return _digest(old) == _digest(new)


def _digest(text: str) -> str:
    return texts_sha256(json.loads(text)) if text.startswith("{") else text


def _meets(one: Difference, by: DifferenceFilter) -> bool:
    return (
        (by.kind is None or by.kind in one.kinds)
        and by.before in (None, one.before)
        and by.after in (None, one.after)
        and by.text.casefold() in one.sample.casefold()
    )
