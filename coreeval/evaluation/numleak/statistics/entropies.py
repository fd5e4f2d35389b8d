"""Entropies of what a model says of a series, beside those of names that do not exist."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import grouped
from coreeval.evaluation.numleak.statistics.intervals import (
    MIN_DATES,
    UNDEFINED,
    difference,
    mean_interval,
)
from coreeval.evaluation.numleak.statistics.measured import (
    Condition,
    Entropies,
    Metric,
    Settings,
)
from coreeval.evaluation.statistics import LEVEL, Array, permute_sums


def entropies(
    value: Sequence[Point], invented: Sequence[Point], settings: Settings
) -> Entropies | None:
    """Compare both conditions; None where no answer came with log-probabilities.

    The p-value takes answers as independent: dates are, and names are those that were asked.
    """
    if not any(point.read_out for point in (*value, *invented)):
        return None
    first, second = _condition(value, settings), _condition(invented, settings)
    return Entropies(
        series=first,
        fictitious=second,
        difference=difference(second.mean, first.mean) if _both(first, second) else UNDEFINED,
        p_value=_p_value(first.bits, second.bits, settings),
    )


def notes_on_entropies(found: Entropies | None) -> Iterator[str]:
    """Say which answers have no entropy, and where there is nothing to compare."""
    if found is None:
        return
    for name, one in (("the series", found.series), ("fictitious names", found.fictitious)):
        if one.left_out:
            listed = ", ".join(f"{why} ({n})" for why, n in one.left_out.items())
            left = one.asked - len(one.bits)
            yield f"{left} of {one.asked} answers about {name} have no entropy: {listed}"
    kinds = [(one.signed, len(one.bits)) for one in (found.series, found.fictitious)]
    if all(n for _, n in kinds) and any(0 < signed < n for signed, n in kinds):
        several = " and ".join(f"{signed} of {n}" for signed, n in kinds)
        yield (
            f"a sign with a token of its own makes an entropy larger: {several} answers about the "
            "series and about invented names have one"
        )
    if not found.fictitious.asked:
        yield "entropies are held against nothing: no fictitious series was asked about"


def _condition(points: Sequence[Point], settings: Settings) -> Condition:
    told = [(point, point.read_out.bits) for point in points
            if point.read_out and point.read_out.bits is not None]  # fmt: skip
    dates = [
        np.array([bits for _, bits in each])
        for each in grouped(told, lambda one: one[0].period).values()
    ]
    signed = sum(point.read_out.signed for point, _ in told if point.read_out)
    why = Counter(_why(point) for point in points)
    why.pop("", None)
    return Condition(
        asked=len(points),
        mean=_mean(dates, settings),
        median=_median(dates, settings),
        bits=tuple(sorted(bits for _, bits in told)),
        signed=signed,
        left_out=dict(why.most_common()),
    )


def _why(point: Point) -> str:
    return point.read_out.why if point.read_out else "no log-probabilities came"


def _mean(dates: Sequence[Array], settings: Settings) -> Metric:
    totals = np.array([each.sum() for each in dates], np.float64)
    return mean_interval(totals, np.array([len(each) for each in dates], np.float64), settings)


def _median(dates: Sequence[Array], settings: Settings) -> Metric:
    """Return the median with its percentile interval over dates."""
    if not dates:
        return UNDEFINED
    every = np.concatenate(dates)
    value, n = float(np.median(every)), len(every)
    if len(dates) < MIN_DATES:
        return Metric(value, np.nan, np.nan, n, len(dates))
    rows = np.full((len(dates), max(map(len, dates))), np.nan)
    for row, each in zip(rows, dates, strict=True):
        row[: len(each)] = each
    rng = np.random.default_rng(settings.seed)
    drawn = rows[rng.integers(len(rows), size=(settings.draws, len(rows)))]
    medians = np.nanmedian(drawn.reshape(settings.draws, -1), axis=1)
    low, high = np.quantile(medians, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Metric(value, float(low), float(high), n, len(dates))


def _both(first: Condition, second: Condition) -> bool:
    return bool(first.bits and second.bits)


def _p_value(first: Sequence[float], second: Sequence[float], settings: Settings) -> float:
    """Return (b + 1) / (m + 1) of m permutations (Phipson and Smyth 2010)."""
    if min(len(first), len(second)) < MIN_DATES:
        return float("nan")
    columns = [np.array(each, np.float64)[:, None] for each in (first, second)]
    rng = np.random.default_rng(settings.seed)
    sums = permute_sums(columns[0], columns[1], settings.draws, rng)
    apart = np.abs(sums[0] / len(first) - sums[1] / len(second))[:, 0]
    seen = abs(float(np.mean(first)) - float(np.mean(second)))
    as_far = np.count_nonzero(apart >= seen - 1e-12)
    return float((as_far + 1) / (settings.draws + 1))
