"""All questions to one model about one series, in a fixed order; they may be asked in any order."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from coreeval.config import NumleakConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.probes.date_samples import Drawing, draw_dates, draw_pairs
from coreeval.evaluation.numleak.probes.wording import (
    SentimentQuestions,
    SeriesQuestion,
    SeriesQuestionSet,
    VariantQuestions,
    Wording,
    freeze_messages,
)
from coreeval.evaluation.numleak.replies import Variant
from coreeval.evaluation.numleak.series import Series

LOGPROB_VARIANTS: Final[frozenset[Variant]] = frozenset({"value", "fictitious"})
"""The variants compared by `entropy`: the same question about a real and a fictitious series."""


def questions_about(
    series: Series, asked: NumleakConfig, *, cutoff: date | None, today: date, seed: int
) -> SeriesQuestionSet:
    """Return the questions to ask about a series.

    Args:
        series: The series with its values; only those published by `today` are asked about.
        asked: The `numleak` section of the config.
        cutoff: The last day of the model's training data; None if it is not known.
        today: The day of asking.
        seed: The seed of the first drawing.

    Raises:
        DatasetError: the series has no value in the period that is asked about.
    """
    probing = _SeriesProbe(series, asked, cutoff, today)
    if not probing.inside:
        raise _nothing_error(series, asked)
    drawings = draw_dates(
        probing.inside,
        count=asked.dates,
        seeds=range(seed, seed + asked.seeds),
        cutoff=cutoff,
        notable=series.definition.notable_periods,
    )
    questions = [each for drawing in drawings for each in probing.of_drawing(drawing)]
    known = {one.period for one in questions if one.variant == "value"}
    questions += probing.of_recent(known, seed)
    questions = [*request_logprobs(questions, asked)]
    questions += probing.of_sentiments(drawings, seed)
    notes = [note for drawing in drawings for note in drawing.notes] + [*probing.notes()]
    return SeriesQuestionSet(
        series=series.definition.id, questions=tuple(questions), notes=tuple(notes)
    )


def request_logprobs(
    questions: Iterable[SeriesQuestion], asked: NumleakConfig
) -> Iterator[SeriesQuestion]:
    """Yield the questions; for `entropy`, single-value questions request log-probabilities."""
    peeking = "entropy" in asked.probes
    for one in questions:
        yield replace(one, logprobs=peeking and one.variant in LOGPROB_VARIANTS)


def sibling_questions(series: Series, like: SeriesQuestionSet, *, today: date) -> SeriesQuestionSet:
    """Return the questions for a sibling's values at the dates asked about another series."""
    values = series.available_on(today)
    wording = Wording.of(series.definition, values.values())
    wanted = [one for one in like.questions if one.variant == "value"]
    questions = tuple(
        replace(
            _value(series, wording, one.period, values[one.period], one.seed),
            logprobs=one.logprobs,
        )
        for one in wanted
        if one.period in values
    )
    lacking = len(wanted) - len(questions)
    notes = (
        (f"it has no value on {lacking} of the {len(wanted)} dates of {like.series}",)
        if lacking
        else ()
    )
    return SeriesQuestionSet(series=series.definition.id, questions=questions, notes=notes)


def _nothing_error(series: Series, asked: NumleakConfig) -> DatasetError:
    start, end = asked.period.start or "its start", asked.period.end or "its end"
    return DatasetError(
        f"{series.definition.id} has no published value from {start} to {end}",
        where="detect.numleak.period",
        hint=f"values are available from {series.first} to {series.last}",
    )


class _SeriesProbe:
    """The questions that one model is asked about one series."""

    def __init__(
        self, series: Series, asked: NumleakConfig, cutoff: date | None, today: date
    ) -> None:
        self._series, self._asked, self._cutoff = series, asked, cutoff
        self._values = series.available_on(today)
        self._wording = Wording.of(series.definition, self._values.values())
        self._moods = SentimentQuestions(series.definition, self._values, asked.leak, self._wording)
        self.inside = [period for period in self._values if period.start in asked.period]
        self._further = VariantQuestions(
            series=series,
            asked=asked,
            wording=self._wording,
            values=self._values,
            inside=self.inside,
            cutoff=cutoff,
        )

    def of_drawing(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        """Yield the questions about the dates of one seed."""
        for period in drawing.dates:
            yield self._value(period, drawing.seed)
        yield from self._blind(drawing)
        yield from self._fictitious(drawing)
        yield from self._repetition_questions(drawing)
        yield from self._comparison_questions(drawing)
        yield from self._further.of_drawing(drawing)

    def of_recent(self, known: set[Period], seed: int) -> Iterator[SeriesQuestion]:
        """Yield a question for each recent value that no other question asks about."""
        if "recent" in self._asked.probes:
            for period in self._recent():
                if period not in known:
                    yield replace(self._value(period, seed), recent=True)

    def of_sentiments(self, drawings: Sequence[Drawing], seed: int) -> Iterator[SeriesQuestion]:
        """Yield the questions about sentiment, with their controls."""
        if "sentiment" in self._asked.probes:
            yield from self._moods.list_questions(drawings, seed)

    def notes(self) -> Iterator[str]:
        """Yield a note on each question that could not be asked as configured."""
        definition, asked = self._series.definition, self._asked.probes
        yield from self._notes_on_period()
        if "blind" in asked and definition.blind is None:
            yield "it has no description without its proper name, so its name is never withheld"
        if "fictitious" in asked and not definition.fictitious:
            yield "it has no fictitious siblings, so no questions about fictitious series are asked"
        if "recent" in asked:
            yield from self._notes_on_recent()
        yield from self._further.notes()
        if "sentiment" in asked:
            yield from self._moods.notes()

    def _notes_on_period(self) -> Iterator[str]:
        first, last, period = self._series.first, self._series.last, self._asked.period
        early = period.start is not None and period.first_day < first.start
        late = period.end is not None and period.last_day > last.last_day
        if early or late:
            yield f"it has values only from {first} to {last}, so the rest of the period is skipped"

    def _notes_on_recent(self) -> Iterator[str]:
        got, wanted = len(self._recent()), self._asked.recent
        if self._cutoff is None:
            yield (
                f"the model's cutoff is not known, so the last {got} values of the series are "
                "treated as recent, even if they precede the cutoff; to avoid this, set the "
                "target's cutoff"
            )
        elif got < wanted:
            yield f"only {got} values were published after the cutoff, but {wanted} were requested"

    def _recent(self) -> list[Period]:
        """Return the series' last dates after the cutoff, regardless of the configured period."""
        after = self._cutoff
        dates = [period for period in self._values if after is None or period.start > after]
        return dates[-self._asked.recent :]

    def _value(self, period: Period, seed: int) -> SeriesQuestion:
        return _value(self._series, self._wording, period, self._values[period], seed)

    def _name_question(
        self, variant: Variant, period: Period, seed: int, name: str, draw: int = 0
    ) -> SeriesQuestion:
        made_up = variant == "fictitious"
        return SeriesQuestion(
            series=self._series.definition.id,
            period=period,
            variant=variant,
            text=freeze_messages(self._wording.value(period, name=name)),
            truth=None if made_up else self._values[period],
            name=name if made_up else None,
            seed=seed,
            draw=draw,
        )

    def _blind(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        description = self._series.definition.blind
        if "blind" in self._asked.probes and description is not None:
            for period in drawing.dates:
                yield self._name_question("blind", period, drawing.seed, description)

    def _fictitious(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        """Yield questions about the fictitious names, rotating over the dates and the names."""
        names = self._series.definition.fictitious
        if "fictitious" in self._asked.probes and names and drawing.dates:
            every = itertools.product(range(len(names)), range(len(drawing.dates)))
            for turn, at in itertools.islice(every, self._asked.fictitious):
                name = names[(turn + at) % len(names)]
                yield self._name_question("fictitious", drawing.dates[at], drawing.seed, name)

    def _repetition_questions(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        if "repeated" in self._asked.probes:
            name, draws = self._series.definition.name, range(self._asked.draws)
            for period, draw in itertools.product(drawing.dates, draws):
                yield self._name_question("repeated", period, drawing.seed, name, draw)

    def _comparison_questions(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        """Yield the comparisons; both variants use the same pairs."""
        values = {period: self._values[period] for period in drawing.dates}
        pairs = draw_pairs(values, count=self._asked.pairs, seed=drawing.seed)
        variants: tuple[Variant, ...] = ("pair", "forced_choice")
        wanted = [variant for variant in variants if variant in self._asked.probes]
        for variant, (first, second) in itertools.product(wanted, pairs):
            yield SeriesQuestion(
                series=self._series.definition.id,
                period=first,
                other=second,
                variant=variant,
                text=freeze_messages(self._wording.comparison(variant, first, second)),
                seed=drawing.seed,
            )


def _value(
    series: Series, wording: Wording, period: Period, truth: float, seed: int
) -> SeriesQuestion:
    return SeriesQuestion(
        series=series.definition.id,
        period=period,
        variant="value",
        text=freeze_messages(wording.value(period)),
        truth=truth,
        seed=seed,
    )
