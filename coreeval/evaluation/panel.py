"""Does one target do better on the original than its score on the updated arm lets expect?

After ConStat (Dekoninck, Müller and Vechev 2024, NeurIPS; arXiv 2405.16281): what other targets
score on the original is regressed on what they score on the updated arm, and the tested target's
excess over that line is what its ability does not explain. ConStat has about twenty reference
models, a smoothing spline and a bootstrap. A handful of targets carries a straight line that does
not fall, and the excess is tested as one more observation on it: by Student's t with the scatter of
the others about their line (Draper and Smith 1998, section 3.1). That scatter has both in it, how
targets differ and the chance of samples, but a few others may lie on their line by luck: it counts
as no less than what draws of samples say of the excess (docs/calibration.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.values import MIN_SAMPLES
from coreeval.evaluation.scoring.answers import Floats, mean_of_templates, resample
from coreeval.evaluation.scoring.classification import DRAWS, LEVEL, NOTHING, Score
from coreeval.evaluation.statistics import SIGNIFICANCE, holm
from coreeval.schema import Value

MIN_TARGETS: Final = 5
"""The tested one and four others, which leave a line two degrees of freedom."""

Metric = Literal["accuracy", "macro_f1"]


@dataclass(frozen=True, eq=False)
class Standing:
    """What a target scores on both arms, on the samples they share, then for each draw."""

    target: str
    n: int
    original: Floats
    """Shape (1 + draws,)."""
    updated: Floats


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


def panel(standings: Sequence[Standing], *, metric: Metric = "accuracy") -> Panel:
    """Test each target against the others; with fewer than five the panel is too small."""
    if len(standings) < MIN_TARGETS:
        note = f"panel too small: {len(standings)} of {MIN_TARGETS} targets"
        return Panel(metric=metric, targets=(), note=note)
    original, updated = (
        np.stack([getattr(each, arm) for each in standings]) for arm in ("original", "updated")
    )
    tested = [_tested(original, updated, place) for place in range(len(standings))]
    fair = holm([p for _, _, p in tested])
    return Panel(
        metric=metric,
        targets=tuple(
            Excess(
                target=each.target,
                original=float(each.original[0]),
                updated=float(each.updated[0]),
                excess=_score(excess, half, each.n),
                p_value=p,
                p_adjusted=adjusted,
                stands_out=adjusted <= SIGNIFICANCE,
            )
            for each, (excess, half, p), adjusted in zip(standings, tested, fair, strict=True)
        ),
        note="each target is compared with the others, which are taken to remember nothing: where "
        "most do, none stands out",
    )


def _tested(original: Floats, updated: Floats, place: int) -> tuple[float, float, float]:
    """Return the excess of one target, half the width of its interval, and its p-value."""
    from scipy.stats import t as student  # type: ignore[import-untyped]  # slow to import

    others = np.arange(len(original)) != place
    x, y = updated[others], original[others]
    excess = _excess(x, y, updated[place], original[place])
    free = len(x) - 2
    scatter = _prediction_error(x[:, 0], y[:, 0], updated[place, 0])
    error = max(scatter, float(np.nanstd(excess[1:])))
    if not error:
        return float(excess[0]), 0.0, float(excess[0] <= 0)
    half = float(student.ppf((1 + LEVEL) / 2, free) * error)
    return float(excess[0]), half, float(student.sf(excess[0] / error, free))


def _excess(x: Floats, y: Floats, at: Floats, seen: Floats) -> Floats:
    """Return what was seen less the line's value, for the samples as they are and each draw."""
    centre, level = x.mean(axis=0), y.mean(axis=0)
    return np.asarray(seen - level - _slope(x, y) * (at - centre))


def _slope(x: Floats, y: Floats) -> Floats:
    """Return the least-squares slope, 0 where it would fall; 1 where all x are equal."""
    across = x - x.mean(axis=0)
    spread = (across**2).sum(axis=0)
    slope = (across * (y - y.mean(axis=0))).sum(axis=0) / np.where(spread > 0, spread, 1)
    return np.where(spread > 0, np.maximum(slope, 0), 1.0)


def _prediction_error(x: Floats, y: Floats, at: float) -> float:
    """Return the standard error of one more observation about the line."""
    across = x - x.mean()
    left = y - y.mean() - _slope(x[:, None], y[:, None])[0] * across
    spread = float((across**2).sum())
    lever = 1 + 1 / len(x) + ((at - x.mean()) ** 2 / spread if spread else 0.0)
    return float(np.sqrt((left**2).sum() / (len(x) - 2) * lever))


def _score(excess: float, half: float, n: int) -> Score:
    if not np.isfinite(excess):
        return NOTHING
    return Score(estimate=excess, ci_low=excess - half, ci_high=excess + half, n=n)
