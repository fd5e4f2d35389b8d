"""Everything that a verdict and a report need of one model's answers about one series.

What is independent is a date, not an answer: a date asked in several drawings, or several times,
is resampled, permuted and counted as one. Intervals speak of the dates that could have been asked,
the series being what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.numleak.replies import Status, Stratum

DRAWS: Final = 10_000
"""Bootstrap draws and permutations: the ends of an interval then move by about 1 % of its width."""

NullName = Literal["any_date", "same_era", "same_season", "same_year", "drift", "within_date"]
BaselineName = Literal["constant", "year", "season", "year_and_season", "previous"]


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """How answers are resampled."""

    draws: int = DRAWS
    seed: int = 0


class Metric(NamedTuple):
    """A number with its 95 % interval and what it rests on; nan where it is not defined."""

    estimate: float
    ci_low: float
    ci_high: float
    n: int
    """Answers."""
    dates: int
    """Different questions among them: what counts as independent."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Parse rate, and the four numbers which tell memory from fluency only together.

    All but the parse rate are over the answers that were read.
    """

    n: int
    """Questions asked."""
    parsed: int
    dates: int
    """Different dates among the questions."""
    statuses: Mapping[Status, int]
    """How many questions ended in each way; they add up to n."""
    parse_rate: Metric
    pearson_r: Metric
    """Undefined for answers that never vary, or fewer than three dates."""
    mae: Metric
    """Mean absolute error, in the unit of the series."""
    within_tolerance: Metric
    """Share within the headline tolerance of the truth."""
    sign_accuracy: Metric
    """Share with the sign of the truth, where that is not 0; an answer of 0 is wrong."""


class Chance(NamedTuple):
    """A statistic beside what it would be if the answers had nothing to do with their dates."""

    observed: float
    """Each date counts once."""
    expected: float
    """Its mean over permutations."""
    low: float
    high: float
    """What 95 % of permutations lie between."""
    p_value: float
    """One-sided: how often chance does as well (Phipson and Smyth 2010)."""


class Null(NamedTuple):
    """The answers dealt out anew among the dates of each stratum."""

    dates: int
    movable: int
    """Dates that have another in their stratum: only they can tell memory from chance."""
    pearson_r: Chance
    mae: Chance
    """Better is lower."""
    within_tolerance: Chance


class Baseline(NamedTuple):
    """What one would score who knows no date, beside the model on the same dates."""

    pearson_r: float
    mae: float
    within_tolerance: float
    partial_r: Metric
    """Of answers and truths given the baseline (Fisher 1924): above 0, more is known than that."""
    gain: Metric
    """1 - MAE of the model / MAE of the baseline (Murphy 1988); above 0 the model is nearer."""
    within_gain: Metric
    """Share within tolerance of the model minus that of the baseline."""


class CrossSeries(NamedTuple):
    """The answers for this series against the truth of a sibling on the same dates."""

    dates: int
    pearson_r: Metric
    within_tolerance: Metric
    own_within_tolerance: Metric
    """Against the truth of this series, on the same dates."""
    truths_r: float
    """Correlation of both truths on these dates: what pearson_r may be without any confusion."""


class Ranks(NamedTuple):
    """Which of two dates was higher, beside what the model's own values would say."""

    asked: int
    parse_rate: Metric
    accuracy: Metric
    """Over the comparisons that were read; `dates` counts different pairs."""
    expected: Metric
    """What the order of its own value estimates gets right, at the same true differences."""
    gap: Metric
    """Expected minus accuracy: above 0, values are recalled that do not reach comparisons."""
    coherence: Metric
    """Share of choices that agree with its own estimates, where it gave both."""


class Lift(NamedTuple):
    """One group of dates minus another."""

    first: Signature
    second: Signature
    parse_rate: Metric
    """Difference; Newcombe's interval (1998, method 10)."""
    mae: Metric
    within_tolerance: Metric


class Repeats(NamedTuple):
    """The same question asked again and again at temperature 1."""

    dates: int
    """Those with at least two answers that were read."""
    spread: Metric
    """Standard deviation within a date, pooled over dates, in the unit."""
    agreement: Metric
    """Share of dates on which all answers lie within the tolerance of each other."""
    relative_spread: float
    """Spread over the standard deviation of the truths."""


class Exactness(NamedTuple):
    """How many answers are the published value to its last digit, where most of them are.

    Defaults are those of a series of which no date was answered.
    """

    share: Metric
    """Share exact, of the answered dates that have a value there."""
    near: int = 0
    """Dates answered within two steps of the series, the exact ones among them."""
    expected: float = nan
    """Share exact among the near ones of whoever does not remember the digits, at most."""
    shift: int = 0
    """Periods from the date asked about to the one whose value was said; -1: the one before."""
    factor: float = 1.0
    """What the answers are times the values."""
    scanned: int = 0
    """Shifts and factors that were looked at."""
    dealt_p: float = nan
    """How often as many are exact at their own dates if answers are dealt out to any dates."""
    p_value: float = nan
    """How often so many are exact without memory; adjusted for `scanned`."""
    p_adjusted: float = nan
    """Over all cells of an audit (Benjamini and Hochberg 1995); nan before `adjusted_together`."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """How peaked the answers to one kind of question are, in bits (see `readout.bits`)."""

    asked: int
    mean: Metric
    median: Metric
    bits: tuple[float, ...]
    """Of every answer that has an entropy, in ascending order."""
    signed: int
    """How many of these have a token for the sign alone, and so may have twice the bits."""
    left_out: Mapping[str, int]
    """How many answers have none, by the reason."""


@dataclass(frozen=True, kw_only=True)
class Entropies:
    """Memory gives one value, invention many: the first is more peaked (appendix R)."""

    series: Condition
    """Questions for a value of the series."""
    fictitious: Condition
    """The same about series that do not exist."""
    difference: Metric
    """Mean of the fictitious minus that of the series: above 0, the series is more peaked."""
    p_value: float
    """Two-sided: how often answers dealt out anew among both differ as much."""


@dataclass(frozen=True, kw_only=True)
class SeriesMeasurements:
    """What one model's answers about one series show."""

    overall: Signature
    """Direct questions for a value, all drawings pooled."""
    tolerance: float
    """The headline one, in the unit."""
    ladder: Mapping[float, Metric]
    """Share within each tolerance, smallest first."""
    hits_of_asked: Metric
    """Share of all questions with an answer within tolerance: refusing does not raise it."""
    slope: Metric
    """Of answers on truths: 1 where answers have the scale of the truth."""
    r_without_one: float
    """The least r after leaving out any one date: far below r, a single date carries it."""
    modal: Metric
    """Share of answers that are the commonest one: 1 where it always says the same number."""
    sign_base_rate: Metric
    """What always saying the commoner sign of the truths would score."""
    nulls: Mapping[NullName, Null]
    """Permutations; only those that the series and the siblings allow."""
    cross_series: Mapping[str, CrossSeries]
    """By sibling; only those with a truth on the same dates."""
    baselines: Mapping[BaselineName, Baseline]
    """Only those that the frequency and the known values allow."""
    strata: Mapping[Stratum, Signature]
    """By distance to the cutoff; only those that were asked."""
    eras: Mapping[str, Signature]
    """By decade ("1990s"), in order of time."""
    seeds: Mapping[int, Signature]
    """By drawing of dates; empty where there was one."""
    gradient: Metric
    """Change of the absolute error per ten years nearer to today, dates after the cutoff left out.

    Months to the cutoff differ from time by a constant: the slope on them is the same.
    """
    notable: Lift
    """Well-known dates minus the others."""
    recent: Lift
    """Dates after the cutoff minus dates before it."""
    ranks: Ranks
    forced_ranks: Ranks
    """The same of the forced choice."""
    blind: Signature
    """Asked without the proper name."""
    fictitious: Metric
    """Parse rate for series that do not exist."""
    fictitious_names: Mapping[str, Metric]
    """The same by name."""
    repeats: Repeats
    exactness: Exactness
    """Of the direct questions for a value."""
    entropy: Entropies | None
    """None where no answer came with log-probabilities."""
    p_value: float
    """The largest of the nulls' p-values of r, `within_date` left out.

    Small only where each of them is refuted (intersection-union, Berger 1982).
    """
    p_adjusted: float
    """Over all cells of an audit (Benjamini and Hochberg 1995); nan before `adjusted_together`."""
    follows_p: float
    """The larger p-value of r over answers dealt out among all dates and unrelated drifting paths.

    Small only if answers follow their dates at all; one who knows the level of each era does.
    """
    follows_p_adjusted: float
    """The same over all cells of an audit; nan before `adjusted_together`."""
    notes: tuple[str, ...]
    """What a reader must know of the numbers, a sentence each."""
