"""Which samples of a release have gone stale: too old, or known to a target."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from coreeval.config.dates import parse_age
from coreeval.releases.manifest import Manifest
from coreeval.releases.release_manifest import SampleRow
from coreeval.schema import Value
from coreeval.tools.cutoffs import TargetDates

StaleReason = Literal["age", "cutoff", "undated"]


class StaleSample(Value):
    """A sample whose updated text should be made anew, and why."""

    id: str
    why: StaleReason
    """Older than evidence may be; from before a new target's cutoff; without any date."""
    oldest_evidence: str | None
    target: str = ""
    """The first of the targets that may know it."""


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """What the evidence of a sample must not lie before; one old piece is enough."""

    oldest: datetime | None = None
    """None where evidence may be of any age."""
    cutoffs: Mapping[str, datetime] = field(default_factory=dict)
    """For each target that is new, the first moment after its cutoff and its release."""

    def passed_by(self, sample: SampleRow) -> StaleSample | None:
        """Return why a sample of the updated arm is stale; None for a fresh one."""
        if self.oldest is None and not self.cutoffs:
            return None
        if sample.oldest_evidence is None:
            return StaleSample(id=sample.id, why="undated", oldest_evidence=None)
        dated = datetime.fromisoformat(sample.oldest_evidence)
        if self.oldest is not None and dated < self.oldest:
            return StaleSample(id=sample.id, why="age", oldest_evidence=sample.oldest_evidence)
        for target, cutoff in self.cutoffs.items():
            if dated < cutoff:
                return StaleSample(
                    id=sample.id,
                    why="cutoff",
                    oldest_evidence=sample.oldest_evidence,
                    target=target,
                )
        return None


def iter_stale_samples(samples: Iterable[SampleRow], horizon: Horizon) -> Iterator[StaleSample]:
    """Yield the accepted samples of a release that lie behind the horizon."""
    for sample in samples:
        if is_accepted(sample) and (stale := horizon.passed_by(sample)):
            yield stale


def find_horizon(run: Manifest, before: Sequence[TargetDates] | None) -> Horizon | None:
    """Return what a run asked of the evidence of samples that it kept; None if it kept none.

    Args:
        run: The run's manifest.
        before: What was known of targets when the release that it follows was made.
    """
    if run.parent is None:
        return None
    stale_after = run.parent.stale_after
    return Horizon(
        oldest=parse_age(stale_after).subtract_from(datetime.fromisoformat(run.now))
        if stale_after
        else None,
        cutoffs=find_new_cutoffs(before, run.cutoffs or ()),
    )


def is_accepted(sample: SampleRow) -> bool:
    """Tell whether a sample is in the updated arm because it was accepted."""
    return sample.outcome == "accepted" and sample.updated_sha256 is not None


def find_new_cutoffs(
    before: Sequence[TargetDates] | None, now: Sequence[TargetDates]
) -> dict[str, datetime]:
    """Return the cutoffs of targets that are new, or of which another date is known than before.

    A target of which no date is known is left out: nobody can tell what it was trained on.

    Args:
        before: What was known when the release was made; None where that was not recorded.
        now: What is known now.
    """
    known = {each.target: each.latest for each in before or ()}
    found = dict[str, datetime]()
    for each in now:
        latest, earlier = each.latest, known.get(each.target)
        if latest and (earlier is None or earlier.counts_from != latest.counts_from):
            found[each.target] = latest.counts_from
    return found
