"""What an owner signs off: acceptance, balance of the labels, their noise, and coverage by news."""

from collections import Counter
from collections.abc import Collection
from typing import get_args

from coreeval.evaluation.scores import Score, score_proportion
from coreeval.releases.copied import copied
from coreeval.releases.release_manifest import LabelNoise, LabelShare, Quality, RungCoverage
from coreeval.schema import Rung, Task
from coreeval.tools.stores.run_store import RunStore


def quality_of(
    store: RunStore, task: Task, *, withheld: Collection[str], followed: Quality | None = None
) -> Quality:
    """Measure what a release publishes; withheld samples count as not accepted.

    Args:
        store: The record of the run.
        task: Names the labels.
        withheld: Ids of samples that are not published.
        followed: Of the release that kept samples were taken from: they were judged there.
    """
    total, accepted = Counter[str](), Counter[str]()
    kept = 0
    found, used = Counter[Rung](), Counter[Rung]()
    for sample_id, label, outcome, rung, kept_from in store.fates():
        published = outcome == "accepted" and sample_id not in withheld
        total[label] += 1
        found[rung] += 1
        accepted[label] += published
        used[rung] += published
        kept += published and kept_from is not None
    names = [label.name for label in task.labels]
    return Quality(
        acceptance=score_proportion(accepted.total(), total.total()),
        by_label=tuple(_share(name, total, accepted) for name in names),
        balance_shift=balance_shift(total, accepted),
        label_noise=_label_noise(
            store,
            kept=kept,
            renewed=accepted.total() - kept,
            there=followed.label_noise.bound if followed else None,
        ),
        evidence=score_proportion(total.total() - found["none"], total.total()),
        rungs=tuple(
            RungCoverage(rung=rung, samples=found[rung], accepted=used[rung])
            for rung in get_args(Rung)
            if found[rung]
        ),
        overlap=copied(store, withheld=withheld),
    )


def _share(name: str, total: Counter[str], accepted: Counter[str]) -> LabelShare:
    return LabelShare(
        label=name,
        total=total[name],
        accepted=score_proportion(accepted[name], total[name]),
        original_share=total[name] / max(total.total(), 1),
        updated_share=accepted[name] / accepted.total() if accepted.total() else None,
    )


def balance_shift(before: Counter[str], after: Counter[str]) -> float | None:
    """Return the total variation distance of two label distributions, 0 (the same) to 1."""
    if not before.total() or not after.total():
        return None
    apart = (
        abs(before[name] / before.total() - after[name] / after.total()) for name in before | after
    )
    return sum(apart) / 2


def _label_noise(store: RunStore, *, kept: int, renewed: int, there: float | None) -> LabelNoise:
    originals, contrary = store.verdict_counts("original_label")
    texts, refused = store.verdict_counts("label_preserved")
    original, updated = score_proportion(contrary, originals), score_proportion(refused, texts)
    here = noise_bound(original, updated)
    bound = bound_of_both(here, renewed, there, kept)
    return LabelNoise(original=original, updated=updated, bound=bound)


def bound_of_both(here: float | None, renewed: int, there: float | None, kept: int) -> float | None:
    """Return the bound over renewed and kept texts, each by that of the run that judged it.

    None where texts of either kind have no bound.
    """
    parts = [(bound, count) for bound, count in ((here, renewed), (there, kept)) if count]
    if not parts:
        return here
    shares = [bound * count for bound, count in parts if bound is not None]
    return sum(shares) / (renewed + kept) if len(shares) == len(parts) else None


def noise_bound(original: Score, updated: Score) -> float | None:
    """Return the share of accepted texts that may have a wrong label; None without judgements.

    A text is accepted if a blind judge reads its label. One whose label was lost passes only by the
    judge's mistake. If the judge is wrong on new texts no more often than it disagrees with the
    originals (`m`; the benchmark's own noise makes that more, not less), at most `r / (1 - m)` of
    the texts lost their label where `r` were refused, `m` of those passed, and `1 - r` passed in
    all. Both are taken at the upper end of their intervals.
    """
    if original.ci_high is None or updated.ci_high is None:
        return None
    mistaken, refused = original.ci_high, updated.ci_high
    passed = (1 - mistaken) * (1 - refused)
    return min(1.0, refused * mistaken / passed) if passed else 1.0
