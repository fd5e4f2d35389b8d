"""All that one model is asked about one series, in a fixed order; the order of asking is free."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from coreeval.config import NumleakConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.probes.further import Draft, Further
from coreeval.evaluation.numleak.probes.moods import Moods
from coreeval.evaluation.numleak.probes.question import Asked, Question
from coreeval.evaluation.numleak.probes.sampling import Drawing, draw_dates, draw_pairs
from coreeval.evaluation.numleak.probes.wording import Wording
from coreeval.evaluation.numleak.replies import Variant
from coreeval.evaluation.numleak.series import Series
from coreeval.prompts import Message

READ_OUT: Final[frozenset[Variant]] = frozenset({"value", "fictitious"})
"""What the probe `entropy` is about: the same question, about a series and about none."""


def questions_about(
    series: Series, asked: NumleakConfig, *, cutoff: date | None, today: date, seed: int
) -> Asked:
    """Return what is asked about a series.

    Args:
        series: With its values; only what was published by `today` is asked about.
        asked: What the config says.
        cutoff: The last day of the model's training data; None where it is not known.
        today: The day of asking.
        seed: Of the first drawing.

    Raises:
        DatasetError: it has no value in the period that is asked about.
    """
    probing = _Probing(series, asked, cutoff, today)
    if not probing.inside:
        raise _nothing(series, asked)
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
    questions = [*with_logprobs(questions, asked)]
    questions += probing.of_moods(drawings, seed)
    notes = [note for drawing in drawings for note in drawing.notes] + [*probing.notes()]
    return Asked(series=series.definition.id, questions=tuple(questions), notes=tuple(notes))


def with_logprobs(questions: Iterable[Question], asked: NumleakConfig) -> Iterator[Question]:
    """Yield the questions; for `entropy` those for one value are asked with log-probabilities."""
    peeking = "entropy" in asked.probes
    for one in questions:
        yield replace(one, logprobs=peeking and one.variant in READ_OUT)


def sibling_questions(series: Series, like: Asked, *, today: date) -> Asked:
    """Return the questions for the values of a sibling at the dates asked about another series."""
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
    notes = (f"no value at {lacking} of {len(wanted)} dates of {like.series}",) if lacking else ()
    return Asked(series=series.definition.id, questions=questions, notes=notes)


def _nothing(series: Series, asked: NumleakConfig) -> DatasetError:
    start, end = asked.period.start or "its start", asked.period.end or "its end"
    return DatasetError(
        f"no published value of {series.definition.id} lies from {start} to {end}",
        where="detect.numleak.period",
        hint=f"it has values from {series.first} to {series.last}",
    )


class _Probing:
    """What is asked about one series of one model."""

    def __init__(
        self, series: Series, asked: NumleakConfig, cutoff: date | None, today: date
    ) -> None:
        self._series, self._asked, self._cutoff = series, asked, cutoff
        self._values = series.available_on(today)
        self._wording = Wording.of(series.definition, self._values.values())
        self._moods = Moods(series.definition, self._values, asked.leak, self._wording)
        self.inside = [period for period in self._values if period.start in asked.period]
        self._further = Further(
            series=series,
            asked=asked,
            wording=self._wording,
            values=self._values,
            inside=self.inside,
            cutoff=cutoff,
        )

    def of_drawing(self, drawing: Drawing) -> Iterator[Question]:
        """Yield the questions about the dates of one seed."""
        for period in drawing.dates:
            yield self._value(period, drawing.seed)
        yield from self._blind(drawing)
        yield from self._fictitious(drawing)
        yield from self._repeated(drawing)
        yield from self._compared(drawing)
        for draft in self._further.of_drawing(drawing):
            yield self._drafted(draft, drawing.seed)

    def of_recent(self, known: set[Period], seed: int) -> Iterator[Question]:
        """Yield the question for each recent value that is not asked for already."""
        if "recent" in self._asked.probes:
            for period in self._recent():
                if period not in known:
                    yield replace(self._value(period, seed), recent=True)

    def of_moods(self, drawings: Sequence[Drawing], seed: int) -> Iterator[Question]:
        """Yield the questions for sentiments, with their controls."""
        if "sentiment" in self._asked.probes:
            for mood in self._moods.asked(drawings, seed):
                yield Question(
                    series=self._series.definition.id,
                    period=mood.period,
                    variant=mood.variant,
                    text=_text(mood.messages),
                    truth=self._values[mood.period],
                    shown_date=mood.shown,
                    seed=mood.seed,
                )

    def notes(self) -> Iterator[str]:
        """Yield what could not be asked, or not as it was meant."""
        definition, asked = self._series.definition, self._asked.probes
        yield from self._notes_on_period()
        if "blind" in asked and definition.blind is None:
            yield "it has no description without its proper name: it is not asked blind"
        if "fictitious" in asked and not definition.fictitious:
            yield "it has no fictitious siblings: none is asked about"
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
            yield f"it has values from {first} to {last} alone: the rest of the period is not asked"

    def _notes_on_recent(self) -> Iterator[str]:
        got, wanted = len(self._recent()), self._asked.recent
        if self._cutoff is None:
            yield (
                f"the model's cutoff is not known: its recent values are the last {got} of the "
                "series, wherever they lie to it; give the target a cutoff"
            )
        elif got < wanted:
            yield f"{got} values were published after the cutoff, not {wanted}"

    def _recent(self) -> list[Period]:
        """Return the last dates of the series after the cutoff, whatever the period asked about."""
        after = self._cutoff
        dates = [period for period in self._values if after is None or period.start > after]
        return dates[-self._asked.recent :]

    def _value(self, period: Period, seed: int) -> Question:
        return _value(self._series, self._wording, period, self._values[period], seed)

    def _drafted(self, draft: Draft, seed: int) -> Question:
        return Question(
            series=self._series.definition.id,
            period=draft.period,
            variant=draft.variant,
            text=_text(draft.messages),
            truth=draft.truth,
            seed=seed,
            phrasing=draft.phrasing,
            stated=draft.stated,
            shown=draft.shown,
            following=draft.following,
            room=draft.room,
        )

    def _named(
        self, variant: Variant, period: Period, seed: int, name: str, draw: int = 0
    ) -> Question:
        made_up = variant == "fictitious"
        return Question(
            series=self._series.definition.id,
            period=period,
            variant=variant,
            text=_text(self._wording.value(period, name=name)),
            truth=None if made_up else self._values[period],
            name=name if made_up else None,
            seed=seed,
            draw=draw,
        )

    def _blind(self, drawing: Drawing) -> Iterator[Question]:
        description = self._series.definition.blind
        if "blind" in self._asked.probes and description is not None:
            for period in drawing.dates:
                yield self._named("blind", period, drawing.seed, description)

    def _fictitious(self, drawing: Drawing) -> Iterator[Question]:
        """Yield questions about the made-up names: each date in turn, with each name in turn."""
        names = self._series.definition.fictitious
        if "fictitious" in self._asked.probes and names and drawing.dates:
            every = itertools.product(range(len(names)), range(len(drawing.dates)))
            for turn, at in itertools.islice(every, self._asked.fictitious):
                name = names[(turn + at) % len(names)]
                yield self._named("fictitious", drawing.dates[at], drawing.seed, name)

    def _repeated(self, drawing: Drawing) -> Iterator[Question]:
        if "repeated" in self._asked.probes:
            name, draws = self._series.definition.name, range(self._asked.draws)
            for period, draw in itertools.product(drawing.dates, draws):
                yield self._named("repeated", period, drawing.seed, name, draw)

    def _compared(self, drawing: Drawing) -> Iterator[Question]:
        """Yield the comparisons; both variants are asked about the same pairs."""
        values = {period: self._values[period] for period in drawing.dates}
        pairs = draw_pairs(values, count=self._asked.pairs, seed=drawing.seed)
        variants: tuple[Variant, ...] = ("pair", "forced_choice")
        wanted = [variant for variant in variants if variant in self._asked.probes]
        for variant, (first, second) in itertools.product(wanted, pairs):
            yield Question(
                series=self._series.definition.id,
                period=first,
                other=second,
                variant=variant,
                text=_text(self._wording.comparison(variant, first, second)),
                seed=drawing.seed,
            )


def _value(series: Series, wording: Wording, period: Period, truth: float, seed: int) -> Question:
    return Question(
        series=series.definition.id,
        period=period,
        variant="value",
        text=_text(wording.value(period)),
        truth=truth,
        seed=seed,
    )


def _text(messages: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    return tuple((message["role"], message["content"]) for message in messages)
