"""What a reader must know of the numbers, a sentence each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.statistics.answers import Answers, answers_of
from coreeval.evaluation.numleak.statistics.intervals import MIN_DATES
from coreeval.evaluation.numleak.statistics.measured import Measured

OTHER_UNIT: Final = 30.0
"""Answers so many times the truth, or that part of it, look like another unit: percent and
fractions are 100 apart. Ours, between 10, which bad answers may reach, and 100."""
_NOUGHT: Final = 1e-9
"""Of a unit: no published value is so near to 0 and not 0."""
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
        none = f"none of {len(points)} questions has an answer that could be compared"
        return (none, *_on_unparsed(points))
    return (
        *_on_unparsed(points),
        *_on_counts(found, answers),
        *_on_answers(found, answers),
        *_on_unit(answers, definition),
        *_on_series(found),
    )


def _on_unparsed(points: Sequence[Point]) -> Iterator[str]:
    reasons = Counter(point.why for point in points if point.status == "unparsed" and point.why)
    if reasons:
        listed = ", ".join(f"{why} ({count})" for why, count in reasons.most_common())
        yield f"why answers are unparsed: {listed}"


def _on_counts(found: Measured, answers: Answers) -> Iterator[str]:
    n, dates, parsed = len(answers.date), len(answers.periods), found.overall.parsed
    if n < parsed:
        yield f"{parsed - n} of {parsed} answers have no truth: they count for the parse rate only"
    if dates < MIN_DATES:
        yield f"only {dates} dates were answered: intervals need {MIN_DATES}"
    if n > dates:
        yield f"{n} answers are about {dates} different dates: intervals count dates"


def _on_answers(found: Measured, answers: Answers) -> Iterator[str]:
    values, counts = np.unique(answers.estimate, return_counts=True)
    commonest = values[counts.argmax()]
    if len(values) == 1 < len(answers.date):
        yield f"every answer is {commonest:g}: r is not defined"
    elif counts.max() > len(answers.date) / 2:
        yield f"{found.modal.estimate:.0%} of the answers are {commonest:g}"
    r, without = found.overall.pearson_r.estimate, found.r_without_one
    if r >= _LARGE and r - without > _MUCH:
        yield f"r rests on one date: {without:.2f} without it, {r:.2f} with it"


def _on_unit(answers: Answers, definition: SeriesDefinition) -> Iterator[str]:
    due = np.abs(answers.truth) > _NOUGHT
    if np.count_nonzero(due) < MIN_DATES:
        return
    times = float(np.median(np.abs(answers.estimate[due] / answers.truth[due])))
    if times >= OTHER_UNIT or 0 < times <= 1 / OTHER_UNIT:
        yield f"the median answer is {times:.3g} times the truth: is it in {definition.unit.name}?"


def _on_series(found: Measured) -> Iterator[str]:
    if found.sign_base_rate.estimate == 1:
        yield "all truths have one sign: sign accuracy says nothing of this series"
    if not found.baselines:
        yield "the whole series is not known: nothing tells what one without memory would score"
    equal = [name for name, each in found.baselines.items() if each.gain.ci_low <= 0]
    if equal:
        known = ", ".join(equal).replace("_", " ")
        yield f"not shown to be nearer than one who knows no date but: {known}"
    year = found.baselines.get("year")
    if year is not None and year.pearson_r >= _PERSISTENT:
        r = f"{year.pearson_r:.2f}"
        yield f"values persist: each year's mean alone reaches r {r} on these dates"
