"""The measurements of one model's answers about one series, for verdicts and reports.

Dates are independent, not answers: a date asked in several drawings, or several times, is
resampled, permuted and counted as one. Intervals are about other dates of the same series that
could have been asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.numleak.replies import Status, Stratum

DRAWS: Final = 10_000
"""The number of bootstrap draws and permutations.

With it, the ends of an interval move by about 1 % of its width between seeds.
"""

NullName = Literal["any_date", "same_era", "same_season", "same_year", "drift", "within_date"]
BaselineName = Literal["constant", "year", "season", "year_and_season", "previous"]


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Settings for resampling the answers."""

    draws: int = DRAWS
    seed: int = 0


class Metric(NamedTuple):
    """A number with its 95 % interval and the counts behind it; nan if undefined."""

    estimate: float
    ci_low: float
    ci_high: float
    n: int
    """The number of answers."""
    dates: int
    """The number of distinct questions among them, which count as independent."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The parse rate, and four numbers that only together separate memory from fluency.

    All numbers but the parse rate are over the parsed answers.
    """

    n: int
    """The number of questions asked."""
    parsed: int
    dates: int
    """The number of distinct dates among the questions."""
    statuses: Mapping[Status, int]
    """The number of questions with each status; they add up to n."""
    parse_rate: Metric
    pearson_r: Metric
    """Correlation of answers and truths.

    Undefined if answers never vary, or with fewer than three dates.
    """
    mae: Metric
    """Mean absolute error in the unit of the series."""
    within_tolerance: Metric
    """Share of answers within the headline tolerance of the truth."""
    sign_accuracy: Metric
    """Share of answers with the sign of the truth, if that is not 0; an answer of 0 is wrong."""


class Chance(NamedTuple):
    """A statistic, and its distribution if the answers were unrelated to their dates."""

    observed: float
    """The observed statistic; each date counts once."""
    expected: float
    """Mean over permutations."""
    low: float
    high: float
    """Upper end of the range that contains 95 % of permutations; `low` is the other end."""
    p_value: float
    """One-sided p-value: the probability of such a score by chance (Phipson and Smyth 2010)."""


class Null(NamedTuple):
    """The answers permuted over the dates within each stratum."""

    dates: int
    movable: int
    """The number of dates that share their stratum; only they can separate memory from chance."""
    pearson_r: Chance
    mae: Chance
    """Mean absolute error; lower is better."""
    within_tolerance: Chance


class Baseline(NamedTuple):
    """Scores of a guess without knowledge of dates, and the model's on the same dates."""

    pearson_r: float
    mae: float
    within_tolerance: float
    partial_r: Metric
    """Partial correlation of answers and truths given the baseline (Fisher 1924).

    Above 0, the model knows more than the baseline.
    """
    gain: Metric
    """1 - MAE of the model / MAE of the baseline (Murphy 1988); above 0, the model is closer."""
    within_gain: Metric
    """The model's share within tolerance minus that of the baseline."""


class CrossSeries(NamedTuple):
    """The answers for this series compared with the truth of a sibling on the same dates."""

    dates: int
    pearson_r: Metric
    within_tolerance: Metric
    own_within_tolerance: Metric
    """Share within tolerance of this series' own truth, on the same dates."""
    truths_r: float
    """Correlation of both truths on these dates; pearson_r may reach it without confusion."""


class Ranks(NamedTuple):
    """Choices of the higher of two dates, compared with the order of the model's own values."""

    asked: int
    parse_rate: Metric
    accuracy: Metric
    """Share of right choices among the parsed comparisons; `dates` counts distinct pairs."""
    expected: Metric
    """Share that the model's own estimates order correctly, at the same true differences."""
    gap: Metric
    """Expected minus accuracy; above 0, some recalled values are not used in comparisons."""
    coherence: Metric
    """Share of choices that agree with the model's own estimates, if it gave both."""


class Lift(NamedTuple):
    """The difference of two groups of dates."""

    first: Signature
    second: Signature
    parse_rate: Metric
    """Difference of the parse rates with Newcombe's interval (1998, method 10)."""
    mae: Metric
    within_tolerance: Metric


class Repeats(NamedTuple):
    """Answers to the same question, repeated at temperature 1."""

    dates: int
    """The number of dates with at least two parsed answers."""
    spread: Metric
    """Standard deviation within a date, pooled over dates, in the unit."""
    agreement: Metric
    """Share of dates on which all answers are within the tolerance of each other."""
    relative_spread: float
    """Spread divided by the standard deviation of the truths."""


class Exactness(NamedTuple):
    """The number of answers that match the published value to its last digit.

    Counted at the shift and factor with most of them. Defaults are those of a series without any
    answered date.
    """

    share: Metric
    """Share of exact answers among the answered dates that have a value at this shift."""
    near: int = 0
    """The number of dates answered within two steps of the series, including the exact ones."""
    expected: float = nan
    """The largest share of exact among near answers expected without memory of the digits."""
    shift: int = 0
    """Periods from the date asked about to the one whose value was given; -1: the previous one."""
    factor: float = 1.0
    """Ratio of the answers to the values."""
    scanned: int = 0
    """The number of shifts and factors tried."""
    dealt_p: float = nan
    """The probability of as many exact answers if the answers are permuted over all dates."""
    p_value: float = nan
    """The probability of as many exact answers without memory, adjusted for `scanned`."""
    p_adjusted: float = nan
    """Adjusted over all cells of an audit (Benjamini and Hochberg 1995).

    nan before `adjust_together`.
    """

    @property
    def p(self) -> float:
        """The adjusted p-value if it is known, otherwise the plain one."""
        return prefer_adjusted(self.p_adjusted, self.p_value)


def prefer_adjusted(adjusted: float, plain: float) -> float:
    """Return an adjusted p-value if it is known, otherwise the plain one."""
    return adjusted if isfinite(adjusted) else plain


@dataclass(frozen=True, kw_only=True)
class Condition:
    """The entropy of the answers to one kind of question, in bits (see `TokenReading.bits`)."""

    asked: int
    mean: Metric
    median: Metric
    bits: tuple[float, ...]
    """Entropy of every answer that has one, in ascending order."""
    signed: int
    """The number of these with a separate token for the sign, which may have twice the bits."""
    left_out: Mapping[str, int]
    """The number of answers without an entropy, by reason."""


@dataclass(frozen=True, kw_only=True)
class Entropies:
    """The entropy of answers about a real and about fictitious series (appendix R).

    Memory gives one value, invention gives many, so memory has less entropy.
    """

    series: Condition
    """Questions for a value of the series."""
    fictitious: Condition
    """The same questions about series that do not exist."""
    difference: Metric
    """Mean of the fictitious minus that of the series; above 0, the series has less entropy."""
    p_value: float
    """Two-sided p-value: how often answers permuted between both differ as much."""


@dataclass(frozen=True, kw_only=True)
class SeriesMeasurements:
    """The measurements of one model's answers about one series."""

    overall: Signature
    """The direct questions for a value, with all drawings pooled."""
    tolerance: float
    """The headline tolerance, in the unit."""
    ladder: Mapping[float, Metric]
    """Share within each tolerance, in ascending order."""
    hits_of_asked: Metric
    """Share of all questions with an answer within tolerance; refusing does not raise it."""
    slope: Metric
    """Slope of answers on truths; 1 if answers have the scale of the truth."""
    r_without_one: float
    """The smallest r after leaving out any one date; if far below r, a single date carries it."""
    modal: Metric
    """Share of the most common answer; 1 if the model always gives the same number."""
    sign_base_rate: Metric
    """Score of always giving the more common sign of the truths."""
    nulls: Mapping[NullName, Null]
    """Permutation tests; only those that the series and the siblings allow."""
    cross_series: Mapping[str, CrossSeries]
    """Comparison with each sibling that has a truth on the same dates."""
    baselines: Mapping[BaselineName, Baseline]
    """Guesses without memory; only those that the frequency and the known values allow."""
    strata: Mapping[Stratum, Signature]
    """Signatures by distance to the cutoff; only strata that were asked about."""
    eras: Mapping[str, Signature]
    """Signatures by decade ("1990s"), in chronological order."""
    seeds: Mapping[int, Signature]
    """Signatures by drawing of dates; empty if there was only one."""
    gradient: Metric
    """Change of the absolute error per ten years towards today, without dates after the cutoff.

    Months to the cutoff differ from time by a constant, so the slope on them is the same.
    """
    notable: Lift
    """Well-known dates compared with the others."""
    recent: Lift
    """Dates after the cutoff compared with dates before it; dates near it are left out.

    Memory ends at the cutoff: later answers are fewer or worse, and earlier ones are not.
    """
    ranks: Ranks
    forced_ranks: Ranks
    """The same as `ranks`, for the forced choice."""
    blind: Signature
    """The questions without the proper name."""
    fictitious: Metric
    """Parse rate of questions about series that do not exist."""
    fictitious_names: Mapping[str, Metric]
    """The same by fictitious name."""
    repeats: Repeats
    exactness: Exactness
    """Exact answers to the direct questions for a value."""
    entropy: Entropies | None
    """Entropies; None if no answer came with log-probabilities."""
    p_value: float
    """The largest p-value of r over the nulls except `within_date`.

    Small only if every one of them is refuted (intersection-union, Berger 1982).
    """
    p_adjusted: float
    """Adjusted over all cells of an audit (Benjamini and Hochberg 1995).

    nan before `adjust_together`.
    """
    follows_p: float
    """The larger p-value of r over permutations of all dates and over unrelated drifting paths.

    Small only if answers follow their dates; knowledge of the level of each era is enough for that.
    """
    follows_p_adjusted: float
    """The same, adjusted over all cells of an audit; nan before `adjust_together`."""
    notes: tuple[str, ...]
    """Notes for readers of the numbers, one sentence each."""
