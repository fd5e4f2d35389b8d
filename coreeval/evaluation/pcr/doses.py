"""How much a split known by heart in part would show, and how often such a test would find it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.pcr.ratio import Scale, performance_consistency_ratio
from coreeval.evaluation.statistics import SIGNIFICANCE

SHARES: Final = (0.1, 0.25, 0.5)
QUARTER: Final = 0.25
"""The dose that `comparable` rules out."""


class Dose(NamedTuple):
    """One split of which a share is known by heart: these items are right, and consistent."""

    share: float
    points: float
    """What that adds to performance, in hundredths."""
    difference: float
    """What it adds to PCR; below 0 where performance exceeds consistency."""
    found: float
    """Share of tests of so many items that find it."""


def doses_of(
    performance: float,
    consistency: float,
    errors: tuple[float, float],
    *,
    alpha: float,
    scale: Scale,
) -> tuple[Dose, ...]:
    """Return what each of `SHARES` would do to a model that has seen neither split.

    Args:
        performance: M, from 0 to 1.
        consistency: C, from 0 to 1.
        errors: Standard errors of the difference in points and of that in PCR.
        alpha: Of PCR.
        scale: Of PCR.
    """

    def pcr(share: float) -> float:
        m, c = (share + (1 - share) * each for each in (performance, consistency))
        return performance_consistency_ratio(m, c, alpha=alpha, scale=scale)

    found = []
    for share in SHARES:
        points, difference = 100 * share * (1 - performance), pcr(share) - pcr(0)
        found.append(Dose(share, points, difference, _found((points, difference), errors)))
    return tuple(found)


def _found(effects: Sequence[float], errors: Sequence[float]) -> float:
    """Return the power of the better of two tests, each at half of 5 % (Bonferroni)."""
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]  # slow to import

    least = -ndtri(SIGNIFICANCE / 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.asarray(effects) / np.asarray(errors)
    return float(ndtr(np.nanmax([*away, -np.inf]) - least)) if np.isfinite(away).any() else np.nan
