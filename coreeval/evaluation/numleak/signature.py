"""The signature of memory, part by part: what the answers show, and in which words it is told."""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.bars import MEMORY_GAIN, WORDS_GAIN, Bars, bars_of
from coreeval.evaluation.numleak.statistics.measured import BaselineName, Measured, Metric
from coreeval.evaluation.statistics import SIGNIFICANCE

MIN_DATES: Final = 20
"""Dates with an answer that was read. Ours: below it a bootstrap has too few to tell how they vary,
and NumLeak's smallest cells that it reads have 24 (table 3)."""
TRACE_R: Final = 0.3
"""Below it a correlation is small, even if it is not chance (Cohen 1988, section 3.2)."""
TRACE_GAIN: Final = 0.2
"""Ours: one nearer than the best baseline by less than a fifth shows no recall worth the name; r of
0.6 is worth as much (1 - sqrt(1 - 0.36))."""


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
    """Share within the tolerance, of the dates before the cutoff where enough were asked."""

    @classmethod
    def of(cls, measured: Measured) -> "Case":
        """Return the case; what lies after the cutoff cannot be remembered and is no miss."""
        bars = bars_of(measured)
        before = measured.strata.get("pre")
        if bars.tolerance != measured.tolerance:
            hits = measured.ladder[bars.tolerance]
        elif before is not None and before.within_tolerance.dates >= MIN_DATES:
            hits = before.within_tolerance
        else:
            hits = measured.overall.within_tolerance
        return cls(measured=measured, bars=bars, hits=hits)

    @property
    def dates(self) -> int:
        """Dates with an answer that was read."""
        return self.measured.overall.mae.dates

    @property
    def signature(self) -> tuple[Check, ...]:
        """The four parts; memory shows all of them (NumLeak, section 2)."""
        return (self.follows, self.nearer, Check(self.exact, f"{self.exactness}."), self.signed)

    @property
    def follows(self) -> Check:
        """Whether r is more than chance, the era and the season explain."""
        seen = self.measured
        p = seen.p_adjusted if math.isfinite(seen.p_adjusted) else seen.p_value
        holds = p <= SIGNIFICANCE
        end = "no null explains it" if holds else "not every null is refuted"
        return Check(
            holds,
            f"r with the published values is {span(seen.overall.pearson_r)}; {end} (p {p:.4f}).",
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
    def exactness(self) -> str:
        """Return how exact answers are beside one who knows words, as the start of a sentence."""
        within = f"{share(self.hits)} are within {self.bars.tolerance:g} of the truth"
        bar = f"of one who knows each date in words at most {self.bars.words:.0%}"
        near = nearness(self.bars.baseline, self.bars.gain)
        beside = bar if self.bars.telling else "which is too wide to tell"
        return f"{within}, {beside}; the error is {near}, in words at most {WORDS_GAIN:.0%}"

    @property
    def chance(self) -> float:
        """Return how often the same answers on other dates do as well (p); nan where unknown."""
        null = self.measured.nulls.get("any_date")
        return null.pearson_r.p_value if null is not None else math.nan

    @property
    def dated(self) -> bool:
        """Whether answers have to do with their dates at all: by test and by interval."""
        return self.chance <= SIGNIFICANCE and self.measured.overall.pearson_r.ci_low > 0

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
    """Return how much smaller the error is than a baseline's, in words."""
    if not math.isfinite(gain.estimate):
        return "not comparable with that of one who knows no date"
    side = "smaller" if gain.estimate >= 0 else "larger"
    known = math.isfinite(gain.ci_low)
    between = f"{gain.ci_low:+.0%} to {gain.ci_high:+.0%}" if known else "no interval"
    return f"{abs(gain.estimate):.0%} {side} ({between}) than that of one who knows {_KNOWS[name]}"


def span(found: Metric) -> str:
    """Return a number with its interval, as far as it has them."""
    if not math.isfinite(found.estimate):
        return f"not defined (n {found.n})"
    if not math.isfinite(found.ci_low):
        return f"{found.estimate:.2f} (no interval, n {found.n})"
    return f"{found.estimate:.2f} ({found.ci_low:.2f} to {found.ci_high:.2f}, n {found.n})"


def share(found: Metric) -> str:
    """Return a share with its interval."""
    return f"{found.estimate:.0%} ({found.ci_low:.0%} to {found.ci_high:.0%}, n {found.n})"
