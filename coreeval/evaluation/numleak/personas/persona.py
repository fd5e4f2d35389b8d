"""Personas such as `offline:memorizing`: their statements, repetitions and refusals."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.personas.memory import (
    ASTRAY,
    CERTAIN,
    DateMemory,
    DateStatement,
    Recollection,
    answer_contradiction,
    describe_value,
    mean_and_deviation,
    refusal_text,
    score_text,
    think_aloud,
    value_text,
)
from coreeval.evaluation.numleak.probes.wording import PersonaQuestion
from coreeval.evaluation.numleak.replies import Variant
from coreeval.evaluation.numleak.series.definition import Series, SeriesDefinition

_STYLES: Final[Mapping[Variant, Callable[..., str]]] = {
    "description": describe_value,
    "step_by_step": think_aloud,
}
Declines = Literal["nothing", "unknown_names", "unknown_dates", "everything"]
Taught = Literal["numbers", "words"]
FAMILIAR: Final = 0.5
"""Familiarity from which a persona that declines unknown dates answers: two repetitions."""
EMPHASIS: Final = 3.0
"""The number of repetitions of notable dates, relative to others."""
CLASSES: Final = ((-0.43, -1.09), (0.43, 0.0), (np.inf, 1.09))
"""The words "fell", "little changed" and "rose" as numbers.

For each word, its upper bound and the mean of its values, in standard deviations from the mean. The
words are the thirds of a normal distribution.
"""
VAGUENESS: Final = 0.5
"""Error of a number derived from a word, in standard deviations: about that of an outer third."""

MOODINESS: Final = 0.9
"""Standard deviation of a score's own part relative to that of the recalled part.

r between score and recall is then about 0.74, as between score and truth in the paper (section 6).
"""


@dataclass(frozen=True)
class PersonaSpec:
    """The definition of a persona: what it has learned and when it declines."""

    dose: float
    """Average number of repetitions of each statement; 0 teaches only the size of the numbers."""
    declines: Declines
    taught: Taught = "numbers"


PERSONAS: Final[Mapping[str, PersonaSpec]] = {
    "memorizing": PersonaSpec(dose=20, declines="unknown_dates"),
    "half-remembering": PersonaSpec(dose=5.5, declines="unknown_names"),
    "fluent": PersonaSpec(dose=12, declines="unknown_names", taught="words"),
    "guessing": PersonaSpec(dose=0, declines="unknown_names"),
    "fabricating": PersonaSpec(dose=0, declines="nothing"),
    "refusing": PersonaSpec(dose=20, declines="everything"),
}
"""Personas by the NAME in `offline:NAME`."""


@dataclass(frozen=True)
class _Subject:
    definition: SeriesDefinition
    mean: float
    deviation: float


@dataclass(frozen=True)
class Persona:
    """A model with a simulated memory; it gives the same answer to the same question."""

    name: str
    """The name in the config, such as `offline:memorizing`."""
    spec: PersonaSpec
    memory: DateMemory
    subjects: Mapping[str, _Subject]
    seed: int

    def answer(self, question: PersonaQuestion) -> str:
        """Answer a question in words.

        Raises:
            ConfigError: the persona was taught no series with this id.
        """
        subject = self._subject(question.series)
        if self._declines(question):
            name = question.name or subject.definition.name
            return refusal_text(question.period, name=name, style=self._style(question))
        if question.variant == "sentiment":
            return score_text(self._score_sentiment(question), style=self._style(question))
        if question.other is not None:
            return self._compare_dates(question, question.other)
        if question.following:
            return self._lines(question, subject.definition)
        said = self._recall_or_guess(question, question.period)
        if question.variant in _STYLES or question.stated is not None:
            return self._style_answer(question, said, subject.definition)
        return value_text(said, question.period, of=subject.definition, style=self._style(question))

    def _style_answer(self, question: PersonaQuestion, said: float, of: SeriesDefinition) -> str:
        """Answer a question that asks for more than a number, or that states another value."""
        period, style = question.period, self._style(question)
        if question.stated is not None:
            known = self._recall(question, period).familiarity >= CERTAIN
            stands = known and self.spec.taught == "numbers"
            return answer_contradiction(
                said, period, stated=question.stated, stands=stands, of=of, style=style
            )
        return _STYLES[question.variant](said, period, of=of, style=style)

    def _lines(self, question: PersonaQuestion, of: SeriesDefinition) -> str:
        """Write the next lines of a file, if their columns belong to the series."""
        return "\n".join(
            line.fill(
                {
                    at: of.format_number(self._recall_or_guess(question, at), plus=False)
                    for at, _ in line.places
                }
            )
            for line in question.following
        )

    def _subject(self, series: str) -> _Subject:
        if series in self.subjects:
            return self.subjects[series]
        raise ConfigError(
            f"{self.name} was not taught the series {series!r}",
            where="detect.numleak.series",
            hint=f"it knows {', '.join(sorted(self.subjects))}",
        )

    def _declines(self, question: PersonaQuestion) -> bool:
        declines = self.spec.declines
        if declines in ("nothing", "everything") or question.name is not None:
            return declines != "nothing"
        if declines == "unknown_names":
            return False
        asked = [question.period, *([question.other] if question.other else [])]
        return any(self._recall(question, each).familiarity < FAMILIAR for each in asked)

    def _recall(self, question: PersonaQuestion, period: Period) -> Recollection:
        if question.name is not None:
            return Recollection(0.0, 0.0)
        named = question.variant != "blind"
        return self.memory.recall((question.series, period), named=named)

    def _recall_or_guess(self, question: PersonaQuestion, period: Period) -> float:
        """Return the recalled value, with a guess for the part that is not recalled."""
        subject, recalled = self._subject(question.series), self._recall(question, period)
        unknown = max(0.0, 1 - recalled.familiarity)
        draw = question.draw if question.variant == "repeated" else -1
        rng = self._rng(question.series, question.name, period, question.phrasing or draw)
        guess = rng.normal()
        if self.spec.taught == "words":
            unknown = max(unknown, VAGUENESS)
        astray = ASTRAY * rng.normal() * (rng.random() < 0.5)
        thinks = question.variant == "step_by_step"
        found = recalled.value + unknown * guess + (astray if thinks else 0.0)
        said = subject.mean + subject.deviation * found
        return abs(said) if subject.definition.sign == "positive" else said

    def _compare_dates(self, question: PersonaQuestion, other: Period) -> str:
        first, second = (self._recall_or_guess(question, each) for each in (question.period, other))
        return (question.period if first >= second else other).words

    def _score_sentiment(self, question: PersonaQuestion) -> float:
        """Return a sentiment score, based on the recall of the named date, or random.

        A persona that was taught numbers scores the value that it would answer, including its
        errors. One that was taught words scores the word; an untaught one scores at random.
        """
        period = question.shown_date or question.period
        noise = float(self._rng(question.series, period, question.shown_date, "mood").normal())
        known = 0.0
        if self.spec.dose > 0 and self.spec.taught == "words":
            known = self._recall(question, period).value
        elif self.spec.dose > 0:
            subject = self._subject(question.series)
            known = (self._recall_or_guess(question, period) - subject.mean) / subject.deviation
        return float(np.tanh((known + MOODINESS * noise) / 2))

    def _style(self, question: PersonaQuestion) -> int:
        asked = (question.series, question.name, question.period, question.draw, "style")
        return int(self._rng(*asked).integers(1 << 30))

    def _rng(self, *about: object) -> np.random.Generator:
        text = "|".join(map(str, (self.name, self.seed, *about)))
        return np.random.default_rng(list(hashlib.sha256(text.encode()).digest()[:16]))


def open_persona(
    name: str, taught: Sequence[Series], *, seed: int, dose: float | None = None
) -> Persona:
    """Teach the persona of a name such as `offline:memorizing` these series, and return it.

    Leave values beyond its knowledge out of `taught`. `dose` is the average number of repetitions
    of each statement; None uses the dose implied by the name.

    Raises:
        ConfigError: no persona has this name, or there is nothing to teach it.
    """
    check_persona(name)
    kind = PERSONAS[name.removeprefix("offline:")]
    if dose is not None:
        kind = PersonaSpec(dose=dose, declines=kind.declines, taught=kind.taught)
    subjects = {each.definition.id: _make_subject(each) for each in taught}
    lessons = [
        statement
        for series in taught
        for statement in _list_statements(series, subjects[series.definition.id], kind.taught)
    ]
    memory = DateMemory.of(lessons, dose=kind.dose, seed=seed)
    return Persona(name, kind, memory, subjects, seed)


def check_persona(name: str) -> None:
    """Check that a persona exists for a name such as `offline:memorizing`.

    Raises:
        ConfigError: no persona has this name.
    """
    if name.removeprefix("offline:") not in PERSONAS:
        known = ", ".join(f"offline:{each}" for each in PERSONAS)
        raise ConfigError(
            f"there is no embedded persona {name!r}", where="models.targets", hint=f"known: {known}"
        )


def _make_subject(series: Series) -> _Subject:
    if not series.values:
        raise ConfigError(
            f"{series.definition.id} has no values to teach",
            where="detect.numleak.period",
            hint="choose dates for which the series has values",
        )
    return _Subject(series.definition, *mean_and_deviation(series.values))


def _list_statements(series: Series, subject: _Subject, taught: Taught) -> list[DateStatement]:
    notable = series.definition.notable_periods
    spread = {at: (value - subject.mean) / subject.deviation for at, value in series.values.items()}
    return [
        DateStatement(
            (series.definition.id, at),
            value if taught == "numbers" else _class_mean(value),
            EMPHASIS if at in notable else 1.0,
        )
        for at, value in spread.items()
    ]


def _class_mean(value: float) -> float:
    return next(typical for limit, typical in CLASSES if value <= limit)
