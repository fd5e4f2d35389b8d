"""A number with its n and its interval, and shares of right answers."""

from collections.abc import Mapping
from math import sqrt
from statistics import NormalDist

from coreeval.schema import Value

Pair = tuple[str, str]
"""(label of the benchmark, answer); an invalid answer is the empty string."""

LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
DRAWS = 2000
"""Bootstrap draws; another seed then moves an end by about a fiftieth of the width (measured)."""


class Score(Value):
    """A number with what it rests on; all None where there is nothing to score."""

    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n: int


NOTHING = Score(estimate=None, ci_low=None, ci_high=None, n=0)


def accuracy(pairs: Mapping[Pair, int]) -> Score:
    """Return the share of right answers, given how often each pair occurs, with its interval."""
    hits = sum(times for (gold, answer), times in pairs.items() if gold == answer)
    return proportion(hits, sum(pairs.values()))


def proportion(hits: int, n: int) -> Score:
    """Return a share with its interval.

    Wilson (1927), no continuity correction: it keeps a width when all are hits or none is.
    """
    if not n:
        return NOTHING
    share = hits / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2) / (1 + _Z**2 / n)
    return Score(
        estimate=share,
        ci_low=centre - half if hits else 0.0,
        ci_high=centre + half if hits < n else 1.0,
        n=n,
    )
