"""All that is attributed for one model and one series: signals, placebo era, scrambled dates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coreeval.evaluation.numleak.leak.attributing import attribute
from coreeval.evaluation.numleak.leak.controls import placebo_of, scramble_of
from coreeval.evaluation.numleak.leak.found import OWN, Attribution, Leak, Placebo, Triple
from coreeval.evaluation.numleak.leak.scores import Readings, means
from coreeval.evaluation.numleak.leak.signals import Signal
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.series.series import Series
from coreeval.evaluation.numleak.statistics.answers import answers_of
from coreeval.evaluation.numleak.statistics.measured import Settings

Recall = Mapping[Period, tuple[float, float]]
"""By date: what the model recalls, and what was published."""


def leak_of(
    points: Sequence[Point],
    readings: Readings,
    series: Series,
    signals: Sequence[Signal],
    settings: Settings,
) -> Leak | None:
    """Attribute the model's own signal and the user's; None where there is neither.

    Args:
        points: The questions for a value, slips that are no value of the series left out.
        readings: The answers about sentiment and of the early era.
        series: With its values.
        signals: The user's.
        settings: How dates are resampled.
    """
    if not readings.scores and not signals:
        return None
    values = [point for point in points if point.variant == "value"]
    case = _Case(_recall(values), values, readings, series, settings)
    return Leak(
        asked=len(readings.scores),
        parsed=sum(score.status == "parsed" for score in readings.scores),
        signals=(*case.own(), *(one for each in signals if (one := case.users(each)))),
        placebo=case.placebo(),
        scramble=scramble_of(readings.scores, series.values, settings),
        notes=(*case.notes(signals),),
    )


@dataclass(frozen=True)
class _Case:
    recall: Recall
    values: Sequence[Point]
    readings: Readings
    series: Series
    settings: Settings

    def own(self) -> Iterator[Attribution]:
        """Yield what ties the model's own signal, if it was asked for one."""
        if plain := self._plain():
            yield self._attributed(OWN, plain, self.recall)

    def users(self, signal: Signal) -> Attribution | None:
        """Return what ties a signal of the user's; None without a date in common."""
        values = signal.values(self.series.definition.frequency)
        asked = {point.period for point in self.values}
        if not values.keys() & asked:
            return None
        return self._attributed(signal.name, values, self.recall)

    def placebo(self) -> Placebo | None:
        """Return the early era beside the later one, where it was asked about."""
        if not self.readings.early:
            return None
        until = max(point.period for point in self.readings.early)
        recall = dict(self.recall) | _recall(self.readings.early)
        eras = [
            {at: both for at, both in recall.items() if (at <= until) == early}
            for early in (True, False)
        ]
        early, later = (self._attributed(OWN, self._plain(), era) for era in eras)
        return placebo_of(until, early, later)

    def notes(self, signals: Sequence[Signal]) -> Iterator[str]:
        """Yield what could not be measured."""
        if not any(score.shown is None for score in self.readings.scores):
            yield "the model was not asked for a sentiment: no signal of its own, no placebo era"
        elif not self.readings.early:
            yield "no early era was asked about: there is no placebo"
        if self.readings.scores and not any(score.shown for score in self.readings.scores):
            yield "no dates were scrambled"
        for signal in signals:
            if self.users(signal) is None:
                yield f"the signal {signal.name} has no date in common with this series' questions"

    def _plain(self) -> dict[Period, float]:
        return means([score for score in self.readings.scores if score.shown is None])

    def _attributed(self, name: str, values: Mapping[Period, float], recall: Recall) -> Attribution:
        shared = sorted(values.keys() & recall.keys())
        triples = [Triple(at, values[at], *recall[at]) for at in shared]
        return attribute(name, triples, self.settings, [*_counts(name, values, recall)])


def _counts(name: str, values: Mapping[Period, float], recall: Recall) -> Iterator[str]:
    """Yield how many dates lack one of the numbers."""
    if lacking := len(recall.keys() - values.keys()):
        yield f"{lacking} of {len(recall)} dates with recall have no value of {name}"
    if name != OWN and (spare := len(values.keys() - recall.keys())):
        yield f"{spare} of {len(values)} dates of {name} have no recall beside them"


def _recall(points: Sequence[Point]) -> dict[Period, tuple[float, float]]:
    answers = answers_of(points)
    said, truth = answers.means(answers.estimate), answers.means(answers.truth)
    both = zip(map(float, said), map(float, truth), strict=True)
    return dict(zip(answers.periods, both, strict=True)) if answers.periods else {}
