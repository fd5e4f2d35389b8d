"""How new evidence is, beside what each target was trained on."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import get_args

from coreeval.schema import Evidence, Freshness, Precision, Value
from coreeval.tools.cutoffs import TargetDates

CERTAIN_FIRST: tuple[Precision, ...] = get_args(Precision)


def freshness(evidence: Iterable[Evidence], targets: Sequence[TargetDates]) -> Freshness | None:
    """Return how new the evidence of one sample is; None where it has none.

    One old piece is enough for a target to know of it, so the oldest decides, and the least certain
    time says how far the answer can be trusted.
    """
    items = list(evidence)
    if not items:
        return None
    earliest = min(item.published_at for item in items)
    return Freshness(
        earliest=earliest,
        precision=max((item.published_precision for item in items), key=CERTAIN_FIRST.index),
        after_cutoff={each.target: _is_after(earliest, each) for each in targets},
    )


def _is_after(published: datetime, target: TargetDates) -> bool | None:
    latest = target.latest
    return published >= latest.counts_from if latest else None


class TargetFreshness(Value):
    """How many accepted samples rest on evidence that is newer than a target."""

    target: str
    after: int = 0
    """All their evidence was published after the target's cutoff and its release."""
    before: int = 0
    """Some of it was not."""
    unknown: int = 0
    """Neither of the target's dates is known, or the sample is from before this was recorded."""
    by_crawl: int = 0
    """Those of `after` with evidence of which only the crawl time is known: it may be older."""

    @property
    def accepted(self) -> int:
        """The number of accepted samples."""
        return self.after + self.before + self.unknown


def by_target(
    samples: Iterable[Freshness | None], targets: Sequence[TargetDates]
) -> tuple[TargetFreshness, ...]:
    """Count accepted samples for each target."""
    counts = {each.target: Counter[str]() for each in targets}
    for sample in samples:
        for target, counted in counts.items():
            is_after = sample.after_cutoff.get(target) if sample else None
            counted[_NAMES[is_after]] += 1
            counted["by_crawl"] += bool(is_after and sample and sample.precision == "crawl")
    return tuple(TargetFreshness(target=name, **found) for name, found in counts.items())


_NAMES = {True: "after", False: "before", None: "unknown"}
