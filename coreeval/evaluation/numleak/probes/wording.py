"""The wording of all questions about a series, the plain one and its variants.

The variants ask in prose, step by step, in other words, after a wrong value, or for the next lines
of the publisher's file. All are about the dates of a drawing, so each answer can be compared with
the plain one; only the lines of the file are consecutive.

Questions for a sentiment are about the drawn dates, an early era, and scrambled dates. A scrambled
question states the figures of one date and names another, half a year away within the same year for
months, a constant number of dates away for others. It is paired with the same question with the
figures' own date. So a difference in the scores is only due to the name of the date.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Final

from coreeval.config import LeakConfig, NumleakConfig
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.probes.date_samples import Drawing, draw_dates, draw_wrong_values
from coreeval.evaluation.numleak.replies import Reply, Variant
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.evaluation.numleak.series.excerpt import (
    FileExcerpt,
    FileLine,
    FileWindow,
    draw_windows,
    find_excerpt,
)
from coreeval.prompts import Message, load_built_in_prompt
from coreeval.schema import AnswerKind

_SIGN: Final = {
    "signed": "with a minus sign if it is negative",
    "positive": "without a sign before it",
}
_ORDER: Final = {
    "signed": "; any positive value is higher than a negative one",
    "positive": "",
}
DATE_WORDS: Final[dict[Frequency, str]] = {
    "daily": "days",
    "weekly": "weeks",
    "monthly": "months",
    "quarterly": "quarters",
    "annual": "years",
}
_EXAMPLES: Final = (12.3456789, 23.4567891, 34.5678912, 45.6789123, 56.7891234)


ANSWER_TOKENS: Final[dict[Variant, int]] = {
    "description": 800,
    "step_by_step": 1600,
    "continuation": 800,
}
"""Minimum number of tokens for an answer.

NumLeak's limit of 384 (appendix J) cut off one in ten reasoning chains.
"""


@dataclass(frozen=True, kw_only=True)
class PersonaQuestion:
    """The contents of a question about a series; an embedded persona only needs these."""

    variant: Variant
    series: str
    """The series id; for a fictitious name, the id of the series whose question is reused."""
    period: Period
    other: Period | None = None
    """The second date of a comparison."""
    name: str | None = None
    """The fictitious name asked about; None if the series is real."""
    draw: int = 0
    phrasing: str | None = None
    stated: float | None = None
    following: tuple[FileLine, ...] = ()
    """The lines of the publisher's file that the question asks for."""
    shown_date: Period | None = None
    """The date named in a question with figures; it may be scrambled."""


@dataclass(frozen=True, kw_only=True)
class SeriesQuestion(PersonaQuestion):
    """One question about a series in words; a repeated question counts once per draw."""

    text: tuple[tuple[str, str], ...]
    """The role and content of each message."""
    truth: float | None = None
    seed: int = 0
    recent: bool = False
    """Whether the question asks for one of the last values and belongs to no drawing."""
    logprobs: bool = False
    """Whether log-probabilities are requested."""
    shown: int | None = None

    @property
    def room(self) -> int:
        """The minimum number of tokens for the answer; 0 uses the target's own limit."""
        return ANSWER_TOKENS.get(self.variant, 0)

    @property
    def messages(self) -> list[Message]:
        """The messages to send."""
        return [{"role": role, "content": content} for role, content in self.text]

    def reply(self, model: str, response: str | None, kind: AnswerKind = "answered") -> Reply:
        """Return the model's response to this question as a record."""
        return Reply(
            model=model,
            series=self.series,
            date=str(self.period),
            variant=self.variant,
            response=response,
            truth=self.truth,
            other_date=str(self.other) if self.other else None,
            name=self.name,
            shown_date=str(self.shown_date) if self.shown_date else None,
            seed=self.seed,
            draw=self.draw,
            phrasing=self.phrasing,
            stated=self.stated,
            shown=self.shown,
            wanted=len(self.following) or None,
            kind=kind,
        )


@dataclass(frozen=True, kw_only=True)
class SeriesQuestionSet:
    """The questions about one series, and notes on those that could not be asked."""

    series: str
    questions: tuple[SeriesQuestion, ...]
    notes: tuple[str, ...] = ()


def freeze_messages(messages: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    """Return the role and content of each message."""
    return tuple((message["role"], message["content"]) for message in messages)


@dataclass(frozen=True)
class Wording:
    """The wording of the questions about one series.

    All questions for a value have the same words except for the date and the name, so differences
    in the answers to a fictitious name are not due to the wording.
    """

    definition: SeriesDefinition
    example: str
    """A number in the form of an answer; it is not equal to any value of the series."""

    @classmethod
    def of(cls, definition: SeriesDefinition, values: Iterable[float]) -> "Wording":
        """Return the wording, with one example for all dates that matches none of the values."""
        return cls(definition, _choose_example(definition, list(values)))

    def value(
        self,
        date: Period,
        *,
        name: str | None = None,
        prompt: str = "series_value",
        stated: float | None = None,
    ) -> list[Message]:
        """Return the question for the value of a date.

        Args:
            date: The date.
            name: Replaces the proper name of the series.
            prompt: The name of the prompt to use.
            stated: A wrong value that the question states as a fact.
        """
        return load_built_in_prompt(prompt).fill(
            **self._common(name),
            date=date.words,
            sign=_SIGN[self.definition.sign],
            decimals=_describe_digits(self.definition.decimals),
            example=self.example,
            **(
                {}
                if stated is None
                else {"stated": self.definition.format_number(stated) + self.definition.unit.suffix}
            ),
        )

    def continuation(self, lines: Sequence[str], *, wanted: int) -> list[Message]:
        """Return the question for the next lines of the publisher's file."""
        return load_built_in_prompt("series_continuation").fill(
            quantity=self.definition.quantity,
            name=self.definition.name,
            shown=str(len(lines) - 1),
            lines="\n".join(lines),
            wanted="next line" if wanted == 1 else f"next {wanted} lines",
        )

    def comparison(self, variant: Variant, first: Period, second: Period) -> list[Message]:
        """Return the question that asks which of two dates has the higher value.

        Args:
            variant: `pair`, or `forced_choice`, which only allows the names of the two dates.
            first: The date that comes first.
            second: The other date.
        """
        prompt = load_built_in_prompt(f"series_{variant}")
        return prompt.fill(
            **self._common(None),
            order=_ORDER[self.definition.sign],
            dates=DATE_WORDS[self.definition.frequency],
            first=first.words,
            second=second.words,
        )

    def _common(self, name: str | None) -> dict[str, str]:
        return {
            "quantity": self.definition.quantity,
            "name": name or self.definition.name,
            "unit": self.definition.unit.name,
        }


def _describe_digits(decimals: int) -> str:
    if not decimals:
        return "as a whole number"
    return f"to {decimals} decimal place{'s' if decimals > 1 else ''}"


def _choose_example(definition: SeriesDefinition, values: list[float]) -> str:
    """Return the first example that is not within the widest tolerance of any value."""
    near, sign = max(definition.tolerances), -1 if definition.sign == "signed" else 1
    scale = 1.0
    while True:
        for digits in _EXAMPLES:
            example = round(sign * scale * digits, definition.decimals)
            if all(abs(value - example) > near for value in values):
                return definition.format_number(example, plus=False)
        scale *= 10


PHRASINGS: Final = ("formal", "terse", "table", "spoken")
"""Other wordings of the value question, in the style of an office, a note, a form and a caller."""
_NEEDS_FILE: Final = (
    "its values do not occur in a publisher's file in the requested form, so models are not "
    "asked to continue the file"
)


@dataclass(frozen=True, kw_only=True)
class VariantQuestions:
    """The questions of the further variants about one series for one model."""

    series: Series
    asked: NumleakConfig
    wording: Wording
    values: dict[Period, float]
    inside: Sequence[Period]
    """The dates that may be asked about."""
    cutoff: date | None

    @cached_property
    def excerpt(self) -> FileExcerpt | None:
        """The excerpt of the publisher's file."""
        return find_excerpt(self.series)

    def of_drawing(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        """Yield the questions about the dates of one seed."""
        for variant in ("description", "step_by_step"):
            if variant in self.asked.probes:
                for period in drawing.dates:
                    yield self._ask(variant, period, drawing.seed, f"series_{variant}")
        yield from self._phrasings(drawing)
        yield from self._contradictions(drawing)
        yield from self._continuations(drawing.seed)

    def notes(self) -> Iterator[str]:
        """Yield a note on each question that could not be asked as configured."""
        if "continuation" not in self.asked.probes:
            return
        if self.excerpt is None:
            yield _NEEDS_FILE
        elif len(found := self._windows(0)) < self.asked.continuations:
            yield (
                f"only {len(found)} complete stretches of the file are before the cutoff, but "
                f"{self.asked.continuations} were requested"
            )

    def _ask(
        self,
        variant: Variant,
        period: Period,
        seed: int,
        prompt: str,
        *,
        phrasing: str | None = None,
        stated: float | None = None,
    ) -> SeriesQuestion:
        return SeriesQuestion(
            series=self.series.definition.id,
            period=period,
            variant=variant,
            text=freeze_messages(self.wording.value(period, prompt=prompt, stated=stated)),
            truth=self.values[period],
            seed=seed,
            phrasing=phrasing,
            stated=stated,
        )

    def _phrasings(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        if "phrasing" in self.asked.probes:
            for phrasing in PHRASINGS:
                for period in drawing.dates:
                    prompt = f"series_phrasing_{phrasing}"
                    yield self._ask("phrasing", period, drawing.seed, prompt, phrasing=phrasing)

    def _contradictions(self, drawing: Drawing) -> Iterator[SeriesQuestion]:
        if "contradiction" in self.asked.probes and drawing.dates:
            wrong = draw_wrong_values(
                list(drawing.dates), self.values, self.series.definition, seed=drawing.seed
            )
            for period in drawing.dates:
                yield self._ask(
                    "contradiction",
                    period,
                    drawing.seed,
                    "series_contradiction",
                    stated=wrong[period],
                )

    def _continuations(self, seed: int) -> Iterator[SeriesQuestion]:
        if "continuation" in self.asked.probes and self.excerpt:
            for window in self._windows(seed):
                lines = [self.excerpt.header, *(line.text for line in window.shown)]
                messages = self.wording.continuation(lines, wanted=len(window.wanted))
                yield SeriesQuestion(
                    series=self.series.definition.id,
                    period=window.first,
                    variant="continuation",
                    text=freeze_messages(messages),
                    seed=seed,
                    shown=len(window.shown),
                    following=window.wanted,
                )

    def _windows(self, seed: int) -> list[FileWindow]:
        if self.excerpt is None:
            return []
        count = self.asked.continuations
        return draw_windows(self.excerpt, self.inside, count=count, seed=seed, cutoff=self.cutoff)


EARLY: Final = 0.15
"""The share of the series that is the early era if no year is given.

Our choice. The paper's era, 1926 to 1965, is the first 40 % of Mkt-RF, and models know its later
years well.
"""
FIGURES: Final = 3
"""The number of values stated before a date."""
EXAMPLE: Final = "-0.27"
_APART: Final[Mapping[Frequency, int]] = {"daily": 120, "weekly": 26, "quarterly": 6, "annual": 7}
"""Distance between the date of the figures and the date named, in dates.

For months it is six, within one year.
"""


@dataclass(frozen=True)
class SentimentQuestions:
    """The questions about the sentiment of one series."""

    definition: SeriesDefinition
    values: Mapping[Period, float]
    """Values in chronological order."""
    config: LeakConfig
    wording: Wording

    def list_questions(self, drawings: Sequence[Drawing], seed: int) -> Iterator[SeriesQuestion]:
        """Yield the questions for scores: drawn dates, then the early era, then scrambled dates."""
        for drawing in drawings:
            yield from (self._ask(period, drawing.seed) for period in drawing.dates)
        drawn = [period for drawing in drawings for period in drawing.dates]
        for period in self._early(drawn, seed):
            yield self._question("placebo", period, self.wording.value(period), seed)
            yield self._ask(period, seed)
        for period, other in self._scramble_dates(drawn, seed):
            before = self._before(period)
            for shown in (period, other):
                words = self._messages(shown, before)
                yield self._question("sentiment", period, words, seed, shown)

    def notes(self) -> Iterator[str]:
        """Yield a note on each control that cannot be asked as configured."""
        there = len(self._era())
        if there < self.config.early:
            yield (
                f"the early era has only {there} dates instead of {self.config.early}, so all of "
                "them are used"
            )

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

    def _scramble_dates(
        self, drawn: Sequence[Period], seed: int
    ) -> Iterator[tuple[Period, Period]]:
        """Yield dates, each with the date that is named instead."""
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
            other = period.shift(6 if period.start.month <= 6 else -6)
            return other if other in self.values else None
        apart = _APART[self.definition.frequency]
        place = at + apart if at + apart < len(ordered) else at - apart
        return ordered[place] if place >= 0 else None

    def _ask(self, period: Period, seed: int) -> SeriesQuestion:
        return self._question("sentiment", period, self._messages(period), seed)

    def _question(
        self,
        variant: Variant,
        period: Period,
        messages: Sequence[Message],
        seed: int,
        shown_date: Period | None = None,
    ) -> SeriesQuestion:
        return SeriesQuestion(
            series=self.definition.id,
            period=period,
            variant=variant,
            text=freeze_messages(messages),
            truth=self.values[period],
            shown_date=shown_date,
            seed=seed,
        )

    def _before(self, period: Period) -> list[float]:
        ordered = list(self.values)
        at = ordered.index(period)
        return [self.values[each] for each in ordered[at - FIGURES : at]]

    def _messages(self, date: Period, figures: Sequence[float] = ()) -> list[Message]:
        one = self.definition
        common = {"date": date.words, "about": one.about or one.name, "example": EXAMPLE}
        if not figures:
            return load_built_in_prompt("series_sentiment").fill(**common)
        return load_built_in_prompt("series_sentiment_figures").fill(
            **common,
            quantity=one.quantity,
            name=one.name,
            unit=one.unit.name,
            count=str(len(figures)),
            dates=DATE_WORDS[one.frequency],
            figures=", ".join(map(one.format_number, figures)),
        )
