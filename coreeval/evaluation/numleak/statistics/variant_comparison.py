"""What further ways of asking show, each beside the plain question on the same dates.

In prose, step by step, in other words; a wrong value stated before the question (does the answer
hold?); the publisher's file continued, where exact values tell of the file and near ones only of
its level.
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
    number_keys,
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
"""Of a unit: errors nearer to each other are the same."""


@dataclass(frozen=True, kw_only=True)
class VariantComparison:
    """What one way of asking gets, and what the plain question gets on the same dates.

    Differences are this way minus the plain one, with the jackknife's interval over dates.
    """

    asked: Signature
    """All its questions."""
    dates: int
    """Those that both ways got an answer for; all below rests on them."""
    own: Signature
    plain: Signature
    pearson_r: Metric
    mae: Metric
    within_tolerance: Metric
    worse: Metric
    """Share of the dates on which this way errs by more."""
    better: Metric
    """Share on which it errs by less; on the others both err alike."""


@dataclass(frozen=True)
class AnswerPairs:
    """The mean answers of both ways on each date that both have one for, in order of time."""

    periods: tuple[Period, ...]
    truth: Array
    plain: Array
    own: Array

    @property
    def errors(self) -> tuple[Array, Array]:
        """The distances of the plain and the other answers from the truth."""
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
        mae=_mean(after - before),
        within_tolerance=_mean(hits),
        worse=share_interval(after > before + _SAME, each),
        better=share_interval(after < before - _SAME, each),
    )


def _mean_by_date(answers: Answers) -> dict[Period, float]:
    means = answers.means(answers.estimate).tolist()
    return dict(zip(answers.periods, means, strict=True))


def _mean(values: Array) -> Metric:
    if not len(values):
        return UNDEFINED
    sums = np.stack([np.ones(len(values)), values], axis=1)
    return jackknife(sums, len(values), lambda rows: np.asarray(rows[..., 1] / rows[..., 0]))


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
    """How far wordings differ, the plain one among them."""

    wordings: Mapping[str, VariantComparison]
    """By the words that were used, each beside the plain ones."""
    r_range: float
    """Largest minus smallest r over all wordings, each over its own answers."""
    within_range: float
    """The same of the share within tolerance."""
    agreement: Metric
    """Share of dates on which all wordings' answers lie within the tolerance of each other."""
    spread: Metric
    """Standard deviation over wordings within a date, pooled over dates, in the unit."""
    relative_spread: float
    """Spread over the standard deviation of the truths."""


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
"""Near its own plain answer or the truth; the same, and the stated value is called wrong in words;
the stated value is repeated; another value, or both; declined; not read or cut off."""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """How many answers ended in each way, and what is left of recall."""

    n: int
    outcomes: Mapping[ContradictionOutcome, int]
    """They add up to n."""
    shares: Mapping[ContradictionOutcome, Metric]
    """Of all questions, with Wilson's interval."""
    kept: Metric
    """Share that holds or corrects."""
    yields_far: Metric
    """Share that yields where the stated value has the other sign."""
    yields_same: Metric
    """Share that yields where it has the sign of the truth."""
    plain: Signature
    """The plain answers on the dates that were asked."""
    contradicted: Signature
    """These answers, whatever their outcome."""


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
        tolerances: Of the series: within the headline one an answer repeats the stated value,
            within the widest one it is near the plain answer or the truth.
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
    """What came of lines that were to follow; intervals are over stretches of the file.

    Exact is the published number to its last digit, over the values that were read.
    """

    stretches: int
    n: int
    """Values asked for."""
    read: Metric
    """Share of them that the answers have."""
    exact: Metric
    exact_untold: Metric
    """Exact, of the values that do not stand in the question: those cannot be copied from it."""
    last_exact: Metric
    """What repeating the last value shown gets exactly."""
    mean_exact: Metric
    """What the mean of the values shown gets exactly, in the digits of the series."""
    within_tolerance: Metric
    last_within: Metric
    mean_within: Metric
    gain: Metric
    """1 - mean absolute error / that of repeating the last value; above 0 the model is nearer."""
    mean_gain: Metric
    """The same against the mean of the values shown."""


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
    """Values that were read, as arrays."""

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
        return jackknife(_sums(errors, self._window), len(self._truth), _saving, RATIO)


def _sums(columns: Sequence[Array], window: Indices) -> Array:
    sums = [np.bincount(window, weights=each) for each in columns]
    return np.stack(sums, axis=1).astype(np.float64)


def _saving(sums: Array) -> Array:
    """Return 1 - error / error of the guess; nan if the guess makes no error."""
    wrong = sums[..., 1] > 0
    return np.where(wrong, 1 - sums[..., 0] / np.where(wrong, sums[..., 1], 1.0), np.nan)


@dataclass(frozen=True, kw_only=True)
class Variants:
    """One model on one series; None where a probe was not asked."""

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
    """Return the results of each further probe that was asked."""
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
