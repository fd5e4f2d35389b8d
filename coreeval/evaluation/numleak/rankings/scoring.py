"""From scored candidates to what a model finds probable: is the true value first?

NumLeak, appendix T and Table 18: top-1 accuracy, mean rank and mean gap over dates.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coreeval.evaluation.numleak.rankings.reading import TRUE, Candidate
from coreeval.evaluation.numleak.statistics.answers import grouped
from coreeval.evaluation.numleak.statistics.intervals import jackknifed, mean_interval, share
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings
from coreeval.evaluation.statistics import Array


class Ranked(NamedTuple):
    """The candidates of one date."""

    date: str
    rank: int
    """Of the true value, 1 being the most probable; equals have the same."""
    candidates: int
    gap: float
    """Mean log-probability of the true value minus that of the best other, nats a token."""
    rival: str
    """What the best other is called."""


class LeftOut(NamedTuple):
    """A date that cannot be ranked, or a candidate that is none, and why."""

    date: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """One model on one series, over dates."""

    model: str
    series: str
    n: int
    candidates: float
    """How many stand beside each other, the true value among them; their mean."""
    top1: Metric
    """Share of dates on which the true value is more probable than every other."""
    chance: float
    """What `top1` would be if all candidates were alike."""
    p_value: float
    """One-sided: how probable so many dates are by chance (Poisson-binomial, exact)."""
    mean_rank: Metric
    chance_rank: float
    mean_gap: Metric
    """Above 0, the true value wins."""
    lost_to: Mapping[str, Metric]
    """Of the dates on which it is not first, the share that each winner has; the commonest first.

    The value of a neighbouring date among them: dates are told apart less well than the series.
    """
    left_out: tuple[LeftOut, ...]


def rankings(candidates: Iterable[Candidate], settings: Settings) -> tuple[Ranking, ...]:
    """Score each model on each series, in the order of the candidates; none without a date."""
    cells = grouped(candidates, lambda one: (one.model, one.series))
    return tuple(_ranking(*key, each, settings) for key, each in cells.items())


def ranked(date: str, candidates: Sequence[Candidate]) -> tuple[Ranked | None, list[LeftOut]]:
    """Rank the candidates of a date, and say what was left out.

    A candidate with the text of the true value is the true value: it is no rival.
    """
    true = next((one for one in candidates if one.candidate == TRUE), None)
    if true is None:
        return None, [LeftOut(date, f"no candidate is called {TRUE!r}")]
    others = [one for one in candidates if one is not true]
    same = [one for one in others if one.text is not None and one.text == true.text]
    bad = [LeftOut(date, f"{one.candidate} has the text of the true value") for one in same]
    rivals = [one for one in others if one not in same]
    if not rivals:
        return None, [*bad, LeftOut(date, "there is nothing to rank the true value against")]
    best = max(rivals, key=lambda one: one.mean_logprob)
    ahead = sum(one.mean_logprob > true.mean_logprob for one in rivals)
    gap = true.mean_logprob - best.mean_logprob
    return Ranked(date, 1 + ahead, 1 + len(rivals), gap, best.candidate), bad


def _ranking(
    model: str, series: str, candidates: Sequence[Candidate], settings: Settings
) -> Ranking:
    each = [ranked(*one) for one in grouped(candidates, lambda one: one.date).items()]
    found = [one for one, _ in each if one]
    ranks = np.array([one.rank for one in found], np.float64)
    sizes = np.array([one.candidates for one in found], np.float64)
    gaps = np.array([one.gap for one in found], np.float64)
    first, ones = gaps > 0, np.ones(len(found))
    return Ranking(
        model=model,
        series=series,
        n=len(found),
        candidates=_mean(sizes),
        top1=share(first, np.arange(len(found))),
        chance=_mean(1 / sizes),
        p_value=_p_value(int(np.count_nonzero(first)), 1 / sizes),
        mean_rank=mean_interval(ranks, ones, settings),
        chance_rank=_mean((sizes + 1) / 2),
        mean_gap=jackknifed(np.stack([gaps, ones], axis=1), len(found), _ratio),
        lost_to=dict(_lost_to(found)),
        left_out=tuple(bad for _, those in each for bad in those),
    )


def _lost_to(found: Sequence[Ranked]) -> Iterator[tuple[str, Metric]]:
    winners = Counter(one.rival for one in found if one.gap <= 0)
    total = winners.total()
    for name, count in winners.most_common():
        yield name, share(np.arange(total) < count, np.arange(total))


def _p_value(hits: int, chances: Array) -> float:
    """Return the probability of so many hits or more, each with a chance of its own."""
    if not len(chances):
        return float("nan")
    counts = np.ones(1)
    for chance in chances:
        counts = np.convolve(counts, [1 - chance, chance])
    return float(min(1.0, counts[hits:].sum()))


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _ratio(sums: Array) -> Array:
    return np.asarray(sums[..., 0] / sums[..., 1])
