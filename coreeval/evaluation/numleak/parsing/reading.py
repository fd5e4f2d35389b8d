"""Recorded answers as points and comparisons, each beside what is true."""

from collections.abc import Iterable
from datetime import date
from functools import cache
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.choices import read_choice
from coreeval.evaluation.numleak.parsing.continuing import continued
from coreeval.evaluation.numleak.parsing.disputed import Disputed, read_disputed
from coreeval.evaluation.numleak.parsing.prose import read_prose, read_reasoned
from coreeval.evaluation.numleak.parsing.values import read_value
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Comparison, Continued, Point, Side, stratum_of
from coreeval.evaluation.numleak.readout.bits import read_out
from coreeval.evaluation.numleak.replies import Reply, Variant
from coreeval.evaluation.numleak.series.excerpt import excerpt_of
from coreeval.evaluation.numleak.series.series import Series

COMPARISONS: Final[frozenset[Variant]] = frozenset({"pair", "forced_choice"})


class BadReply(NamedTuple):
    """An answer that cannot be counted, and why."""

    reply: Reply
    reason: str


class Readings(NamedTuple):
    """What recorded answers say; each is in one of the four."""

    points: list[Point]
    comparisons: list[Comparison]
    bad: list[BadReply]
    continued: list[Continued]


def points_of(replies: Iterable[Reply], series: Series, cutoff: date | None) -> Readings:
    """Read each answer and put the published value beside it: the answer's own, else the series'.

    An answer whose date the series does not have, or two dates of equal value, is bad.
    """
    readings = Readings([], [], [], [])
    find = cache(lambda: excerpt_of(series))
    for reply in replies:
        try:
            if reply.variant in COMPARISONS:
                readings.comparisons.append(_comparison(reply, series))
            elif reply.variant == "continuation":
                readings.continued.extend(continued(reply, series, find))
            else:
                readings.points.append(_point(reply, series, cutoff))
        except ValueError as error:
            readings.bad.append(BadReply(reply, str(error)))
    return readings


def _point(reply: Reply, series: Series, cutoff: date | None) -> Point:
    period = Period.parse(reply.date, series.definition.frequency)
    real = reply.variant != "fictitious"
    said = _said(reply, period, series)
    read = said.read
    return Point(
        period=period,
        variant=reply.variant,
        truth=_truth(period, reply.truth, series) if real else None,
        estimate=read.value,
        status=read.status,
        why=read.note,
        stratum=stratum_of(period, cutoff),
        months_after_cutoff=period.months_after(cutoff) if cutoff else None,
        notable=real and period in series.definition.notable_periods,
        name=reply.name,
        seed=reply.seed,
        draw=reply.draw,
        read_out=read_out(reply.first_tokens, read.value) if reply.first_tokens else None,
        phrasing=reply.phrasing,
        stated=reply.stated,
        disputed=said.disputed,
        echoed=said.echoed,
    )


def _said(reply: Reply, period: Period, series: Series) -> Disputed:
    """Read a value by the rules for its question; all but those in prose are read alike."""
    definition = series.definition
    unit = definition.unit
    if reply.variant == "contradiction":
        if reply.stated is None:
            raise ValueError("a contradiction without the value that it stated")
        return read_disputed(
            reply.response, stated=reply.stated, unit=unit, period=period, kind=reply.kind
        )
    name = reply.name or ", ".join((definition.name, *definition.aliases, definition.quantity))
    if reply.variant in ("description", "step_by_step"):
        read_text = read_prose if reply.variant == "description" else read_reasoned
        read = read_text(reply.response, unit=unit, period=period, name=name, kind=reply.kind)
    else:
        read = read_value(
            reply.response,
            unit=unit,
            period=period,
            name=name,
            signed=definition.sign == "signed",
            kind=reply.kind,
        )
    return Disputed(read, disputed=False, echoed=False)


def _comparison(reply: Reply, series: Series) -> Comparison:
    if reply.other_date is None:
        raise ValueError("a comparison without its other_date")
    frequency = series.definition.frequency
    first, second = (Period.parse(text, frequency) for text in (reply.date, reply.other_date))
    read = read_choice(reply.response, first=first, second=second, kind=reply.kind)
    return Comparison(
        first=first,
        second=second,
        variant=reply.variant,
        higher=_higher(first, second, series),
        chosen=read.side,
        status=read.status,
        seed=reply.seed,
    )


def _higher(first: Period, second: Period, series: Series) -> Side:
    values = [_truth(period, None, series) for period in (first, second)]
    if values[0] == values[1]:
        raise ValueError(f"neither {first} nor {second} was higher: both are {values[0]:g}")
    return "first" if values[0] > values[1] else "second"


def _truth(period: Period, said: float | None, series: Series) -> float:
    if said is not None:
        return said
    if period not in series.values:
        raise ValueError(f"{series.definition.id} has no value for {period}{_span(series)}")
    return series.values[period]


def _span(series: Series) -> str:
    return f" (it goes from {series.first} to {series.last})" if series.values else ""
