"""Excess: the score of a model beyond what other models, presumed clean, predict.

After ConStat (Dekoninck, Müller and Vechev 2024, NeurIPS; arXiv 2405.16281): difficulty explains
how the scores of others on two sets of texts relate, but not what a model scores beyond that.
ConStat has about twenty reference models, a smoothing spline and a bootstrap over them. A handful
of models is enough for a straight line, shrunk towards a level one. A handful hardly shows how much
models scatter beyond the chance of items: this scatter is integrated out, with a half-normal prior
(Röver et al. 2021, Research Synthesis Methods 12(4)), as in a random-effects meta-analysis whose
next study is predicted (Higgins, Thompson and Spiegelhalter 2009).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.evaluation.statistics import LEVEL, Array, Estimate

MIN_OTHERS: Final = 4
"""The fewest targets besides the tested one."""
MIN_LINE: Final = 5
"""The fewest others for a gap that depends on ability; with fewer, their mean is subtracted."""
SCATTER: Final = 0.03
"""The scale of the prior of the scatter of clean targets' gaps beyond chance: 3 points (own
choice)."""
SPREAD: Final = 0.25
"""The same scale as a share of the others' mean gap, if that is more (own choice). An arm that
costs many points costs some targets far more than others."""
BEND: Final = 0.5
"""The standard deviation of the additional share of right answers that an arm costs able targets,
compared with weak ones (own choice). It shrinks the slope of the line towards 0, and widens the
uncertainty outside the others' abilities."""
_GRID: Final = 60


@dataclass(frozen=True, eq=False)
class TargetStanding:
    """The scores of a target on two arms, on shared samples, with those of each draw."""

    target: str
    n: int
    front: Array
    """The scores on the arm that may be remembered, of shape (1 + draws,)."""
    back: Array
    """The scores on the arm that cannot be remembered, of the same shape."""


def measure_excess(own: TargetStanding, others: Sequence[TargetStanding]) -> tuple[Score, float]:
    """Return a target's excess over the line of at least four others, and its p-value.

    The p-value is one-sided, for the hypothesis of no excess. With the same seed, every target of a
    benchmark has the same draws of samples, so common effects of samples cancel out.
    """
    models = (own, *others)
    front, back = (np.stack([getattr(each, arm) for each in models]) for arm in ("front", "back"))
    ability = (front[:, 0] + back[:, 0]) / 2
    gaps = front - back
    scatter = max(SCATTER, SPREAD * abs(float(gaps[1:, 0].mean())))
    found = ReferenceLine.of(gaps, ability, bend=BEND, scatter=scatter).excess(scatter)
    value, low, high = found.estimate
    if not np.isfinite(value):
        return NO_SCORE, 1.0
    half = found.p_value / 2
    score = Score(estimate=value, ci_low=low, ci_high=high, n=own.n)
    return score, half if value > 0 else 1 - half


class Excess(NamedTuple):
    """The part that the references do not explain, in the unit of the score."""

    estimate: Estimate
    p_value: float
    standard_error: float
    z: float
    """The standard normal deviate with the same p-value as the estimate."""
    drawn: Array
    """The values of the draws, centred on 0, in standard errors."""


@dataclass(frozen=True, eq=False)
class ReferenceLine:
    """The target's gap minus that of the line through the references' gaps, with uncertainties."""

    excess_drawn: Array
    """The value for the observed items, then for each draw."""
    scatter: float
    """The variance of the references' gaps around their line."""
    chance: float
    """The mean part of the scatter due to the chance of items."""
    free: int
    """The degrees of freedom of the scatter."""
    reach: float
    """The sum of the squared weights of the references: the weight of their scatter, compared with
    1 for the new model's own."""
    bend: float
    """The variance of the line's error at the target's ability."""

    @classmethod
    def of(cls, gaps: Array, ability: Array, *, bend: float, scatter: float) -> "ReferenceLine":
        """Weight the references so that their line is evaluated at the target's ability.

        Args:
            gaps: Gaps of the target, then of each reference, of shape (models, 1 + draws).
            ability: Abilities in the same order, of shape (models,).
            bend: Prior standard deviation of the line's slope.
            scatter: Assumed distance of references from the line, beyond chance, when its slope is
                shrunk towards 0 (ridge regression, with the ratio of the variances as penalty).
        """
        others, count = gaps[1:], len(gaps) - 1
        across = ability[1:] - ability[1:].mean()
        away = float(ability[0] - ability[1:].mean())
        centred = others - others.mean(axis=0)
        chance = float(np.mean((centred[:, 1:] - centred[:, :1]) ** 2) * count / (count - 1))
        spread, drawn_to_0 = float(across @ across), np.inf
        if count >= MIN_LINE and bend > 0:
            drawn_to_0 = (chance + scatter**2) / bend**2
        share = spread / (spread + drawn_to_0) if np.isfinite(drawn_to_0) and spread else 0.0
        slope = share * across / spread if share else np.zeros(count)
        weights = 1 / count + away * slope
        left = centred - np.outer(across, slope @ others)
        about = left - left[:, :1]
        free = count - 1
        return cls(
            excess_drawn=gaps[0] - weights @ others,
            scatter=float(np.sum(left[:, 0] ** 2) / free),
            chance=float(np.mean(np.sum(about[:, 1:] ** 2, axis=0)) / free),
            free=free,
            reach=float(weights @ weights),
            bend=(bend * away * (1 - share)) ** 2,
        )

    def excess(self, prior: float) -> Excess:
        """Return the excess, integrating the models' scatter over its posterior."""
        seen, drawn = float(self.excess_drawn[0]), self.excess_drawn[1:]
        chance = float(np.var(drawn, ddof=1))
        models, weight = self._models(prior)
        errors = np.sqrt(chance + self.bend + models**2 * (1 + self.reach))
        error = float(np.sqrt(weight @ errors**2))
        if not error or not np.isfinite(error) or not np.isfinite(seen):
            return _no_spread(seen, len(drawn))
        p_value = _tails(abs(seen), errors, weight)
        half = _half_width(errors, weight)
        return Excess(
            estimate=Estimate(seen, seen - half, seen + half),
            p_value=p_value,
            standard_error=error,
            z=float(np.copysign(_deviate(p_value), seen)),
            drawn=(drawn - drawn.mean()) / np.sqrt(chance) if chance else np.zeros_like(drawn),
        )

    def _models(self, prior: float) -> tuple[Array, Array]:
        """Return standard deviations of the models' scatter and the probability of each."""
        grid = np.linspace(0, 4 * prior, _GRID) if prior else np.zeros(1)
        if not self.chance and not self.scatter:
            return grid[:1], np.ones(1)
        grid = grid if self.chance else grid[1:]  # without chance, all scatter is the models'
        variance = self.chance + grid**2
        log = -self.free / 2 * (np.log(variance) + self.scatter / variance)
        log -= grid**2 / (2 * prior**2) if prior else 0.0
        weight = np.exp(log - log.max())
        return grid, np.asarray(weight / weight.sum())


def _no_spread(seen: float, draws: int) -> Excess:
    p_value = float("nan") if not np.isfinite(seen) else 1.0 if seen == 0 else 0.0
    undefined = Estimate(seen, *([seen] * 2 if np.isfinite(p_value) else [np.nan] * 2))
    return Excess(undefined, p_value, 0.0, 0.0, np.zeros(draws))


def _tails(value: float, errors: Array, weight: Array) -> float:
    """Return the two-sided tail probability of a mixture of normal distributions around 0."""
    from scipy.special import ndtr  # type: ignore[import-untyped]  # slow to import

    return float(2 * weight @ ndtr(-value / errors))


def _half_width(errors: Array, weight: Array) -> float:
    """Return the value beyond which 5 % of the mixture lies."""
    low, high = 0.0, 10.0 * float(errors.max())
    for _ in range(60):
        value = (low + high) / 2
        low, high = (value, high) if _tails(value, errors, weight) > 1 - LEVEL else (low, value)
    return high


def _deviate(p_value: float) -> float:
    from scipy.special import ndtri

    return float(-ndtri(max(p_value, np.finfo(float).tiny) / 2))
