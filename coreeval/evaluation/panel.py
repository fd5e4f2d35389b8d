"""Does one target do better on the original than its score on the updated arm lets expect?

Every target is held against the line of all others (`excess.py`, after ConStat).
"""

from collections.abc import Collection, Sequence
from typing import Final, Literal

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.values import MIN_SAMPLES
from coreeval.evaluation.excess import MIN_OTHERS, Standing, excess_over
from coreeval.evaluation.scoring.answers import mean_of_templates, resample
from coreeval.evaluation.scoring.classification import DRAWS, LEVEL, Score
from coreeval.evaluation.statistics import SIGNIFICANCE, holm
from coreeval.schema import Value

MIN_TARGETS: Final = MIN_OTHERS + 1
"""The tested one and the others."""

Metric = Literal["accuracy", "macro_f1"]


class Excess(Value):
    """One target against the others."""

    target: str
    original: float
    updated: float
    excess: Score
    """Original score beyond what the others' line expects."""
    p_value: float
    """One-sided, that there is no excess."""
    p_adjusted: float
    """For all targets together (Holm 1979)."""
    stands_out: bool


class Panel(Value):
    """All targets, each against all others."""

    metric: Metric
    targets: tuple[Excess, ...]
    note: str
    """Why there are none, or what the panel takes for granted."""
    level: float = LEVEL


def standing(
    coded: Coded, *, metric: Metric = "accuracy", seed: int = 7, draws: int = DRAWS
) -> Standing | None:
    """Return a target's scores on both arms; None where fewer than 20 samples are shared.

    With the same seed every target of a benchmark has the same draws of samples.
    """
    views = coded.views(("original", "updated"))
    if views is None or int(views[0].counted.any(axis=1).sum()) < MIN_SAMPLES:
        return None
    first, second = resample(coded.table, views, seed=seed, draws=draws)
    values = [mean_of_templates(getattr(each, metric), each) for each in (first, second)]
    return Standing(coded.target, first.n, *values)


def panel(
    standings: Sequence[Standing],
    *,
    references: Collection[str] = (),
    metric: Metric = "accuracy",
) -> Panel:
    """Test each target but the references against all others; fewer than five are too few."""
    if len(standings) < MIN_TARGETS:
        note = f"panel too small: {len(standings)} of {MIN_TARGETS} targets"
        return Panel(metric=metric, targets=(), note=note)
    some = [each for each in standings if each.target not in references]
    tested = [
        excess_over(each, [other for other in standings if other is not each]) for each in some
    ]
    fair = holm([p for _, p in tested])
    return Panel(
        metric=metric,
        targets=tuple(
            Excess(
                target=each.target,
                original=float(each.front[0]),
                updated=float(each.back[0]),
                excess=excess,
                p_value=p,
                p_adjusted=adjusted,
                stands_out=adjusted <= SIGNIFICANCE,
            )
            for each, (excess, p), adjusted in zip(some, tested, fair, strict=True)
        ),
        note="each target is compared with the others, which are taken to remember nothing: where "
        "most do, none stands out",
    )
