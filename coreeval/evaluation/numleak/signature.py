"""The signature of memory, part by part: what the answers show, and in which words it is told."""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.bars import MEMORY_GAIN, WORDS_GAIN, Bars, bars_of
from coreeval.evaluation.numleak.statistics.measured import (
    BaselineName,
    Exactness,
    Measured,
    Metric,
)
from coreeval.evaluation.statistics import SIGNIFICANCE

MIN_DATES: Final = 20
"""Dates with an answer that was read. Ours: below it a bootstrap has too few to tell how they vary,
and NumLeak's smallest cells that it reads have 24 (table 3)."""
TRACE_R: Final = 0.3
"""Below it a correlation is small, even if it is not chance (Cohen 1988, section 3.2)."""
TRACE_GAIN: Final = 0.2
"""Ours: one nearer than the best baseline by less than a fifth shows no recall worth the name; r of
0.6 is worth as much (1 - sqrt(1 - 0.36))."""

HITS_P: Final = 0.01
"""Of exact answers that may be memory, although near misses may explain them. Ours: at 0.05 one
exact answer of forty would be enough for a series with two decimals."""


class Check(NamedTuple):
    """One part of the signature of memory."""

    holds: bool
    says: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model and series, as the rules look at it."""

    measured: Measured
    bars: Bars
    hits: Metric
    """Share within the tolerance of the bars."""

    @classmethod
    def of(cls, measured: Measured) -> "Case":
        """Return the case of answers that a verdict may rest on (see `basis`)."""
        bars = bars_of(measured)
        hits = measured.ladder.get(bars.tolerance, measured.overall.within_tolerance)
        return cls(measured=measured, bars=bars, hits=hits)

    @property
    def dates(self) -> int:
        """Dates with an answer that was read."""
        return self.measured.overall.mae.dates

    @property
    def signature(self) -> tuple[Check, ...]:
        """The four parts; memory shows all of them (NumLeak, section 2)."""
        return (self.follows, self.nearer, Check(self.exact, f"{self.closeness}."), self.signed)

    @property
    def follows(self) -> Check:
        """Whether r is more than chance, the era and the season explain."""
        seen = self.measured
        p = seen.p_adjusted if math.isfinite(seen.p_adjusted) else seen.p_value
        holds = p <= SIGNIFICANCE
        end = "no null explains it" if holds else "not every null is refuted"
        return Check(
            holds,
            f"r with the published values is {span(seen.overall.pearson_r)}; {end}{p_text(p)}.",
        )

    @property
    def nearer(self) -> Check:
        """Whether the answers are nearer than every baseline without memory."""
        gains = {
            name: each.gain
            for name, each in self.measured.baselines.items()
            if math.isfinite(each.gain.ci_low)
        }
        if not gains:
            return Check(False, "There is no baseline without memory to compare with.")
        hardest = min(gains, key=lambda name: gains[name].ci_low)
        error = f"The mean absolute error is {self.measured.overall.mae.estimate:.3g}"
        return Check(gains[hardest].ci_low > 0, f"{error}: {nearness(hardest, gains[hardest])}.")

    @property
    def signed(self) -> Check:
        """Whether signs are right at least as often as the commoner one."""
        right, base = self.measured.overall.sign_accuracy, self.measured.sign_base_rate.estimate
        if not math.isfinite(base):
            return Check(True, "Every value is 0 and has no sign.")
        always = f"always saying the commoner one is right in {base:.0%}"
        return Check(not right.estimate < base, f"The sign is right in {share(right)}; {always}.")

    @property
    def exact(self) -> bool:
        """Whether answers are exact where one who knows words cannot be."""
        hits = self.bars.telling and self.hits.ci_low > self.bars.words
        return hits or self.bars.gain.ci_low > WORDS_GAIN

    @property
    def approximate(self) -> bool:
        """Whether answers are less exact than the weakest memory's."""
        hits = not self.bars.telling or self.hits.ci_high < self.bars.memory
        return hits and self.bars.gain.ci_high < MEMORY_GAIN

    @property
    def closeness(self) -> str:
        """Return how near answers are beside one who knows words, as the start of a sentence."""
        within = f"{share(self.hits)} are within {self.bars.tolerance:g} of the truth"
        bar = f"of one who knows each date in words at most {self.bars.words:.0%}"
        near = nearness(self.bars.baseline, self.bars.gain)
        beside = bar if self.bars.telling else "which is too wide to tell"
        return f"{within}, {beside}; the error is {near}, in words at most {WORDS_GAIN:.0%}"

    @property
    def exactness(self) -> Exactness:
        """How many answers are exact to the last digit."""
        return self.measured.exactness

    @property
    def recites(self) -> bool:
        """Whether answers are exact more often than nearness explains, over all cells."""
        found = self.exactness
        p = found.p_adjusted if math.isfinite(found.p_adjusted) else found.p_value
        return p <= SIGNIFICANCE

    @property
    def chance(self) -> float:
        """How often r is as large without any knowledge of the dates (p); nan if unknown."""
        seen = self.measured
        adjusted = seen.follows_p_adjusted
        return adjusted if math.isfinite(adjusted) else seen.follows_p

    @property
    def beside_mean(self) -> Metric:
        """How much nearer the answers are than the mean of all values."""
        return self.measured.baselines["constant"].gain

    @property
    def dated(self) -> bool:
        """Whether answers have to do with their dates at all: by test and by interval."""
        return self.chance <= SIGNIFICANCE and self.measured.overall.pearson_r.ci_low > 0

    @property
    def useful(self) -> bool:
        """Whether answers are at least as near as the mean, which knows no date."""
        return "constant" in self.measured.baselines and self.beside_mean.estimate >= 0

    @property
    def trace(self) -> bool:
        """Whether there could be recall worth the name; exact answers are, whatever r is."""
        if self.measured.modal.estimate == 1:
            return False  # the same number each time follows nothing
        if self.exact:
            return True
        r = self.measured.overall.pearson_r
        if self.dated:
            return not r.ci_high < TRACE_R
        by_test = self.chance <= SIGNIFICANCE and r.estimate >= TRACE_R
        return by_test or not self.bars.gain.ci_high < TRACE_GAIN


_KNOWS: Final[dict[BaselineName, str]] = {
    "constant": "only the mean",
    "year": "only each year's mean",
    "season": "only each season's mean",
    "year_and_season": "only each year's and season's mean",
    "previous": "the value before",
}


def nearness(name: BaselineName, gain: Metric) -> str:
    """Return how much smaller or larger the error is than a baseline's, in words."""
    if not math.isfinite(gain.estimate):
        return "not comparable with that of one who knows no date"
    known = has_interval(gain)
    between = _between(gain) if known else f"no interval, n {gain.n}"
    return f"{_side(gain.estimate)} ({between}) than that of one who knows {_KNOWS[name]}"


def _between(gain: Metric) -> str:
    """Return the ends of an interval in the order and with the words of its estimate."""
    ends = (gain.ci_low, gain.ci_high) if gain.estimate >= 0 else (gain.ci_high, gain.ci_low)
    if min(ends) >= 0 or max(ends) <= 0:
        return " to ".join(f"{abs(end):.0%}" for end in ends)
    return " to ".join(_side(end) for end in ends)


def _side(gain: float) -> str:
    return f"{abs(gain):.0%} {'smaller' if gain >= 0 else 'larger'}"


def has_interval(found: Metric) -> bool:
    """Return whether a number has an interval; one without width says nothing of what varies."""
    return math.isfinite(found.ci_low) and found.ci_low < found.ci_high


def span(found: Metric) -> str:
    """Return a number with its interval, as far as it has them."""
    if not math.isfinite(found.estimate):
        return f"not defined (n {found.n})"
    if not has_interval(found):
        return f"{found.estimate:.2f} (no interval, n {found.n})"
    return f"{found.estimate:.2f} ({found.ci_low:.2f} to {found.ci_high:.2f}, n {found.n})"


def share(found: Metric) -> str:
    """Return a share with its interval."""
    if not math.isfinite(found.estimate):
        return f"none (n {found.n})"
    if not has_interval(found):
        return f"{found.estimate:.0%} (no interval, n {found.n})"
    return f"{found.estimate:.0%} ({found.ci_low:.0%} to {found.ci_high:.0%}, n {found.n})"


def p_text(value: float) -> str:
    """Return a p-value in brackets, after a blank; nothing if it is not defined."""
    if not math.isfinite(value):
        return ""
    return f" (p {value:.4f})" if value >= 0.0001 else " (p < 0.0001)"


def plural(number: int, name: str, names: str = "") -> str:
    """Return the word that goes with a number of things."""
    return name if number == 1 else names or f"{name}s"
