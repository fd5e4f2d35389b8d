"""Whether targets stand in the same order on two arms: rank correlations of their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from coreeval.evaluation.arm_scores import Ranking
from coreeval.evaluation.scoring.answers import Floats, score_of
from coreeval.evaluation.scoring.classification import Score

FEWEST: Final = 3
"""Targets of which an order says anything: two are in the same order or they are not."""


@dataclass(frozen=True, eq=False)
class Standing:
    """A target's score on two arms, on the samples that both have."""

    target: str
    first: Floats
    """The score, then that of each draw, shape (1 + draws,); draws of all targets are the same
    samples."""
    second: Floats


def ranking(standings: Sequence[Standing]) -> Ranking | None:
    """Return how alike two arms rank the targets; None with fewer than `FEWEST`."""
    if len(standings) < FEWEST:
        return None
    first = np.stack([each.first for each in standings], axis=1)
    second = np.stack([each.second for each in standings], axis=1)
    n = len(standings)
    return Ranking(
        targets=tuple(each.target for each in standings),
        kendall=_score(kendall_tau_b(first, second), n),
        spearman=_score(spearman_rho(first, second), n),
    )


def _score(found: Floats, n: int) -> Score:
    """Return a correlation with its percentile interval; draws in which all tie have none."""
    if not np.isfinite(found[0]):
        return Score(estimate=None, ci_low=None, ci_high=None, n=n)
    return score_of(found[np.isfinite(found)], n)


def kendall_tau_b(first: Floats, second: Floats) -> Floats:
    """Return Kendall's tau-b of each line, shape (lines, targets) to (lines,); nan if all tie.

    Kendall (1945), "The treatment of ties in ranking problems".
    """
    one, other = np.triu_indices(first.shape[1], k=1)
    x, y = (np.sign(each[:, one] - each[:, other]) for each in (first, second))
    return _over(np.sum(x * y, axis=1), np.sum(x * x, axis=1) * np.sum(y * y, axis=1))


def spearman_rho(first: Floats, second: Floats) -> Floats:
    """Return Spearman's rho of each line: Pearson's r of the ranks, ties by their mean rank."""
    from scipy.stats import rankdata  # type: ignore[import-untyped]  # slow to import

    x, y = (rankdata(each, axis=1) - (first.shape[1] + 1) / 2 for each in (first, second))
    return _over(np.sum(x * y, axis=1), np.sum(x * x, axis=1) * np.sum(y * y, axis=1))


def _over(products: Floats, squares: Floats) -> Floats:
    known = squares > 0
    return np.where(known, products / np.sqrt(np.where(known, squares, 1.0)), np.nan)
