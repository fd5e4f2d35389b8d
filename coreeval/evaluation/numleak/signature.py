"""The signature of memory: the scores of a model without memory, and the evidence of the answers.

A reference score is a share of answers within the tolerance. It is computed for each series,
because a quarter of a point is much for an unemployment rate and little for a stock market: from
the distance of the truths from the best baseline, which does not know any date.
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.statistics.measurements import (
    BaselineName,
    Exactness,
    Metric,
    SeriesMeasurements,
    prefer_adjusted,
)
from coreeval.evaluation.statistics import SIGNIFICANCE
from coreeval.tools.formatting import format_counted, format_p_value, has_interval

WORDS: Final = 5
"""The number of words for a value that a model without memory of the numbers may know.

Our choice: it may know one of five words for each date, from "fell sharply" to "rose sharply". Five
words name five numbers, so the truths within tolerance are at most those in five such bands in the
middle. For Mkt-RF and 25 basis points this is 0.23; NumLeak's cells that are not remembered have
less (section 3: at most 0.15).
"""
WORDS_GAIN: Final = 1 - 0.283
"""The reduction of the mean error by such knowledge, as a share of the best baseline's error.

1 minus the square root of 0.07994, the least distortion of a normal variable in five classes (Max
1960, table I).
"""
MEMORY_SPREAD: Final = 0.122
"""Spread of the errors of partial memory, relative to the standard deviation of the truths.

With it, 0.37 are within 25 basis points of Mkt-RF; NumLeak's weakest memorised cell has 0.35 (table
1, Sonnet).
"""
MEMORY_GAIN: Final = 0.77
"""The reduction of the mean error in that cell, relative to the best baseline.

1 - 0.765 / 3.40: its MAE under figure 2, over the mean absolute deviation of Mkt-RF from its mean,
1963 to 2022.
"""
TELLING: Final = 0.8
"""The highest share expected without memory at which a tolerance is still informative.

Above it, even 20 hits of 20 do not show more than that share (Wilson's lower end is 0.84).
"""
_SD_OF_MAE: Final = math.sqrt(math.pi / 2)
"""Ratio of the standard deviation to the mean absolute deviation of a normal variable."""


class ReferenceScores(NamedTuple):
    """The reference scores of one series for exactness."""

    baseline: BaselineName
    """The best baseline that knows no single date."""
    gain: Metric
    """The model's gain over the baseline."""
    tolerance: float
    """The headline tolerance, or the next narrower one that is informative, in the unit."""
    words: float
    """Share within tolerance without memory: from knowledge in words or of the previous value."""
    memory: float
    """Share within tolerance for the weakest memory."""

    @property
    def can_discriminate(self) -> bool:
        """Return whether the tolerance can separate memory from knowledge in words."""
        return self.words <= TELLING


_UNKNOWN: Final = Metric(math.nan, math.nan, math.nan, 0, 0)


def compute_references(measured: SeriesMeasurements) -> ReferenceScores:
    """Return the reference scores of a series; without baselines, no answers count as exact."""
    known = {
        name: each
        for name, each in measured.baselines.items()
        if name != "previous" and math.isfinite(each.mae)
    }
    if not known:
        return ReferenceScores("constant", _UNKNOWN, measured.tolerance, 1.0, 1.0)
    best = min(known, key=lambda name: known[name].mae)
    deviation = known[best].mae * _SD_OF_MAE
    narrower = sorted((each for each in measured.ladder if each < measured.tolerance), reverse=True)
    for tolerance in (measured.tolerance, *narrower):
        words = max(
            normal_share_within(WORDS * tolerance, deviation),
            _share_of_previous(measured, tolerance),
        )
        memory = max(normal_share_within(tolerance, MEMORY_SPREAD * deviation), words)
        bars = ReferenceScores(best, known[best].gain, tolerance, words, memory)
        if bars.can_discriminate:
            break
    return bars


def _share_of_previous(measured: SeriesMeasurements, tolerance: float) -> float:
    """Return the share within a tolerance for a model that knows the previous value."""
    before = measured.baselines.get("previous")
    if before is None or not math.isfinite(before.mae):
        return 0.0
    return normal_share_within(tolerance, before.mae * _SD_OF_MAE)


def normal_share_within(tolerance: float, spread: float) -> float:
    """Return the share of normal errors with a standard deviation that are within a tolerance."""
    return math.erf(tolerance / (spread * math.sqrt(2))) if spread > 0 else 1.0


MIN_DATES: Final = 20
"""The fewest dates with a parsed answer.

Our choice: with fewer, a bootstrap cannot show how they vary, and the smallest cells that NumLeak
interprets have 24 (table 3).
"""
TRACE_R: Final = 0.3
"""The correlation below which r is small, even if it is not chance (Cohen 1988, section 3.2)."""
TRACE_GAIN: Final = 0.2
"""The least gain over the best baseline that counts as recall.

Our choice: a smaller gain shows no relevant recall; r of 0.6 is worth as much (1 - sqrt(1 - 0.36)).
"""

HITS_P: Final = 0.01
"""Significance level for exact answers to count as memory even if near misses may explain them.

Our choice: at 0.05, one exact answer of forty would suffice for a series with two decimals.
"""


class SignaturePart(NamedTuple):
    """One part of the signature of memory."""

    holds: bool
    says: str


@dataclass(frozen=True, kw_only=True)
class MemoryCase:
    """One model and series, as input for the rules."""

    measured: SeriesMeasurements
    bars: ReferenceScores
    hits: Metric
    """Share of answers within the tolerance of `bars`."""

    @classmethod
    def of(cls, measured: SeriesMeasurements) -> "MemoryCase":
        """Return the case for the answers on which a verdict may be based (see `basis`)."""
        bars = compute_references(measured)
        hits = measured.ladder.get(bars.tolerance, measured.overall.within_tolerance)
        return cls(measured=measured, bars=bars, hits=hits)

    @property
    def dates(self) -> int:
        """The number of dates with a parsed answer."""
        return self.measured.overall.mae.dates

    @property
    def signature(self) -> tuple[SignaturePart, ...]:
        """The four parts of the signature; memory shows all of them (NumLeak, section 2)."""
        return (
            self.follows,
            self.nearer,
            SignaturePart(self.is_exact, f"{self.closeness}."),
            self.signs,
        )

    @property
    def follows(self) -> SignaturePart:
        """Return the part on correlation: whether r exceeds what chance, era and season explain."""
        seen = self.measured
        p = prefer_adjusted(seen.p_adjusted, seen.p_value)
        holds = p <= SIGNIFICANCE
        end = "no null model explains it" if holds else "at least one null model may explain it"
        return SignaturePart(
            holds,
            f"The correlation r with the published values is {span(seen.overall.pearson_r)}; "
            f"{end}{p_text(p)}.",
        )

    @property
    def nearer(self) -> SignaturePart:
        """Return the part on error: whether answers beat all baselines without memory."""
        gains = {
            name: each.gain
            for name, each in self.measured.baselines.items()
            if math.isfinite(each.gain.ci_low)
        }
        if not gains:
            return SignaturePart(False, "There is no memory-free baseline for comparison.")
        hardest = min(gains, key=lambda name: gains[name].ci_low)
        error = f"The mean absolute error is {self.measured.overall.mae.estimate:.3g}"
        return SignaturePart(
            gains[hardest].ci_low > 0, f"{error}: {describe_nearness(hardest, gains[hardest])}."
        )

    @property
    def signs(self) -> SignaturePart:
        """Return the part on signs: whether the share of right signs is at least the base rate."""
        right, base = self.measured.overall.sign_accuracy, self.measured.sign_base_rate.estimate
        if not math.isfinite(base):
            return SignaturePart(
                True, "Every published value is 0, so the signs of the answers are not compared."
            )
        always = f"a model that always gave the more common sign would be right in {base:.0%}"
        return SignaturePart(
            not right.estimate < base,
            f"The sign is right in {share(right)} of the answers; {always}.",
        )

    @property
    def is_exact(self) -> bool:
        """Return whether the answers are more exact than the most exact knowledge without memory.

        False if this knowledge is unknown, because the series has few known values.
        """
        return self.knows_neighbours and self.is_close

    @property
    def knows_neighbours(self) -> bool:
        """Return whether the values of most periods are known, and so the previous values."""
        return "previous" in self.measured.baselines

    @property
    def is_close(self) -> bool:
        """Return whether the answers are more exact than knowledge in words allows."""
        hits = self.bars.can_discriminate and self.hits.ci_low > self.bars.words
        return hits or self.bars.gain.ci_low > WORDS_GAIN

    @property
    def is_approximate(self) -> bool:
        """Return whether the answers are less exact than those from the weakest memory."""
        hits = not self.bars.can_discriminate or self.hits.ci_high < self.bars.memory
        return hits and self.bars.gain.ci_high < MEMORY_GAIN

    @property
    def closeness(self) -> str:
        """Compare the answers' closeness with knowledge in words, as the start of a sentence."""
        within = (
            f"{share(self.hits)} of the answers are within {self.bars.tolerance:g} of the true "
            "value"
        )
        bar = (
            f"compared with at most {self.bars.words:.0%} for a model that can only describe the "
            "values in words"
        )
        near = describe_nearness(self.bars.baseline, self.bars.gain)
        beside = bar if self.bars.can_discriminate else "a tolerance too wide to reveal memory"
        return (
            f"{within}, {beside}. The mean error is {near}; with values known only in words, it "
            f"would be at most {WORDS_GAIN:.0%} smaller than that of the baseline{self._but}"
        )

    @property
    def _but(self) -> str:
        """Say that closeness does not show memory if neighbouring values are unknown."""
        if self.knows_neighbours:
            return ""
        return (
            ". However, the values of most periods are unknown: a model that knows each year's "
            "mean or the previous value might be as close"
        )

    @property
    def exactness(self) -> Exactness:
        """The number of answers that are exact to the last digit."""
        return self.measured.exactness

    @property
    def recites(self) -> bool:
        """Return whether more answers are exact than closeness explains, adjusted for all cells."""
        return self.exactness.p <= SIGNIFICANCE

    @property
    def chance(self) -> float:
        """The p-value of r without any knowledge of the dates; nan if unknown."""
        return prefer_adjusted(self.measured.follows_p_adjusted, self.measured.follows_p)

    @property
    def beside_mean(self) -> Metric:
        """The gain of the answers over the mean of all values."""
        return self.measured.baselines["constant"].gain

    @property
    def depends_on_dates(self) -> bool:
        """Return whether the answers depend on their dates, by both test and interval."""
        return self.chance <= SIGNIFICANCE and self.measured.overall.pearson_r.ci_low > 0

    @property
    def is_useful(self) -> bool:
        """Return whether answers are at least as close as the mean, which ignores the date."""
        return "constant" in self.measured.baselines and self.beside_mean.estimate >= 0

    @property
    def may_be_recall(self) -> bool:
        """Return whether there may be relevant recall; exact answers count, regardless of r."""
        if self.measured.modal.estimate == 1:
            return False  # a constant answer does not follow anything
        if self.is_close:
            return True
        r = self.measured.overall.pearson_r
        if self.depends_on_dates:
            return not r.ci_high < TRACE_R
        by_test = self.chance <= SIGNIFICANCE and r.estimate >= TRACE_R
        return by_test or not self.bars.gain.ci_high < TRACE_GAIN


_PREDICTS: Final[dict[BaselineName, str]] = {
    "constant": "the mean of all values",
    "year": "each year's mean",
    "season": "each season's mean",
    "year_and_season": "each year's and season's mean",
    "previous": "the previous value",
}
"""The prediction of each baseline."""


def describe_nearness(name: BaselineName, gain: Metric) -> str:
    """Describe how much smaller or larger the error is than that of a baseline.

    An error of twice the baseline's or more is given as a multiple.
    """
    if not math.isfinite(gain.estimate):
        return "not comparable with that of a baseline that ignores the date"
    baseline = f"that of a baseline that predicts {_PREDICTS[name]}"
    if gain.estimate <= -1:
        ends = f"{1 - gain.ci_high:.1f} to {1 - gain.ci_low:.1f}"
        between = ends if has_interval(gain) else f"no interval, n {gain.n}"
        return f"{1 - gain.estimate:.1f} times ({between}) {baseline}"
    between = _between(gain) if has_interval(gain) else f"no interval, n {gain.n}"
    return f"{_side(gain.estimate)} ({between}) than {baseline}"


def _between(gain: Metric) -> str:
    """Return the ends of an interval in the order and wording of its estimate."""
    ends = (gain.ci_low, gain.ci_high) if gain.estimate >= 0 else (gain.ci_high, gain.ci_low)
    if min(ends) >= 0 or max(ends) <= 0:
        return " to ".join(f"{abs(end):.0%}" for end in ends)
    return " to ".join(_side(end) for end in ends)


def _side(gain: float) -> str:
    return f"{abs(gain):.0%} {'smaller' if gain >= 0 else 'larger'}"


def span(found: Metric) -> str:
    """Format a number with its interval, if they are defined."""
    return format_counted(found, ".2f", "not defined")


def share(found: Metric) -> str:
    """Format a share with its interval."""
    return format_counted(found, ".0%", "none")


def p_text(value: float) -> str:
    """Return a blank and a p-value in brackets; empty if it is not defined."""
    return f" (p {format_p_value(value, 4)})" if math.isfinite(value) else ""
