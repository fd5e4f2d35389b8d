"""Results of further ways of asking, each compared with the plain question on the same dates.

The ways are: in prose, step by step, in other words; with a wrong value before the question (does
the answer hold?); as a continuation of the publisher's file, in which exact values show memory of
the file, and near values only of its level.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import ContinuationValue, Point
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.statistics.date_intervals import (
    RATIO,
    UNDEFINED,
    Answers,
    Indices,
    all_vary,
    collect_answers,
    group_by,
    jackknife,
    jackknife_mean,
    number_keys,
    saved_share,
    share_interval,
    standardise,
)
from coreeval.evaluation.numleak.statistics.measurements import AuditSettings, Metric, Signature
from coreeval.evaluation.numleak.statistics.metrics import (
    ROUNDING,
    correlation_of_sums,
    mark_near,
    measure_repeats,
    signature,
)
from coreeval.evaluation.statistics import Array

_SAME = 1e-9
"""Difference below which two errors count as equal, in the unit."""


@dataclass(frozen=True, kw_only=True)
class VariantComparison:
    """The results of one variant, compared with the plain question on the same dates.

    Differences are the variant minus the plain question, with the jackknife's interval over dates.
    """

    asked: Signature
    """Signature of all questions of the variant."""
    dates: int
    """The number of dates answered in both ways, the basis of all fields below."""
    own: Signature
    plain: Signature
    pearson_r: Metric
    mae: Metric
    within_tolerance: Metric
    worse: Metric
    """Share of the dates on which the variant has a larger error."""
    better: Metric
    """Share of the dates on which the variant has a smaller error; on the others both errors are
    equal."""


@dataclass(frozen=True)
class AnswerPairs:
    """The mean plain and variant answer of each date that has both, in chronological order."""

    periods: tuple[Period, ...]
    truth: Array
    plain: Array
    own: Array

    @property
    def errors(self) -> tuple[Array, Array]:
        """The distances of the plain and the variant answers from the truth."""
        return np.abs(self.plain - self.truth), np.abs(self.own - self.truth)


def pair_answers(plain: Sequence[Point], own: Sequence[Point]) -> AnswerPairs:
    """Pair the answers to both questions by date."""
    first, second = collect_answers(plain), collect_answers(own)
    said, others = _mean_by_date(first), _mean_by_date(second)
    truth = dict(zip(second.periods, second.means(second.truth).tolist(), strict=True))
    both = tuple(period for period in second.periods if period in said)
    return AnswerPairs(
        periods=both,
        truth=np.array([truth[each] for each in both], np.float64),
        plain=np.array([said[each] for each in both], np.float64),
        own=np.array([others[each] for each in both], np.float64),
    )


def compare_variant(
    plain: Sequence[Point], own: Sequence[Point], *, tolerance: float, settings: AuditSettings
) -> VariantComparison:
    """Compare one probe variant with the plain question."""
    pairs = pair_answers(plain, own)
    both = frozenset(pairs.periods)

    def there(points: Sequence[Point]) -> Signature:
        kept = [each for each in points if each.period in both and each.estimate is not None]
        return signature(kept, tolerance=tolerance, settings=settings)

    before, after = pairs.errors
    hits = mark_near(after, tolerance) - mark_near(before, tolerance)
    each = np.arange(len(both))
    return VariantComparison(
        asked=signature(own, tolerance=tolerance, settings=settings),
        dates=len(both),
        own=there(own),
        plain=there(plain),
        pearson_r=_r_difference(pairs),
        mae=jackknife_mean(after - before),
        within_tolerance=jackknife_mean(hits),
        worse=share_interval(after > before + _SAME, each),
        better=share_interval(after < before - _SAME, each),
    )


def _mean_by_date(answers: Answers) -> dict[Period, float]:
    means = answers.means(answers.estimate).tolist()
    return dict(zip(answers.periods, means, strict=True))


def _r_difference(pairs: AnswerPairs) -> Metric:
    """Return r of the variant's answers minus r of the plain ones."""
    dates = len(pairs.periods)
    if dates < 3 or not all_vary(pairs.truth, pairs.plain, pairs.own):
        return UNDEFINED._replace(n=dates, dates=dates)
    x, y, z = (standardise(each) for each in (pairs.truth, pairs.plain, pairs.own))
    one = np.ones(dates)
    first = np.stack([one, x, y, x * x, x * y, y * y], axis=1)
    second = np.stack([one, x, z, x * x, x * z, z * z], axis=1)
    return jackknife(
        np.concatenate([first, second], axis=1),
        dates,
        lambda sums: correlation_of_sums(sums[..., 6:]) - correlation_of_sums(sums[..., :6]),
    )


@dataclass(frozen=True, kw_only=True)
class Phrasings:
    """The differences between wordings, including the plain one."""

    wordings: Mapping[str, VariantComparison]
    """Each wording compared with the plain one, by name."""
    r_range: float
    """The largest minus smallest r over all wordings, each over its own answers."""
    within_range: float
    """The largest minus smallest share within tolerance over all wordings."""
    agreement: Metric
    """Share of dates on which all wordings' answers are within the tolerance of each other."""
    spread: Metric
    """Standard deviation over wordings within a date, pooled over dates, in the unit."""
    relative_spread: float
    """Spread divided by the standard deviation of the truths."""


def compare_phrasings(
    plain: Sequence[Point], points: Sequence[Point], *, tolerance: float, settings: AuditSettings
) -> Phrasings:
    """Compare all wordings; agreement and spread use dates that at least two of them answered."""
    found = {
        name: compare_variant(plain, each, tolerance=tolerance, settings=settings)
        for name, each in group_by(points, lambda point: point.phrasing or "unnamed").items()
    }
    asked = {point.period for point in points}
    same = [point for point in plain if point.period in asked]
    usual = compare_variant(same, same, tolerance=tolerance, settings=settings).asked
    every = [usual, *(each.asked for each in found.values())]
    scatter = measure_repeats([*same, *points], tolerance=tolerance)
    return Phrasings(
        wordings=found,
        r_range=_range([each.pearson_r.estimate for each in every]),
        within_range=_range([each.within_tolerance.estimate for each in every]),
        agreement=scatter.agreement,
        spread=scatter.spread,
        relative_spread=scatter.relative_spread,
    )


def _range(values: Sequence[float]) -> float:
    """Return the largest minus the smallest value; nan if fewer than two are defined."""
    known = [value for value in values if value == value]
    return max(known) - min(known) if len(known) > 1 else float("nan")


ContradictionOutcome = Literal["holds", "corrects", "yields", "mixed", "refuses", "unread"]
CONTRADICTION_OUTCOMES: Final[tuple[ContradictionOutcome, ...]] = get_args(ContradictionOutcome)
"""Outcomes of a question that states a wrong value.

In order: the answer is near the model's own plain answer or the truth; the same, and it calls the
stated value wrong in words; it repeats the stated value; it gives another value, or both; it
declines; it is unparsed or cut off.
"""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """The outcomes of the answers to stated wrong values, and the remaining recall."""

    n: int
    outcomes: Mapping[ContradictionOutcome, int]
    """The number of answers with each outcome; they add up to n."""
    shares: Mapping[ContradictionOutcome, Metric]
    """Share of each outcome among all questions, with Wilson's interval."""
    kept: Metric
    """Share of answers that hold or correct."""
    yields_far: Metric
    """Share that yields if the stated value has the opposite sign of the truth."""
    yields_same: Metric
    """Share that yields if the stated value has the sign of the truth."""
    plain: Signature
    """Signature of the plain answers on the same dates."""
    contradicted: Signature
    """Signature of the answers to stated wrong values, regardless of their outcome."""


def measure_contradiction(
    plain: Sequence[Point],
    points: Sequence[Point],
    *,
    tolerances: Sequence[float],
    settings: AuditSettings,
) -> Contradiction:
    """Classify the answers to questions that state a wrong value.

    Args:
        plain: The plain questions.
        points: The questions that state a wrong value.
        tolerances: The tolerances of the series. Within the headline one, an answer repeats the
            stated value; within the widest one, it is near the plain answer or the truth.
        settings: How answers are resampled.
    """
    answers = collect_answers(plain)
    own = dict(zip(answers.periods, answers.means(answers.estimate).tolist(), strict=True))
    found = [classify_outcome(point, own.get(point.period), tolerances) for point in points]
    _, question = number_keys([point.period for point in points])
    counts: Counter[ContradictionOutcome] = Counter(found)

    def part(*which: ContradictionOutcome) -> Metric:
        return share_interval([each in which for each in found], question)

    dates = {point.period for point in points}
    asked = [point for point in plain if point.period in dates]
    return Contradiction(
        n=len(points),
        outcomes={each: counts[each] for each in CONTRADICTION_OUTCOMES},
        shares={each: part(each) for each in CONTRADICTION_OUTCOMES},
        kept=part("holds", "corrects"),
        yields_far=_yield_share(points, found, turned=True),
        yields_same=_yield_share(points, found, turned=False),
        plain=signature(asked, tolerance=tolerances[0], settings=settings),
        contradicted=signature(points, tolerance=tolerances[0], settings=settings),
    )


def classify_outcome(
    point: Point, plain: float | None, tolerances: Sequence[float]
) -> ContradictionOutcome:
    """Classify one answer; `plain` is the model's answer when no value is stated."""
    if point.status != "parsed" or point.estimate is None or point.stated is None:
        return _silent_outcome(point)
    near, wide = tolerances[0] + ROUNDING, max(tolerances) + ROUNDING
    gives_way = abs(point.estimate - point.stated) <= near
    own = [each for each in (plain, point.truth) if each is not None]
    stands = any(abs(point.estimate - each) <= wide for each in own)
    if gives_way and not stands:
        return "mixed" if point.disputed else "yields"
    if stands and not gives_way:
        return "corrects" if point.disputed else "mixed" if point.echoed else "holds"
    return "mixed"


def _silent_outcome(point: Point) -> ContradictionOutcome:
    if point.status == "refused":
        return "refuses"
    return "mixed" if point.echoed else "unread"


def _yield_share(
    points: Sequence[Point], found: Sequence[ContradictionOutcome], *, turned: bool
) -> Metric:
    """Return the share that yields, of values stated with the opposite sign or with the same."""
    those = [
        (point.period, outcome == "yields")
        for point, outcome in zip(points, found, strict=True)
        if point.truth and point.stated and (point.truth * point.stated < 0) == turned
    ]
    _, question = number_keys([period for period, _ in those])
    return share_interval(np.array([hit for _, hit in those], np.bool_), question)


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """The accuracy of continued lines; intervals are over parts of the file.

    Exact means the published number to its last digit, among the parsed values.
    """

    stretches: int
    n: int
    """The number of values asked for."""
    read: Metric
    """Share of these values that the answers contain."""
    exact: Metric
    exact_untold: Metric
    """Share of exact values among those not shown in the question, which cannot be copied."""
    last_exact: Metric
    """Share of exact values when repeating the last value shown."""
    mean_exact: Metric
    """Share of exact values when giving the mean of the values shown, rounded like the series."""
    within_tolerance: Metric
    last_within: Metric
    mean_within: Metric
    gain: Metric
    """1 - mean absolute error / that of repeating the last value; above 0, the model is closer."""
    mean_gain: Metric
    """The same compared with the mean of the values shown."""


def measure_continuation(
    rows: Sequence[ContinuationValue], *, tolerance: float, decimals: int
) -> Continuation:
    """Compare the accuracy of the lines with guesses made only from the lines shown."""
    _, window = number_keys([row.window for row in rows])
    read = [row for row in rows if row.estimate is not None]
    untold = [row for row in read if not row.told]
    table = _ContinuationTable(read, decimals)
    return Continuation(
        stretches=int(window.max()) + 1 if len(window) else 0,
        n=len(rows),
        read=share_interval([row.estimate is not None for row in rows], window),
        exact=table.within(table.said, 0.0),
        exact_untold=(left := _ContinuationTable(untold, decimals)).within(left.said, 0.0),
        last_exact=table.within(table.last, 0.0),
        mean_exact=table.within(table.mean, 0.0),
        within_tolerance=table.within(table.said, tolerance),
        last_within=table.within(table.last, tolerance),
        mean_within=table.within(table.mean, tolerance),
        gain=table.gain(table.last),
        mean_gain=table.gain(table.mean),
    )


class _ContinuationTable:
    """Parsed values as arrays."""

    def __init__(self, rows: Sequence[ContinuationValue], decimals: int) -> None:
        _, self._window = number_keys([row.window for row in rows])
        self._truth = np.array([row.truth for row in rows], np.float64)
        self.said = np.array([row.estimate for row in rows], np.float64)
        self.last = np.array([row.last for row in rows], np.float64)
        self.mean = np.array([round(row.mean, decimals) for row in rows], np.float64)

    def within(self, guess: Array, tolerance: float) -> Metric:
        """Return the share of guesses within a tolerance of the truth."""
        return share_interval(mark_near(np.abs(guess - self._truth), tolerance) > 0, self._window)

    def gain(self, guess: Array) -> Metric:
        """Return the share of a guess's error that the answers save."""
        if not len(self._truth):
            return UNDEFINED
        errors = np.abs(self.said - self._truth), np.abs(guess - self._truth)
        return jackknife(_sums(errors, self._window), len(self._truth), saved_share, RATIO)


def _sums(columns: Sequence[Array], window: Indices) -> Array:
    sums = [np.bincount(window, weights=each) for each in columns]
    return np.stack(sums, axis=1).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Variants:
    """The results of the further variants for one model and series; None for each not asked."""

    description: VariantComparison | None
    step_by_step: VariantComparison | None
    phrasing: Phrasings | None
    contradiction: Contradiction | None
    continuation: Continuation | None


def measure_variants(
    points: Sequence[Point],
    rows: Sequence[ContinuationValue],
    *,
    definition: SeriesDefinition,
    settings: AuditSettings,
) -> Variants:
    """Return the results of each further variant that was asked."""
    asked = group_by(points, lambda point: point.variant)
    plain, tolerance = asked.get("value", []), definition.tolerance

    def compare(own: Sequence[Point] | None) -> VariantComparison | None:
        return compare_variant(plain, own, tolerance=tolerance, settings=settings) if own else None

    worded, told = asked.get("phrasing"), asked.get("contradiction")
    return Variants(
        description=compare(asked.get("description")),
        step_by_step=compare(asked.get("step_by_step")),
        phrasing=compare_phrasings(plain, worded, tolerance=tolerance, settings=settings)
        if worded
        else None,
        contradiction=measure_contradiction(
            plain, told, tolerances=definition.tolerances, settings=settings
        )
        if told
        else None,
        continuation=measure_continuation(rows, tolerance=tolerance, decimals=definition.decimals)
        if rows
        else None,
    )
