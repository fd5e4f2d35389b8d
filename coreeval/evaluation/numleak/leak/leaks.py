"""All attributions of one model and one series: signals, and two controls of the model's signal.

The controls are an early era, with little recall, and scrambled dates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coreeval.evaluation.numleak.leak.attribution import RECALL, TRUTH, SignalMeasures, attribute
from coreeval.evaluation.numleak.leak.mediation import (
    OWN_SIGNAL,
    Attribution,
    DateTriple,
    Leak,
    Placebo,
    Scramble,
    is_nonzero,
)
from coreeval.evaluation.numleak.leak.signals import (
    SentimentReadings,
    SentimentScore,
    Signal,
    average_scores,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Point
from coreeval.evaluation.numleak.series.definition import Series
from coreeval.evaluation.numleak.signature import span
from coreeval.evaluation.numleak.statistics.date_intervals import (
    collect_answers,
    difference_interval,
)
from coreeval.evaluation.numleak.statistics.measurements import AuditSettings, Metric


def compare_placebo(until: Period, early: Attribution, later: Attribution) -> Placebo:
    """Compare an early era with the later one (research: numleak, appendix M)."""
    recall_r = difference_interval(early.recall_r, later.recall_r)
    return Placebo(
        until=until,
        early=early,
        later=later,
        recall_r=recall_r,
        slope_on_truth=difference_interval(early.slope_on_truth, later.slope_on_truth),
        slope_on_recall=difference_interval(early.slope_on_recall, later.slope_on_recall),
        says=_describe_placebo(early, recall_r),
    )


def _describe_placebo(early: Attribution, recall_r: Metric) -> str:
    if not recall_r.ci_high < 0:
        return (
            "There is no evidence that the model recalls less of the early era (r "
            f"{span(early.recall_r)}) than of later dates. The early era is therefore not a "
            "placebo for this model."
        )
    early_r = span(early.recall_r)
    known = f"The model recalls less of the early era (r {early_r}) than of later dates"
    if is_nonzero(early.signal_r):
        return (
            f"{known}, yet its score follows the true values in that era too (r "
            f"{span(early.signal_r)}): something other than the recalled value links the date to "
            "the score."
        )
    return (
        f"{known}, and there is no evidence that its score follows the true values in that era "
        f"(r {span(early.signal_r)}), as expected if the score derives from recall."
    )


def measure_scramble(
    scores: Sequence[SentimentScore], values: Mapping[Period, float], settings: AuditSettings
) -> Scramble | None:
    """Measure whether scores follow the named date or the stated figures.

    The scores of the scrambled questions are compared with both at once. Return None if there are
    none.
    """
    real = [DateTriple(at, value, values[at], values[at])
            for at, value, _, shown in scores if value is not None and shown == at]  # fmt: skip
    moved = [DateTriple(at, value, values[shown], values[at])
             for at, value, _, shown in scores
             if value is not None and shown is not None and shown != at]  # fmt: skip
    if not any(score.shown for score in scores):
        return None
    own, other = SignalMeasures(real, settings), SignalMeasures(moved, settings)
    found = {
        "real_r": own.r(lambda each: each.signal_r),
        "real_slope": own.slope(lambda each: each.slope_on_truth, over=TRUTH),
        "shown_r": other.r(lambda each: each.signal_recall_r),
        "told_r": other.r(lambda each: each.signal_r),
        "shown_slope": other.slope(lambda each: each.recall_beside, over=RECALL),
        "told_slope": other.slope(lambda each: each.truth_beside, over=TRUTH),
        "difference": other.difference(
            lambda each: each.recall_beside, lambda each: each.truth_beside
        ),
    }
    return Scramble(**found, says=_describe_scramble(found))


def _describe_scramble(found: Mapping[str, Metric]) -> str:
    real, apart_by = found["real_r"], found["difference"]
    if not is_nonzero(real):
        return (
            "When figures are stated, there is no evidence that the score follows the true "
            f"values (r {span(real)}), so scrambling the dates is uninformative."
        )
    if not is_nonzero(apart_by):
        return (
            f"It is unclear whether the score follows the named date (r {span(found['shown_r'])}) "
            f"or the stated figures (r {span(found['told_r'])})."
        )
    if (apart_by.estimate > 0) == (real.estimate > 0):
        return (
            "When the date changes and the stated figures do not, the score follows the named "
            f"date (r {span(found['shown_r'])}): the model recalls the value "
            "from the date alone."
        )
    return (
        "When the date changes and the stated figures do not, the score still follows the stated "
        f"figures (r {span(found['told_r'])}): the named date does not determine the score."
    )


Recall = Mapping[Period, tuple[float, float]]
"""The recalled and the published value, by date."""


def measure_leak(
    points: Sequence[Point],
    readings: SentimentReadings,
    series: Series,
    signals: Sequence[Signal],
    settings: AuditSettings,
) -> Leak | None:
    """Attribute the model's own signal and the user's signals; None if there is neither.

    Args:
        points: The questions for a value, without slips that are not values of the series.
        readings: The answers about sentiment and about the early era.
        series: With its values.
        signals: The user's signals.
        settings: How dates are resampled.
    """
    if not readings.scores and not signals:
        return None
    values = [point for point in points if point.variant == "value"]
    case = _LeakCase(_mean_recall(values), values, readings, series, settings)
    return Leak(
        asked=len(readings.scores),
        parsed=sum(score.status == "parsed" for score in readings.scores),
        signals=(
            *case.own_attributions(),
            *(one for each in signals if (one := case.user_attribution(each))),
        ),
        placebo=case.placebo(),
        scramble=measure_scramble(readings.scores, series.values, settings),
        notes=(*case.notes(signals),),
    )


@dataclass(frozen=True)
class _LeakCase:
    recall: Recall
    values: Sequence[Point]
    readings: SentimentReadings
    series: Series
    settings: AuditSettings

    def own_attributions(self) -> Iterator[Attribution]:
        """Yield the attribution of the model's own signal, if the model was asked for one."""
        if plain := self._plain():
            yield self._attribute(OWN_SIGNAL, plain, self.recall)

    def user_attribution(self, signal: Signal) -> Attribution | None:
        """Return the attribution of a user's signal; None if it shares no date."""
        values = signal.values(self.series.definition.frequency)
        asked = {point.period for point in self.values}
        if not values.keys() & asked:
            return None
        return self._attribute(signal.name, values, self.recall)

    def placebo(self) -> Placebo | None:
        """Compare the early era with the later one, if it was asked about; None otherwise."""
        if not self.readings.early:
            return None
        until = max(point.period for point in self.readings.early)
        recall = dict(self.recall) | _mean_recall(self.readings.early)
        eras = [
            {at: both for at, both in recall.items() if (at <= until) == early}
            for early in (True, False)
        ]
        early, later = (self._attribute(OWN_SIGNAL, self._plain(), era) for era in eras)
        return compare_placebo(until, early, later)

    def notes(self, signals: Sequence[Signal]) -> Iterator[str]:
        """Yield a note on each number that could not be measured."""
        if not any(score.shown is None for score in self.readings.scores):
            yield (
                "the model was not asked for a sentiment, so there is neither a signal from the "
                "model nor a placebo era"
            )
        elif not self.readings.early:
            yield "there are no questions about an early era, so there is no placebo"
        if self.readings.scores and not any(score.shown for score in self.readings.scores):
            yield "no dates were scrambled"
        for signal in signals:
            if self.user_attribution(signal) is None:
                yield f"the signal {signal.name} shares no date with this series' questions"

    def _plain(self) -> dict[Period, float]:
        return average_scores([score for score in self.readings.scores if score.shown is None])

    def _attribute(self, name: str, values: Mapping[Period, float], recall: Recall) -> Attribution:
        shared = sorted(values.keys() & recall.keys())
        triples = [DateTriple(at, values[at], *recall[at]) for at in shared]
        return attribute(name, triples, self.settings, [*_describe_missing(name, values, recall)])


def _describe_missing(name: str, values: Mapping[Period, float], recall: Recall) -> Iterator[str]:
    """Yield notes on the number of dates that lack a signal value or recall."""
    if lacking := len(recall.keys() - values.keys()):
        yield f"{lacking} of {len(recall)} dates with a recalled value have no value of {name}"
    if name != OWN_SIGNAL and (spare := len(values.keys() - recall.keys())):
        yield f"{spare} of {len(values)} dates of {name} have no recalled value"


def _mean_recall(points: Sequence[Point]) -> dict[Period, tuple[float, float]]:
    answers = collect_answers(points)
    said, truth = answers.means(answers.estimate), answers.means(answers.truth)
    both = zip(map(float, said), map(float, truth), strict=True)
    return dict(zip(answers.periods, both, strict=True)) if answers.periods else {}
