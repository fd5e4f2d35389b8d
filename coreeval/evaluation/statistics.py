"""Resampling by sufficient sums, intervals, p-values, and the smallest detectable difference.

An item is a row of numbers whose sums over items give every score, so a resample is a row of
weights times all rows. Weights are created in pieces, so memory does not depend on the number of
draws.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Interval = Literal["percentile", "bca"]
LEVEL: Final = 0.95
SIGNIFICANCE: Final = 1 - LEVEL
POWER: Final = 0.8
"""Cohen (1988), chapter 2: the convention if nothing else is known."""
_EXACT = 1e-9
"""Replicates this close to the observed value count as equal: sums of floats differ in the last
bits."""


class Estimate(NamedTuple):
    """A number with its 95 % interval; nan if undefined."""

    estimate: float
    ci_low: float
    ci_high: float


class StatisticReplicates(NamedTuple):
    """A statistic of one or two groups of items, and its replicates."""

    value: float
    drawn: Array
    """One value per bootstrap draw."""
    influence: Array
    """The influence of each item, divided by the size of its group (see `influence_of`)."""


def influence_of(left_out: Array) -> Array:
    """Return each item's contribution to a statistic, from the statistic without it.

    (n - 1) (mean - value) / n: Efron and Tibshirani (1993), section 14.3, divided by n so that
    several groups can be combined (Davison and Hinkley 1997, equation 5.28).
    """
    n = len(left_out)
    return np.asarray((n - 1) * (left_out.mean() - left_out) / n)


def percentile_interval(found: StatisticReplicates) -> tuple[float, float]:
    """Return the percentile interval (Efron and Tibshirani 1993, section 13.3)."""
    return middle_range(found.drawn)


def middle_range(drawn: Array) -> tuple[float, float]:
    """Return the ends of the range that contains the middle `LEVEL` of some numbers."""
    return _ends(drawn, (1 - LEVEL) / 2, (1 + LEVEL) / 2)


def bca_interval(found: StatisticReplicates) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval (Efron 1987, equations 2.3 and 6.6).

    The correction counts half of the ties; the acceleration is the jackknife's, over all groups.
    """
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]  # slow to import

    near = np.isclose(found.drawn, found.value, rtol=0, atol=_EXACT)
    below = np.mean((found.drawn < found.value) & ~near) + near.mean() / 2
    least = 0.5 / len(found.drawn)
    bias = ndtri(np.clip(below, least, 1 - least))
    scale = 6 * float(np.sum(found.influence**2)) ** 1.5
    skew = float(np.sum(found.influence**3)) / scale if scale > 0 else 0.0
    ends = bias + ndtri([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    low, high = ndtr(bias + ends / (1 - skew * ends))
    return _ends(found.drawn, float(low), float(high))


def _ends(drawn: Array, low: float, high: float) -> tuple[float, float]:
    first, last = np.quantile(drawn, [low, high])
    return float(first), float(last)


INTERVALS: Final[dict[Interval, Callable[[StatisticReplicates], tuple[float, float]]]] = {
    "percentile": percentile_interval,
    "bca": bca_interval,
}


def make_estimate(found: StatisticReplicates, interval: Interval) -> Estimate:
    """Return the statistic with its interval, or without one if a replicate is undefined."""
    parts = (found.drawn, found.influence)
    if not np.isfinite(found.value) or not all(np.isfinite(part).all() for part in parts):
        return Estimate(found.value, np.nan, np.nan)
    return Estimate(found.value, *INTERVALS[interval](found))


def permutation_p(value: float, permuted: Array) -> float:
    """Return the two-sided p-value, counting the observed value as one of the permutations.

    (1 + the number at least as far from 0) / (1 + all): Phipson and Smyth (2010).
    """
    if np.isnan(value) or np.isnan(permuted).any():
        return float("nan")
    extreme = np.count_nonzero(np.abs(permuted) >= abs(value) - _EXACT)
    return float((1 + extreme) / (1 + len(permuted)))


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """Return the score interval of a share of n trials (Wilson 1927); n need not be an integer."""
    from scipy.special import ndtri

    z = float(ndtri((1 + LEVEL) / 2))
    centre, size = share + z * z / (2 * n), 1 + z * z / n
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if share == 0 else max(0.0, float((centre - half) / size))
    return low, 1.0 if share == 1 else min(1.0, float((centre + half) / size))


def ensure_width(value: float, low: float, high: float, n: int) -> tuple[float, float]:
    """Return an interval of a score from 0 to 1, or Wilson's if all draws are equal.

    If all n samples are right, or all are wrong, all draws are equal and a percentile interval has
    no width, although the score is uncertain.
    """
    return wilson_interval(min(max(value, 0.0), 1.0), n) if low == high and n else (low, high)


def adjust_benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for all comparisons together (Benjamini and Hochberg 1995).

    Undefined p-values stay undefined and do not count.
    """
    from scipy.stats import false_discovery_control  # type: ignore[import-untyped]

    found = np.array(p_values, dtype=np.float64)
    known = np.isfinite(found)
    if known.any():
        found[known] = false_discovery_control(found[known], method="bh")
    return [float(each) for each in found]


def standard_error(found: StatisticReplicates) -> float:
    """Return the standard deviation over bootstrap draws, or nan if a draw is undefined."""
    if len(found.drawn) < 2 or not np.isfinite(found.drawn).all():
        return float("nan")
    return float(np.std(found.drawn, ddof=1))


def detectable_difference(error: float) -> float:
    """Return the smallest true difference that a test at 5 % finds in 80 % of studies.

    (z(0.975) + z(0.8)) times the standard error, about 2.80 of them: Bloom (1995), "Minimum
    detectable effects", Evaluation Review 19(5), for a two-sided test.
    """
    from scipy.special import ndtri

    return float((ndtri(1 - SIGNIFICANCE / 2) + ndtri(POWER)) * error)


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted to control the family-wise error rate (Holm 1979)."""
    found = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(found, kind="stable")
    steps = found[order] * np.arange(len(found), 0, -1)
    fair = np.empty_like(found)
    fair[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(each) for each in fair]


PIECE = 1 << 20
"""The number of weights held at a time (8 bytes each, in three arrays)."""


def bootstrap_sums(sums: Array, draws: int, rng: np.random.Generator) -> Array:
    """Return the sums over items for each bootstrap draw, of shape (draws, statistics).

    Efron (1979): n items with replacement, which is multinomial weights with equal chances.
    """
    n = len(sums)
    made = [_multinomial(n, size, rng) @ sums for size in split_draws(draws, n)]
    return np.concatenate(made)


def _multinomial(n: int, size: int, rng: np.random.Generator) -> Array:
    """Return rows of weights, counted from drawn items: several times faster than multinomial()."""
    drawn = rng.integers(n, size=(size, n))
    drawn += np.arange(size)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def number_clusters(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each item's cluster, counting the names of clusters in order from 0.

    A name may be a whole text, and NumPy would reserve as many characters for every other name.
    """
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.fromiter((numbers[name] for name in names), np.int64, len(names))


def cluster_sums(rows: Array, clusters: Sequence[str] | NDArray[np.int64]) -> Array:
    """Return the sums over the items of each cluster, of shape (clusters, statistics).

    Questions about one document depend on each other, so they are resampled and counted as one
    (Davison and Hinkley 1997, section 3.8).

    Args:
        rows: The statistics of each item.
        clusters: The name of each item's cluster, or its number.
    """
    numbers = clusters if isinstance(clusters, np.ndarray) else number_clusters(clusters)
    known, cluster = np.unique(numbers, return_inverse=True)
    if len(known) == len(rows):
        return rows
    sums = np.zeros((int(cluster.max(initial=-1)) + 1, rows.shape[1]))
    np.add.at(sums, cluster, rows)
    return sums


def leave_one_out(sums: Array) -> Array:
    """Return, for each item, the sums over all other items (the jackknife)."""
    return np.asarray(sums.sum(axis=0) - sums)


def permute_sums(
    first: Array, second: Array, draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the sums of two groups after randomly reassigning the items, for each draw."""
    pooled = np.concatenate([first, second])
    chosen = np.repeat([1.0, 0.0], [len(first), len(second)])
    made = [
        rng.permuted(np.broadcast_to(chosen, (size, len(pooled))), axis=1) @ pooled
        for size in split_draws(draws, len(pooled))
    ]
    dealt = np.concatenate(made)
    return dealt, np.asarray(pooled.sum(axis=0) - dealt)


def split_draws(draws: int, n: int) -> Iterator[int]:
    """Yield the numbers of draws of `n` weights to create at a time, to bound memory."""
    most = max(1, PIECE // n)
    for start in range(0, draws, most):
        yield min(most, draws - start)
