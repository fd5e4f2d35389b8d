"""What a difference of PCR between two splits says, and by which rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from coreeval.evaluation.pcr.ratio import Scale
from coreeval.evaluation.statistics import SIGNIFICANCE, Estimate

Verdict = Literal["fine_tuned", "contaminated", "comparable", "inconclusive", "insufficient_signal"]

MIN_ITEMS: Final = 20
"""Ours: below it a bootstrap has too few items to tell how they vary."""
MARGINS: Final[Mapping[Scale, float]] = {"tanh": 0.03, "linear": 0.03, "sigmoid": 0.0075}
"""Differences this near to 0 count as none. The paper names no number: it is halfway between the
smallest that it reads as training on a split (FinQA, FinMA-NLP, train - test: 0.0377) and the
largest that it passes over (AlphaFin, Baichuan: 0.0213; Tables 7 and 9), in each scale."""

HIDDEN: Final = 0.1
"""Ours: where the scale shows less than this share of a difference of ratios, likeness is none."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a verdict rests on; the first of each pair is of the training split."""

    splits: tuple[str, str]
    scored: tuple[int, int]
    """Items with a reference."""
    performance: tuple[float, float]
    difference: Estimate
    p_value: float
    """Adjusted for all comparisons made together."""
    detectable: float
    alpha: float
    margin: float
    slope: float
    """How steep the scale is at the steeper of both PCR, as a share of its steepness at 0."""


Rule = Callable[[Evidence], str | None]
"""Why the rule holds, or None."""


def _few_items(seen: Evidence) -> str | None:
    short = [
        f"{name} has {n}" for name, n in zip(seen.splits, seen.scored, strict=True) if n < MIN_ITEMS
    ]
    if not short:
        return None
    return f"{' and '.join(short)} items with a reference; {MIN_ITEMS} are the least for a verdict"


def _no_signal(seen: Evidence) -> str | None:
    """Hold where alpha is at least half of both numerators (CAP, equation 8)."""
    if not max(seen.performance) <= seen.alpha:
        return None
    found = " and ".join(f"{value:.4f}" for value in seen.performance)
    return (
        f"performance ({found}) is not above alpha ({seen.alpha:g}) in either split, so PCR is a "
        "function of consistency alone"
    )


def _undefined(seen: Evidence) -> str | None:
    if np.isfinite(seen.difference).all() and np.isfinite(seen.p_value):
        return None
    return (
        "the difference or its interval is not defined: in a split or in a resample of its items "
        "consistency and alpha are 0, or no item has a reference"
    )


def _equivalent(seen: Evidence) -> str | None:
    """Hold where the whole interval is inside the margin.

    As two one-sided tests at 2.5 % (Schuirmann 1987): evidence for likeness, not want of evidence.
    """
    if not max(abs(seen.difference.ci_low), abs(seen.difference.ci_high)) < seen.margin:
        return None
    return (
        f"the whole interval ({_span(seen)}) is within {seen.margin:g} of 0: neither split was "
        "seen, or both alike (CAP, section 3.2)"
    )


def _hidden(seen: Evidence) -> str | None:
    """Hold where PCR is alike because it is at the end of its scale, as with consistency near 0."""
    if not (seen.slope < HIDDEN and _equivalent(seen)):
        return None
    return (
        "PCR is at the end of its scale in both splits, which hides differences: performance is "
        "far above consistency; --scale linear has no end"
    )


def _above(seen: Evidence) -> str | None:
    if not (seen.difference.ci_low > 0 and seen.p_value <= SIGNIFICANCE):
        return None
    return (
        f"the interval ({_span(seen)}) is above 0 and {_p(seen)}: PCR is larger where the model "
        f"was trained, here on {seen.splits[0]} (CAP, section 3.2)"
    )


def _below(seen: Evidence) -> str | None:
    if not (seen.difference.ci_high < 0 and seen.p_value <= SIGNIFICANCE):
        return None
    return (
        f"the interval ({_span(seen)}) is below 0 and {_p(seen)}: PCR is larger where the model "
        f"was trained, here on {seen.splits[1]} (CAP, section 3.2)"
    )


def _undecided(seen: Evidence) -> str:
    if seen.difference.ci_low > 0 or seen.difference.ci_high < 0:
        return f"the interval ({_span(seen)}) leaves out 0, but {_p(seen)}"
    return (
        f"the interval ({_span(seen)}) contains 0 and reaches past {seen.margin:g}: so many items "
        f"show differences from about {seen.detectable:.3f} on"
    )


RULES: Final[tuple[tuple[Verdict, Rule], ...]] = (
    ("inconclusive", _few_items),
    ("insufficient_signal", _no_signal),
    ("inconclusive", _undefined),
    ("inconclusive", _hidden),
    ("comparable", _equivalent),
    ("fine_tuned", _above),
    ("contaminated", _below),
    ("inconclusive", _undecided),
)
"""The first that holds gives the verdict."""


def verdict_of(seen: Evidence) -> tuple[Verdict, str]:
    """Return the verdict and the rule that gave it, in words."""
    return next((verdict, why) for verdict, rule in RULES if (why := rule(seen)))


def _span(seen: Evidence) -> str:
    return f"{seen.difference.ci_low:+.3f} to {seen.difference.ci_high:+.3f}"


def _p(seen: Evidence) -> str:
    return (
        f"p is {seen.p_value:.4f}, {'not ' * (seen.p_value > SIGNIFICANCE)}at most {SIGNIFICANCE:g}"
    )
