"""Verdicts on the differences between two splits, by rule, with their assumptions.

This module also computes the effect of partly memorising a split, and how often such a test detects
it: a verdict that splits are comparable requires both. A caveat is shown with its verdict
everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from coreeval.evaluation.detectors.pcr import CAVEATS, Basis
from coreeval.evaluation.pcr.ratio import ALPHA, Scale, performance_consistency_ratio
from coreeval.evaluation.statistics import SIGNIFICANCE, Estimate, Interval
from coreeval.tools.formatting import format_estimate, format_interval, format_quantity

SHARES: Final = (0.1, 0.25, 0.5)
QUARTER: Final = 0.25
"""The dose that the verdict `comparable` rules out."""


class Dose(NamedTuple):
    """The effect of memorising a share of one split; memorised items are right and consistent."""

    share: float
    points: float
    """The effect on performance, in points (hundredths)."""
    difference: float
    """The effect on PCR; negative if performance exceeds consistency."""
    found: float
    """The share of tests with this number of items that detect the effect."""


def estimate_doses(
    performance: float,
    consistency: float,
    errors: tuple[float, float],
    *,
    alpha: float,
    scale: Scale,
) -> tuple[Dose, ...]:
    """Return the effect of each of `SHARES` on a model that has seen neither split.

    Args:
        performance: M, from 0 to 1.
        consistency: C, from 0 to 1.
        errors: Standard errors of the difference in points and of the difference in PCR.
        alpha: Alpha of PCR.
        scale: Scale of PCR.
    """

    def pcr(share: float) -> float:
        m, c = (share + (1 - share) * each for each in (performance, consistency))
        return performance_consistency_ratio(m, c, alpha=alpha, scale=scale)

    found = []
    for share in SHARES:
        points, difference = 100 * share * (1 - performance), pcr(share) - pcr(0)
        found.append(Dose(share, points, difference, _power((points, difference), errors)))
    return tuple(found)


def _power(effects: Sequence[float], errors: Sequence[float]) -> float:
    """Return the power of the more powerful of two tests, each at half of 5 % (Bonferroni)."""
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]  # slow to import

    least = -ndtri(SIGNIFICANCE / 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.asarray(effects) / np.asarray(errors)
    return float(ndtr(np.nanmax([*away, -np.inf]) - least)) if np.isfinite(away).any() else np.nan


Verdict = Literal[
    "fine_tuned",
    "contaminated",
    "difficulty_or_memory",
    "comparable",
    "inconclusive",
    "insufficient_signal",
]

MIN_ITEMS: Final = 20
"""The fewest items for a verdict.

Our choice: with fewer, a bootstrap cannot show how they vary.
"""
MARGINS: Final[Mapping[Scale, float]] = {"tanh": 0.03, "linear": 0.03, "sigmoid": 0.0075}
"""The largest difference that counts as none, for each scale.

The paper gives no number. This value is halfway between the smallest difference that the paper
interprets as training on a split (FinQA, FinMA-NLP, train - test: 0.0377) and the largest that the
paper ignores (AlphaFin, Baichuan: 0.0213; Tables 7 and 9), in each scale.
"""

HIDDEN: Final = 0.1
"""Slope of the scale, relative to that at 0, below which alike values are not evidence.

Our choice.
"""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence for a verdict; the first entry of each pair is for the training split."""

    splits: tuple[str, str]
    scored: tuple[int, int]
    """The number of items with a reference."""
    clusters: tuple[int, int]
    performance: tuple[float, float]
    difference: Estimate
    """The difference of PCR, beyond the references if they are the basis."""
    points: Estimate
    """The difference of performance in points (hundredths), likewise."""
    p_value: float
    """The p-value of the null hypothesis that neither differs, adjusted for all comparisons
    together."""
    basis: Basis
    references: int = 0
    covariates: str = ""
    """A clause that says how the texts of the splits differ."""
    doses: Sequence[Dose]
    alpha: float
    margin: float
    slope: float
    """Slope of the scale at the steeper of both PCR values, relative to the slope at 0."""


Rule = Callable[[Evidence], str | None]
"""A rule that returns its reason if it holds, otherwise None."""


def _few_items(seen: Evidence) -> str | None:
    both = zip(seen.splits, seen.scored, seen.clusters, strict=True)
    short = [
        f"{name} has {format_quantity(n, 'item')} with a reference"
        if n < MIN_ITEMS
        else f"{name} has items from only {clusters} documents"
        for name, n, clusters in both
        if min(n, clusters) < MIN_ITEMS
    ]
    return f"{' and '.join(short)}; a verdict needs at least {MIN_ITEMS}" if short else None


def _no_signal(seen: Evidence) -> str | None:
    """Hold if alpha is at least half of both numerators (CAP, equation 8)."""
    if not max(seen.performance) <= seen.alpha:
        return None
    found = " and ".join(f"{value:.4f}" for value in seen.performance)
    return (
        f"performance ({found}) does not exceed alpha ({seen.alpha:g}) in either split, so PCR "
        "depends on consistency alone"
    )


def _undefined(seen: Evidence) -> str | None:
    if np.isfinite([*seen.difference, *seen.points, seen.p_value]).all():
        return None
    return (
        "the difference in PCR or its interval is undefined: in one of the splits, or in a "
        "resample of its items, either consistency and alpha are both 0 or no item has a reference"
    )


def _alike(seen: Evidence) -> bool:
    """Return whether the whole interval of PCR is inside the margin.

    This is equivalent to two one-sided tests at 2.5 % (Schuirmann 1987): it requires evidence of
    equivalence, not just a lack of evidence for a difference.
    """
    return max(abs(seen.difference.ci_low), abs(seen.difference.ci_high)) < seen.margin


def _hidden(seen: Evidence) -> str | None:
    """Hold if PCR is alike due to the end of its scale, as with consistency near 0."""
    if not (seen.slope < HIDDEN and _alike(seen)):
        return None
    return (
        "performance is far above consistency, so PCR is at the limit of its scale in both splits "
        "and differences are hidden; with --scale linear, there is no limit"
    )


def _equivalent(seen: Evidence) -> str | None:
    """Hold if PCR is alike and memorisation of a quarter of either split is ruled out."""
    largest = max(abs(seen.points.ci_low), abs(seen.points.ci_high))
    quarter = _quarter(seen)
    if not (_alike(seen) and largest < quarter.points):
        return None
    return (
        f"the whole interval of the difference in PCR ({_span(seen.difference)}) is within "
        f"{seen.margin:g} of 0, and that of the difference in performance ({_in_points(seen)}) "
        f"excludes {quarter.points:.1f} points, the effect of memorizing a quarter of a "
        "split: the model has seen neither split, or both equally (CAP, section 3.2)"
        f"{_if_alike(seen)}"
    )


def _if_alike(seen: Evidence) -> str:
    return "" if seen.basis != "none" else ", if the splits are equally hard"


def _differs(seen: Evidence) -> float:
    """Return the sign of the difference in performance if there is evidence for one, or 0."""
    sign = float(np.sign(seen.points.estimate))
    shown = any(
        each.ci_low > 0 if sign > 0 else each.ci_high < 0 for each in (seen.points, seen.difference)
    )
    return sign if shown and seen.p_value <= SIGNIFICANCE else 0.0


def _tuned(seen: Evidence) -> str | None:
    return _remembered(seen, 0) if seen.basis != "none" and _differs(seen) > 0 else None


def _leaked(seen: Evidence) -> str | None:
    return _remembered(seen, 1) if seen.basis != "none" and _differs(seen) < 0 else None


def _remembered(seen: Evidence, split: int) -> str:
    return (
        f"{_gap(seen)}: the model was trained on the {seen.splits[split]} split (CAP, section "
        f"3.2); {CAVEATS[seen.basis]}"
    )


def _either(seen: Evidence) -> str | None:
    if seen.basis != "none" or not _differs(seen):
        return None
    unlike = f"; the splits are not treated as exchangeable, because {seen.covariates}"
    return f"{_gap(seen)}: {CAVEATS['none']}{unlike if seen.covariates else ''}"


def _undecided(seen: Evidence) -> str:
    chances = [
        f"{dose.share:.0%} of a split (an effect of {dose.points:.1f} points) in "
        f"{dose.found:.0%} of cases"
        for dose in seen.doses
        if np.isfinite(dose.found)
    ]
    known = "; a test with this many items would detect memorization of "
    return f"{_gap(seen)}{known + ', '.join(chances) if chances else ''}"


RULES: Final[tuple[tuple[Verdict, Rule], ...]] = (
    ("inconclusive", _few_items),
    ("insufficient_signal", _no_signal),
    ("inconclusive", _undefined),
    ("inconclusive", _hidden),
    ("comparable", _equivalent),
    ("fine_tuned", _tuned),
    ("contaminated", _leaked),
    ("difficulty_or_memory", _either),
    ("inconclusive", _undecided),
)
"""The rules in order; the first that holds gives the verdict."""


def verdict_of(seen: Evidence) -> tuple[Verdict, str]:
    """Return the verdict and the reason from the rule that applies."""
    return next((verdict, why) for verdict, rule in RULES if (why := rule(seen)))


def _quarter(seen: Evidence) -> Dose:
    return next(dose for dose in seen.doses if dose.share == QUARTER)


def _gap(seen: Evidence) -> str:
    """Describe both differences with their intervals and p-value."""
    beyond = (
        f" beyond what {seen.references} references predict" if seen.basis == "references" else ""
    )
    first, second = seen.splits
    return (
        f"from {second} to {first}, performance changes by {_in_points(seen)} points and PCR by "
        f"{format_estimate(seen.difference, '+.3f')}{beyond}; {_p(seen)}"
    )


def _in_points(seen: Evidence) -> str:
    return format_estimate(seen.points, "+.1f")


def _span(found: Estimate) -> str:
    return format_interval(found.ci_low, found.ci_high, "+.3f")


def _p(seen: Evidence) -> str:
    return (
        f"p is {seen.p_value:.4f}, {'above' if seen.p_value > SIGNIFICANCE else 'at most'} "
        f"{SIGNIFICANCE:g}"
    )


@dataclass(frozen=True, kw_only=True)
class PcrOptions:
    """The options to compute and interpret PCR."""

    alpha: float = ALPHA
    scale: Scale = "tanh"
    interval: Interval = "percentile"
    margin: float | None = None
    """The margin; None for the scale's margin in `MARGINS`."""

    @property
    def near(self) -> float:
        """The largest absolute difference that counts as no difference."""
        return MARGINS[self.scale] if self.margin is None else self.margin
