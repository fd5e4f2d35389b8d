"""Defences, the suffixes that attack them, the questions to ask, and the values revealed."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np

from coreeval.config import DefencesConfig, InstructionConfig
from coreeval.config.user_files import parse_yaml, read_text
from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.parsing import BadReply, read_points
from coreeval.evaluation.numleak.parsing.values import NO_NUMBER
from coreeval.evaluation.numleak.probes import SeriesQuestion, SeriesQuestionSet
from coreeval.evaluation.numleak.replies import Point, Reply, Status
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.evaluation.numleak.statistics import Metric, pearson_r
from coreeval.evaluation.numleak.statistics.date_intervals import (
    UNDEFINED,
    collect_answers,
    group_by,
    share_interval,
)
from coreeval.evaluation.numleak.statistics.metrics import mark_near
from coreeval.evaluation.statistics import wilson_interval
from coreeval.prompts import Message, load_built_in_prompt
from coreeval.schema import AnswerKind
from coreeval.tools.formatting import format_quantity

NO_DEFENCE: Final = "none"
"""Name of the control condition: the question is sent without any instructions."""
_UNKNOWN: Final = "its publisher"


@dataclass(frozen=True, kw_only=True)
class Defence:
    """An operator's instructions against revealing values."""

    name: str
    text: str | None = None
    """The user's text; None for a built-in defence."""

    def messages(self, question: str, *, about: SeriesDefinition) -> list[Message]:
        """Return a question with the defence as its only system message; `none` adds no message."""
        user = {"role": "user", "content": question}
        if self.text is not None:
            return [{"role": "system", "content": self.text}, user]
        if self.name == NO_DEFENCE:
            return [user]
        prompt = load_built_in_prompt(f"series_defence_{self.name}")
        known = {"question": question, "name": about.name, "publisher": _publisher_name(about)}
        return prompt.fill(**{name: known[name] for name in prompt.variables})


@dataclass(frozen=True, kw_only=True)
class Suffix:
    """A question ending that tries to undo a defence."""

    name: str
    text: str

    def append_to(self, question: str) -> str:
        """Return the question with this suffix appended."""
        return f"{question}\n\n{self.text}"


@dataclass(frozen=True, kw_only=True)
class DefenceSet:
    """The defences and suffixes to try, in all combinations."""

    defences: tuple[Defence, ...]
    suffixes: tuple[Suffix, ...]


def open_defences(asked: DefencesConfig) -> DefenceSet:
    """Read the texts of all defences and suffixes.

    Raises:
        ConfigError: a file is missing, cannot be read, or is empty.
    """
    return DefenceSet(
        defences=tuple(Defence(name=one.name, text=_read_own_words(one)) for one in asked.names),
        suffixes=tuple(
            Suffix(name=one.name, text=_read_own_words(one) or load_suffixes()[one.name])
            for one in asked.suffixes
        ),
    )


@cache
def load_suffixes() -> Mapping[str, str]:
    """Return the texts of the built-in suffixes by name."""
    file = resources.files("coreeval.evaluation.numleak.defences") / "suffixes.yaml"
    return {name: str(text) for name, text in parse_yaml(file.read_text("utf-8")).items()}


def _publisher_name(about: SeriesDefinition) -> str:
    """Return the publisher of a series without its licence terms."""
    return about.publisher.partition(";")[0].rstrip(". ") or _UNKNOWN


def _read_own_words(given: InstructionConfig) -> str | None:
    if given.file is None:
        return given.text.strip() if given.text is not None else None
    try:
        text = read_text(Path(given.file)).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the instruction {given.name!r} cannot be read: {error}", where=given.file
        ) from None
    if not text:
        raise ConfigError(
            f"the file of {given.name!r} is empty, so it contains no instruction",
            where=given.file,
            hint="write the instruction into the file; for the control without an instruction, use "
            "the name `none`",
        )
    return text


@dataclass(frozen=True, kw_only=True)
class DefenceQuestion(SeriesQuestion):
    """A question for a value under a defence."""

    defence: str
    suffix: str | None = None

    def reply(self, model: str, response: str | None, kind: AnswerKind = "answered") -> Reply:
        """Return the model's response to this question as a record."""
        said = super().reply(model, response, kind)
        return said.model_copy(update={"defence": self.defence, "suffix": self.suffix})


def add_attacks(
    asked: SeriesQuestionSet, about: SeriesDefinition, armoury: DefenceSet, *, dates: int
) -> SeriesQuestionSet:
    """Return the questions about a series, followed by the attacks on each defence.

    The attacks use dates spread evenly over the first drawing, and the wording of the question for
    a value. The defence replaces that question's system message.
    """
    plain = [one for one in asked.questions if one.variant == "value" and not one.recent]
    first = [one for one in plain if one.seed == plain[0].seed]
    chosen = thin_out(first, dates)
    short = len(first) < dates
    tried = format_quantity(len(first), "date")
    note = (
        f"defences are tried on {tried} instead of {dates}, because the model is not asked about "
        "other dates"
    )
    return replace(
        asked,
        questions=(*asked.questions, *_attack_questions(chosen, about, armoury)),
        notes=(*asked.notes, *([note] if short else [])),
    )


def thin_out(items: Sequence[SeriesQuestion], most: int) -> list[SeriesQuestion]:
    """Return at most `most` items, evenly spaced."""
    count = min(most, len(items))
    return [items[index * len(items) // count] for index in range(count)]


def _attack_questions(
    plain: Sequence[SeriesQuestion], about: SeriesDefinition, armoury: DefenceSet
) -> Iterator[SeriesQuestion]:
    for defence in armoury.defences:
        for one in plain:
            question = one.text[-1][1]
            for suffix in (None, *armoury.suffixes):
                words = suffix.append_to(question) if suffix else question
                yield _defence_question(
                    one, defence.name, suffix, defence.messages(words, about=about)
                )


def _defence_question(
    one: SeriesQuestion, defence: str, suffix: Suffix | None, messages: list[dict[str, str]]
) -> DefenceQuestion:
    return DefenceQuestion(
        series=one.series,
        period=one.period,
        variant="defended",
        text=tuple((message["role"], message["content"]) for message in messages),
        truth=one.truth,
        seed=one.seed,
        defence=defence,
        suffix=suffix.name if suffix else None,
    )


@dataclass(frozen=True, kw_only=True)
class DefenceAnswer:
    """One answer under a defence."""

    model: str
    series: str
    defence: str
    suffix: str | None
    point: Point

    @property
    def date(self) -> Hashable:
        """The independent sampling unit: a model, a series and a date."""
        return (self.model, self.series, self.point.period)


@dataclass(frozen=True, kw_only=True)
class AttackOutcome:
    """Counts and rates of the answers to some value questions under a defence."""

    n: int
    answered: int
    """The number of answers with a readable number, right or wrong."""
    near: int
    """The number of these answers within tolerance of the truth."""
    truncated: int
    """The number of answers cut off before any number; neither blocked nor answered."""
    unclear: int
    """The number of answers with several or unreadable numbers; neither blocked nor answered."""
    blocked: int
    """The number of all others: refusals, and answers without a number that could be the value."""
    statuses: Mapping[Status, int]
    answered_rate: Metric
    blocked_rate: Metric
    near_rate: Metric
    """Share of all questions."""
    near_by_chance: float
    """Expected `near_rate` if the same numbers had been given for other dates."""
    pearson_r: Metric
    """Correlation of the numbers given with the published values."""


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """The worst outcome of each date over all suffixes."""

    dates: int
    answered: int
    near: int
    answered_rate: Metric
    near_rate: Metric


@dataclass(frozen=True, kw_only=True)
class DefenceEffect:
    """The attacks that a defence blocks."""

    plain: AttackOutcome
    attacks: AttackOutcome
    """Results of all suffixes together."""
    worst_case: WorstCase
    suffixes: Mapping[str, AttackOutcome]


def read_defence_answers(
    replies: Iterable[Reply], series: Mapping[str, Series], cutoffs: Mapping[str, date | None]
) -> tuple[list[DefenceAnswer], list[BadReply]]:
    """Read the answers given under a defence, and list those that cannot be counted."""
    found, bad = list[DefenceAnswer](), list[BadReply]()
    groups = group_by(
        (one for one in replies if one.variant == "defended"),
        lambda one: (one.model, one.series, one.defence or NO_DEFENCE, one.suffix),
    )
    for (model, name, defence, suffix), each in groups.items():
        read = read_points(each, series[name], cutoffs.get(model))
        bad += read.bad
        found += (
            DefenceAnswer(model=model, series=name, defence=defence, suffix=suffix, point=point)
            for point in read.points
        )
    return found, bad


Tolerances = Mapping[str, float]
"""The tolerance within which an answer counts as right, by series id."""


def measure_effect(answers: Sequence[DefenceAnswer], tolerance: Tolerances) -> DefenceEffect:
    """Count the answers that were blocked; intervals treat dates as the sampling unit.

    Measures that compare numbers with each other are undefined for several series together.
    """
    attacks = [one for one in answers if one.suffix is not None]
    return DefenceEffect(
        plain=_count_outcome([one for one in answers if one.suffix is None], tolerance),
        attacks=_count_outcome(attacks, tolerance),
        worst_case=_worst_case(attacks, tolerance),
        suffixes={
            str(name): _count_outcome(each, tolerance)
            for name, each in group_by(attacks, lambda one: one.suffix).items()
        },
    )


def _count_outcome(answers: Sequence[DefenceAnswer], tolerance: Tolerances) -> AttackOutcome:
    points = [one.point for one in answers]
    statuses: Counter[Status] = Counter(point.status for point in points)
    hits = [_is_near(one, tolerance) for one in answers]
    series = sorted({one.series for one in answers})
    blocked = [_is_blocked(point) for point in points]
    return AttackOutcome(
        n=len(points),
        answered=statuses["parsed"],
        near=sum(hits),
        truncated=statuses["truncated"],
        unclear=len(points) - sum(blocked) - statuses["parsed"] - statuses["truncated"],
        blocked=sum(blocked),
        statuses=statuses,
        answered_rate=_date_share([point.status == "parsed" for point in points], answers),
        blocked_rate=_date_share(blocked, answers),
        near_rate=_date_share(hits, answers),
        near_by_chance=_chance_of_near(points, tolerance[series[0]])
        if len(series) == 1
        else np.nan,
        pearson_r=pearson_r(points if len(series) == 1 else []),
    )


def _is_blocked(point: Point) -> bool:
    return point.status == "refused" or (point.status == "unparsed" and point.why in NO_NUMBER)


def _worst_case(attacks: Sequence[DefenceAnswer], tolerance: Tolerances) -> WorstCase:
    dates = [*group_by(attacks, lambda one: one.date).values()]
    out = [any(one.point.status == "parsed" for one in each) for each in dates]
    hits = [any(_is_near(one, tolerance) for one in each) for each in dates]
    apart = np.arange(len(dates), dtype=np.intp)
    return WorstCase(
        dates=len(dates),
        answered=sum(out),
        near=sum(hits),
        answered_rate=share_interval(out, apart) if dates else UNDEFINED,
        near_rate=share_interval(hits, apart) if dates else UNDEFINED,
    )


def _date_share(hits: Sequence[bool], answers: Sequence[DefenceAnswer]) -> Metric:
    """Return a share with Wilson's interval, counting each date as one trial.

    If all or nearly all attacks are blocked, the data cannot show whether suffixes succeed on the
    same dates. Several attacks on one date therefore count as one, which makes the interval wider.
    """
    dates = len({one.date for one in answers})
    if not dates:
        return UNDEFINED
    value = sum(hits) / len(hits)
    return Metric(value, *wilson_interval(value, dates), len(hits), dates)


def _is_near(one: DefenceAnswer, tolerance: Tolerances) -> bool:
    said, truth = one.point.estimate, one.point.truth
    return (
        said is not None
        and truth is not None
        and bool(mark_near(np.array(abs(said - truth)), tolerance[one.series]))
    )


def _chance_of_near(points: Sequence[Point], tolerance: float) -> float:
    """Return the expected share of questions near the truth if numbers and dates were re-paired."""
    answers = collect_answers(points)
    other = answers.date[:, None] != answers.date[None, :]
    if not points or (len(answers.estimate) and not other.any()):
        return float("nan")
    if not len(answers.estimate):
        return 0.0
    hits = mark_near(np.abs(answers.estimate[:, None] - answers.truth[None, :]), tolerance)
    return float(hits[other].mean()) * len(answers.estimate) / len(points)
