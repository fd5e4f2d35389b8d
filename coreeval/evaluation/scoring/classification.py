"""Numbers from recorded answers: pure functions, no model in sight.

Every number comes with its n and a 95 % interval. What is scored are counts of distinct rows, so
nothing here grows with the number of samples.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import Value

Pair = tuple[str, str]
"""(label of the benchmark, answer); an invalid answer is the empty string."""
Triple = tuple[str, str, str]
"""(label of the benchmark, answer in the first arm, answer in the second)."""
Rows = Sequence[tuple[str, ...]]
Times = NDArray[np.float64]
Statistic = Callable[[Rows, Times], Times]
"""From distinct rows, and how often each occurs (in the last axis), to a number."""

LEVEL = 0.95
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
    """Return the share of right answers, given how often each pair occurs, with its interval.

    Wilson (1927), no continuity correction: it keeps a width when all are right or all are wrong.
    """
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # slow to import

    n = sum(pairs.values())
    if not n:
        return NOTHING
    hits = sum(times for (gold, answer), times in pairs.items() if gold == answer)
    low, high = binomtest(hits, n).proportion_ci(LEVEL, method="wilson")
    return Score(estimate=hits / n, ci_low=low, ci_high=high, n=n)


def macro_f1(
    pairs: Mapping[Pair, int], labels: Sequence[str], *, seed: int, draws: int = DRAWS
) -> Score:
    """Return the mean F1 over the task's labels (CoreEval paper, section 4.1).

    It is scikit-learn's `f1_score(labels=labels, average="macro", zero_division=0)`, written over
    counts so that the bootstrap (percentile, over samples, from two on) uses the same formula.
    """
    return _bootstrap(pairs, lambda rows, times: _f1(rows, times, labels, 1), seed, draws)


def accuracy_difference(triples: Mapping[Triple, int], *, seed: int, draws: int = DRAWS) -> Score:
    """Return accuracy of the second answer minus that of the first.

    Where all samples fare alike the interval has no width: a bootstrap sees only what is there.
    """

    def gain(rows: Rows, times: Times) -> Times:
        each = np.array([float(gold == b) - float(gold == a) for gold, a, b in rows])
        return np.asarray(times @ each / times.sum(axis=-1))

    return _bootstrap(triples, gain, seed, draws)


def macro_f1_difference(
    triples: Mapping[Triple, int], labels: Sequence[str], *, seed: int, draws: int = DRAWS
) -> Score:
    """Return macro-F1 of the second answer minus that of the first."""

    def gain(rows: Rows, times: Times) -> Times:
        return _f1(rows, times, labels, 2) - _f1(rows, times, labels, 1)

    return _bootstrap(triples, gain, seed, draws)


def _bootstrap(
    samples: Mapping[Pair, int] | Mapping[Triple, int],
    statistic: Statistic,
    seed: int,
    draws: int,
) -> Score:
    """Return a statistic and its percentile interval.

    Resampling changes only how often each distinct row occurs, so those counts are drawn
    (multinomial): the cost depends on the kinds of rows, not on the number of samples.
    """
    found = sorted(samples.items())
    if not found:
        return NOTHING
    rows, times = [row for row, _ in found], np.array([float(count) for _, count in found])
    n = int(times.sum())
    estimate = float(statistic(rows, times))
    if n == 1:
        return Score(estimate=estimate, ci_low=None, ci_high=None, n=1)
    resampled = np.random.default_rng(seed).multinomial(n, times / n, size=draws)
    values = statistic(rows, resampled.astype(np.float64))
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Score(estimate=estimate, ci_low=float(low), ci_high=float(high), n=n)


def _f1(rows: Rows, times: Times, labels: Sequence[str], answer: int) -> Times:
    """Return the macro-F1 for each row of counts; `answer` is the column of the answer."""
    due = np.array([[row[0] == label for label in labels] for row in rows], dtype=np.float64)
    said = np.array([[row[answer] == label for label in labels] for row in rows], dtype=np.float64)
    hits, size = times @ (due * said), times @ (due + said)
    return np.asarray(np.mean(2 * hits / np.maximum(size, 1), axis=-1))
