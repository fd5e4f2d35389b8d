"""What a reader must know of the numbers, a sentence each."""

from collections.abc import Callable, Sequence
from math import isnan
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.statistics.answers import Answers, answers_of
from coreeval.evaluation.numleak.statistics.intervals import MIN_DATES
from coreeval.evaluation.numleak.statistics.measured import Measured

_OTHER_UNIT: Final = 30.0
"""Answers so many times the truth, or that part of it, look like another unit: percent and
fractions are 100 apart. Ours, between 10, which bad answers may reach, and 100."""
_LARGE: Final = 0.5
"""A correlation that counts as large (Cohen 1988, section 3.2)."""
_MUCH: Final = 0.1
"""Of such an r: a date that carries so much of it is named. A small effect, by the same source."""
_PERSISTENT: Final = 0.7
"""An r from which on each year's mean holds half of the variance."""


def notes_on(
    found: Measured, points: Sequence[Point], definition: SeriesDefinition
) -> tuple[str, ...]:
    """Say what limits the numbers of the direct questions."""
    answers = answers_of(points)
    if not answers.periods:
        return (f"none of {len(points)} questions has an answer that could be compared",)
    made = [note(found, answers, definition) for note in _NOTES]
    return tuple(filter(None, made))


def _without_truth(found: Measured, answers: Answers, _: SeriesDefinition) -> str:
    lost = found.overall.parsed - len(answers.date)
    if not lost:
        return ""
    return (
        f"{lost} of {found.overall.parsed} answers count for the parse rate only: no truth is known"
    )


def _few(found: Measured, answers: Answers, _: SeriesDefinition) -> str:
    dates = len(answers.periods)
    return (
        f"only {dates} dates were answered: intervals need {MIN_DATES}" if dates < MIN_DATES else ""
    )


def _repeated(found: Measured, answers: Answers, _: SeriesDefinition) -> str:
    n, dates = len(answers.date), len(answers.periods)
    return (
        f"{n} answers are about {dates} different dates: intervals count dates" if n > dates else ""
    )


def _constant(found: Measured, answers: Answers, definition: SeriesDefinition) -> str:
    values, counts = np.unique(answers.estimate, return_counts=True)
    commonest = f"{values[counts.argmax()]:g}"
    if len(values) == 1 and len(answers.estimate) > 1:
        return f"every answer is {commonest}: r is not defined"
    often = found.modal.estimate
    return f"{often:.0%} of the answers are {commonest}" if often > 0.5 else ""


def _one_sign(found: Measured, _: Answers, definition: SeriesDefinition) -> str:
    if found.sign_base_rate.estimate < 1:
        return ""
    return "all truths have one sign: sign accuracy says nothing of this series"


def _carried(found: Measured, _: Answers, definition: SeriesDefinition) -> str:
    r, without = found.overall.pearson_r.estimate, found.r_without_one
    if isnan(without) or r < _LARGE or r - without <= _MUCH:
        return ""
    return f"r rests on one date: {without:.2f} without it, {r:.2f} with it"


def _other_unit(_: Measured, answers: Answers, definition: SeriesDefinition) -> str:
    due = answers.truth != 0
    if np.count_nonzero(due) < MIN_DATES:
        return ""
    times = float(np.median(np.abs(answers.estimate[due] / answers.truth[due])))
    if times == 0 or 1 / _OTHER_UNIT < times < _OTHER_UNIT:
        return ""
    return f"the median answer is {times:.3g} times the truth: is it in {definition.unit.name}?"


def _level(found: Measured, _: Answers, definition: SeriesDefinition) -> str:
    year = found.baselines.get("year")
    if year is None or isnan(year.pearson_r) or year.pearson_r < _PERSISTENT:
        return ""
    return f"values persist: each year's mean alone reaches r {year.pearson_r:.2f} on these dates"


def _no_values(found: Measured, _: Answers, definition: SeriesDefinition) -> str:
    if found.baselines:
        return ""
    return "the whole series is not known: nothing tells what one without memory would score"


_NOTES: Final[tuple[Callable[[Measured, Answers, SeriesDefinition], str], ...]] = (
    _without_truth, _few, _repeated, _constant, _one_sign,
    _carried, _other_unit, _level, _no_values,
)  # fmt: skip
