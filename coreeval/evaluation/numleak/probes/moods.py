"""Questions for a sentiment: of the drawn dates, of an early era, and with scrambled dates.

A scrambled question states the figures of one date and names another, half a year away within the
same year for months, a constant number of dates away for others. Beside it stands the same question
with the figures' own date. Whatever differs in the scores is due to the name of the date alone.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from coreeval.config import LeakConfig
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.probes.sampling import Drawing, draw_dates
from coreeval.evaluation.numleak.probes.wording import DATES, Wording
from coreeval.evaluation.numleak.replies import Variant
from coreeval.evaluation.numleak.series import SeriesDefinition
from coreeval.prompts import Message, load_built_in_prompt

EARLY: Final = 0.15
"""The early era is this part of the series, where no year is given. Ours; the paper's, 1926 to
1965, is the first 40 % of Mkt-RF, and models know the later years of it well."""
FIGURES: Final = 3
"""Values that are stated before a date."""
EXAMPLE: Final = "-0.27"
_APART: Final[Mapping[Frequency, int]] = {"daily": 120, "weekly": 26, "quarterly": 6, "annual": 7}
"""Dates between that of the figures and the one that is named; of months it is six, in one year."""


class Mood(NamedTuple):
    """One question: for a score, or for the value of an early date."""

    period: Period
    variant: Variant
    messages: list[Message]
    seed: int
    shown: Period | None = None
    """The date that stands beside stated figures."""


@dataclass(frozen=True)
class Moods:
    """What is asked about the sentiment of one series."""

    definition: SeriesDefinition
    values: Mapping[Period, float]
    """In order of time."""
    config: LeakConfig
    wording: Wording

    def asked(self, drawings: Sequence[Drawing], seed: int) -> Iterator[Mood]:
        """Yield the score of each drawn date, then the early era, then the scrambled dates."""
        for drawing in drawings:
            yield from (self._plain(period, drawing.seed) for period in drawing.dates)
        drawn = [period for drawing in drawings for period in drawing.dates]
        for period in self._early(drawn, seed):
            yield Mood(period, "placebo", self.wording.value(period), seed)
            yield self._plain(period, seed)
        for period, other in self._scrambled(drawn, seed):
            before = self._before(period)
            for shown in (period, other):
                yield Mood(period, "sentiment", self._messages(shown, before), seed, shown)

    def notes(self) -> Iterator[str]:
        """Yield which controls cannot be asked as they were meant."""
        there = len(self._era())
        if there < self.config.early:
            yield f"the early era has {there} dates, not {self.config.early}: all are taken"

    def _era(self) -> list[Period]:
        if not self.config.early:
            return []
        if self.config.until is None:
            ordered = list(self.values)
            return ordered[: math.ceil(EARLY * len(ordered))]
        return [period for period in self.values if period.start.year <= self.config.until]

    def _early(self, drawn: Sequence[Period], seed: int) -> tuple[Period, ...]:
        left = set(self._era()) - set(drawn)
        if not left:
            return ()
        return draw_dates(left, count=self.config.early, seeds=[seed], cutoff=None)[0].dates

    def _scrambled(self, drawn: Sequence[Period], seed: int) -> Iterator[tuple[Period, Period]]:
        """Yield dates with the other one that is named in the place of each."""
        ordered = list(self.values)
        place = {period: at for at, period in enumerate(ordered)}
        partners = {
            period: other
            for period in drawn
            if place[period] >= FIGURES and (other := self._other(place[period], ordered))
        }
        if self.config.scrambled and partners:
            (chosen,) = draw_dates(partners, count=self.config.scrambled, seeds=[seed], cutoff=None)
            yield from ((period, partners[period]) for period in chosen.dates)

    def _other(self, at: int, ordered: Sequence[Period]) -> Period | None:
        period = ordered[at]
        if self.definition.frequency == "monthly":
            other = period.shifted(6 if period.start.month <= 6 else -6)
            return other if other in self.values else None
        apart = _APART[self.definition.frequency]
        place = at + apart if at + apart < len(ordered) else at - apart
        return ordered[place] if place >= 0 else None

    def _plain(self, period: Period, seed: int) -> Mood:
        return Mood(period, "sentiment", self._messages(period), seed)

    def _before(self, period: Period) -> list[float]:
        ordered = list(self.values)
        at = ordered.index(period)
        return [self.values[each] for each in ordered[at - FIGURES : at]]

    def _messages(self, date: Period, figures: Sequence[float] = ()) -> list[Message]:
        one = self.definition
        common = {"date": date.words, "about": one.about or one.name, "example": EXAMPLE}
        if not figures:
            return load_built_in_prompt("series_sentiment").fill(**common)
        sign = "+" if one.sign == "signed" else ""
        return load_built_in_prompt("series_sentiment_figures").fill(
            **common,
            quantity=one.quantity,
            name=one.name,
            unit=one.unit.name,
            count=str(len(figures)),
            dates=DATES[one.frequency],
            figures=", ".join(f"{each:{sign}.{one.decimals}f}" for each in figures),
        )
