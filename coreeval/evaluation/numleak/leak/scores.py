"""Recorded answers about sentiment: scores of dates, and which of them are scrambled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coreeval.evaluation.numleak.parsing import BadReply, points_of
from coreeval.evaluation.numleak.parsing.scores import read_score
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point, Status
from coreeval.evaluation.numleak.replies import FOR_SIGNALS, Reply
from coreeval.evaluation.numleak.series.series import Series


class Score(NamedTuple):
    """One question for a score."""

    period: Period
    value: float | None
    """From -1 to 1; None unless `status` is parsed."""
    status: Status
    shown: Period | None
    """The date that stood in the question, where figures were stated; it may be another one."""


@dataclass(frozen=True, kw_only=True)
class Readings:
    """What the answers say; each is in one of the three."""

    scores: tuple[Score, ...] = ()
    early: tuple[Point, ...] = ()
    """Values of the early era."""
    bad: tuple[BadReply, ...] = ()


def scores_of(replies: Iterable[Reply], series: Series) -> Readings:
    """Read the answers for attribution; a date that the series does not have is bad."""
    those = [reply for reply in replies if reply.variant in FOR_SIGNALS]
    early = points_of((one for one in those if one.variant == "placebo"), series, None)
    scores, bad = list[Score](), list(early.bad)
    for reply in those:
        if reply.variant == "sentiment":
            try:
                scores.append(_score(reply, series))
            except ValueError as error:
                bad.append(BadReply(reply, str(error)))
    return Readings(scores=tuple(scores), early=tuple(early.points), bad=tuple(bad))


def means(scores: Sequence[Score]) -> dict[Period, float]:
    """Return the mean score of each date that has one."""
    found = dict[Period, list[float]]()
    for score in scores:
        if score.value is not None:
            found.setdefault(score.period, []).append(score.value)
    return {period: sum(values) / len(values) for period, values in found.items()}


def _score(reply: Reply, series: Series) -> Score:
    frequency = series.definition.frequency
    period = Period.parse(reply.date, frequency)
    shown = Period.parse(reply.shown_date, frequency) if reply.shown_date else None
    for each in (period, shown) if shown else (period,):
        known = each in series.values or (shown is None and reply.truth is not None)
        if not known:
            raise ValueError(f"{series.definition.id} has no value for {each}")
    read = read_score(reply.response, period=shown or period, kind=reply.kind)
    return Score(period, read.value, read.status, shown)
