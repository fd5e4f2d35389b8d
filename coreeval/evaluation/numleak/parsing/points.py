"""Recorded answers as points, comparisons and continued lines, each with the truth.

Rows that continue a file are read in the format of the file (its columns, dates and signs) and
aligned by their dates.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from statistics import fmean
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.answer_text import (
    normalise_signs,
    normalise_text,
    split_cells,
)
from coreeval.evaluation.numleak.parsing.dates import parse_day
from coreeval.evaluation.numleak.parsing.probe_answers import (
    DisputeReading,
    read_choice,
    read_disputed,
    read_prose,
    read_reasoned,
)
from coreeval.evaluation.numleak.parsing.values import read_value
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import (
    ContinuationValue,
    DateComparison,
    Point,
    Reply,
    Side,
    Status,
    Variant,
    find_stratum,
    read_out,
)
from coreeval.evaluation.numleak.series.definition import Series
from coreeval.evaluation.numleak.series.excerpt import (
    FileExcerpt,
    FileLine,
    find_excerpt,
    read_line_values,
)
from coreeval.evaluation.refusals import declines
from coreeval.models.answer_text import extract_final_answer, iter_objects

_MARKUP: Final = " \t>*`|-"
"""Characters that may surround a line in a list, a table or code."""
_DELIMITERS: Final = ("|", "\t", ";", ",")
_COLON: Final = re.compile(r"(?<=\d):\s+(?=[-+]?\d)")
"""The colon between a date and its value, if columns have no other delimiter."""
_BLANKS: Final = re.compile(r"(?<!\s)\s+(?=[-+]?[\d.])")
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d{2}")


def align_rows(said: str, excerpt: FileExcerpt, series: Series) -> str:
    """Return an answer's lines in the format of the file, without those that are not rows.

    Dates in other forms ("1984-04", "April 1984") are written as in the file. If the answer names
    the columns, they are put in the order of the file's header. Dashes become minus signs.
    """
    between = excerpt.lines[0].delimiter
    header = [cell.strip() for cell in excerpt.header.split(between)]
    written = _dates_written(excerpt, between)
    order: list[int] | None = None
    rows = list[str]()
    for line in _lines(said):
        cells = _cells(line, between)
        if named := _order(cells, header, series):
            order = named
            continue
        cells = _in_order(cells, order, header)
        if cells:
            cells[0] = _as_written(cells[0], written, series)
            rows.append(between.join(cells))
    return "\n".join(rows)


def _lines(said: str) -> Iterator[str]:
    """Yield the lines of an answer; JSON yields one line for each record or key."""
    objects = [
        value
        for value, _, _ in iter_objects(said, json.JSONDecoder(parse_float=str, parse_int=str))
    ]
    for value in objects:
        yield from _records(value)
    if not objects:
        yield from said.splitlines()


def _records(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _records(one)
    elif isinstance(value, dict) and any(parse_day(key) for key in value):
        yield from (f"{key}\t{one}" for key, one in value.items() if isinstance(one, str))
    elif isinstance(value, dict):
        texts = {key: str(one) for key, one in value.items() if isinstance(one, str)}
        yield "\t".join(texts)
        yield "\t".join(texts.values())


def _cells(line: str, between: str) -> list[str]:
    """Split a line into cells, by the file's delimiter or the line's own."""
    bare = _COLON.sub("\t", normalise_signs(line).strip(_MARKUP))
    delimiter = next((one for one in (between, *_DELIMITERS) if one in bare), None)
    if delimiter is None:
        bare, delimiter = _BLANKS.sub("\t", bare), "\t"
    return [cell.strip('"').removesuffix("%").strip() for cell in split_cells(bare, delimiter)]


def _order(cells: Sequence[str], header: Sequence[str], series: Series) -> list[int] | None:
    """Return the position of each of the file's columns in an answer; None if no cell names one."""
    column = series.definition.column
    named = [header.index(cell) if cell in header else -1 for cell in cells]
    if column is None or column not in cells or len(cells) < 2:
        return None
    if named[0] < 0:
        named[0] = 0
    return named


def _in_order(
    cells: Sequence[str], order: Sequence[int] | None, header: Sequence[str]
) -> list[str]:
    """Return the cells of a row in the order of the file."""
    if order is None or len(order) != len(cells):
        return list(cells)
    placed = [""] * len(header)
    for place, cell in zip(order, cells, strict=True):
        if place >= 0:
            placed[place] = cell
    return placed


def _dates_written(excerpt: FileExcerpt, between: str) -> Mapping[Period, str]:
    """Return the file's spelling of each date; empty if a line holds several dates."""
    return {
        line.places[0][0]: line.text.split(between)[0].strip().strip('"')
        for line in excerpt.lines
        if len(line.places) == 1
    }


def _as_written(cell: str, written: Mapping[Period, str], series: Series) -> str:
    """Return a date in the file's spelling; other cells are returned unchanged."""
    if _YEAR.fullmatch(cell) or cell in written.values():
        return cell
    day: date | None = parse_day(cell)
    if day is None:
        return cell
    return written.get(Period.of(day, series.definition.frequency), cell)


def read_continuation(
    reply: Reply, series: Series, find: Callable[[], FileExcerpt | None]
) -> list[ContinuationValue]:
    """Return each value that a continuation should contain, in the order of the file.

    Raises:
        ValueError: the file is missing, or the lines shown and asked for are unknown.
    """
    if reply.shown is None or reply.wanted is None:
        raise ValueError("the continuation does not state how many lines were shown and requested")
    excerpt = find()
    if excerpt is None:
        raise ValueError(
            f"the publisher's original file of {series.definition.id} is missing: pass it with "
            "--series NAME=FILE"
        )
    first = Period.parse(reply.date, series.definition.frequency)
    at = excerpt.place_of(first)
    if at is None or at < reply.shown:
        raise ValueError(f"the file has fewer than {reply.shown} lines before {first}")
    shown = _line_values(excerpt.lines[at - reply.shown : at], series)
    said = read_line_values(_rows(reply, excerpt, series), excerpt, series)
    status = _silence_status(reply)
    return [
        ContinuationValue(
            period=period,
            window=first,
            truth=series.values[period],
            estimate=said.get(period),
            status="parsed" if period in said else status,
            last=shown[-1],
            mean=fmean(shown),
            told=series.values[period] in shown,
        )
        for line in excerpt.lines[at : at + reply.wanted]
        for period, _ in line.places
    ]


def _line_values(lines: Sequence[FileLine], series: Series) -> list[float]:
    return [series.values[period] for line in lines for period, _ in line.places]


def _rows(reply: Reply, excerpt: FileExcerpt, series: Series) -> str:
    """Return an answer's lines in the format of the file.

    The last line of a cut-off answer is left out, because a number in it may be cut off too.
    """
    said = extract_final_answer(reply.response or "")
    if reply.kind == "truncated":
        said = "\n".join(said.splitlines()[:-1])
    return align_rows(said, excerpt, series)


def _silence_status(reply: Reply) -> Status:
    """Return the status of the values that an answer does not contain."""
    if reply.kind == "refused" or (reply.response and declines(normalise_text(reply.response))):
        return "refused"
    return "truncated" if reply.kind == "truncated" else "unparsed"


COMPARISONS: Final[frozenset[Variant]] = frozenset({"pair", "forced_choice"})


class BadReply(NamedTuple):
    """An answer that cannot be counted, and the reason."""

    reply: Reply
    reason: str


class AnswerReadings(NamedTuple):
    """The parsed answers; each is in one of the four fields."""

    points: list[Point]
    comparisons: list[DateComparison]
    bad: list[BadReply]
    continued: list[ContinuationValue]


def read_points(replies: Iterable[Reply], series: Series, cutoff: date | None) -> AnswerReadings:
    """Parse each answer and add the published value: the answer's own, otherwise the series'.

    An answer is bad if the series lacks its date, or if its two dates have equal values.
    """
    readings = AnswerReadings([], [], [], [])
    find = cache(lambda: find_excerpt(series))
    for reply in replies:
        try:
            if reply.variant in COMPARISONS:
                readings.comparisons.append(_make_comparison(reply, series))
            elif reply.variant == "continuation":
                readings.continued.extend(read_continuation(reply, series, find))
            else:
                readings.points.append(_make_point(reply, series, cutoff))
        except ValueError as error:
            readings.bad.append(BadReply(reply, str(error)))
    return readings


def _make_point(reply: Reply, series: Series, cutoff: date | None) -> Point:
    period = Period.parse(reply.date, series.definition.frequency)
    real = reply.variant != "fictitious"
    said = _read_estimate(reply, period, series)
    read = said.read
    return Point(
        period=period,
        variant=reply.variant,
        truth=_find_truth(period, reply.truth, series) if real else None,
        estimate=read.value,
        status=read.status,
        why=read.note,
        stratum=find_stratum(period, cutoff),
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


def _read_estimate(reply: Reply, period: Period, series: Series) -> DisputeReading:
    """Read a value by the rules for its variant; variants without their own rules share some."""
    definition = series.definition
    name = reply.name or ", ".join((definition.name, *definition.aliases, definition.quantity))
    signed, unit, kind = definition.sign == "signed", definition.unit, reply.kind
    if reply.variant == "contradiction":
        if reply.stated is None:
            raise ValueError("the contradiction has no stated value")
        return read_disputed(
            reply.response, stated=reply.stated, unit=unit, period=period, signed=signed, kind=kind
        )
    by_variant = {"description": read_prose, "step_by_step": read_reasoned}
    read = by_variant.get(reply.variant, read_value)
    found = read(reply.response, unit=unit, period=period, name=name, signed=signed, kind=kind)
    return DisputeReading(found, disputed=False, echoed=False)


def _make_comparison(reply: Reply, series: Series) -> DateComparison:
    if reply.other_date is None:
        raise ValueError("the comparison has no other_date")
    frequency = series.definition.frequency
    first, second = (Period.parse(text, frequency) for text in (reply.date, reply.other_date))
    read = read_choice(reply.response, first=first, second=second, kind=reply.kind)
    return DateComparison(
        first=first,
        second=second,
        variant=reply.variant,
        higher=_higher_side(first, second, series),
        chosen=read.side,
        status=read.status,
        seed=reply.seed,
    )


def _higher_side(first: Period, second: Period, series: Series) -> Side:
    values = [_find_truth(period, None, series) for period in (first, second)]
    if values[0] == values[1]:
        raise ValueError(f"neither {first} nor {second} was higher: both values are {values[0]:g}")
    return "first" if values[0] > values[1] else "second"


def _find_truth(period: Period, said: float | None, series: Series) -> float:
    if said is not None:
        return said
    if period not in series.values:
        raise ValueError(
            f"{series.definition.id} has no value for {period}{_describe_range(series)}"
        )
    return series.values[period]


def _describe_range(series: Series) -> str:
    return f" (its dates are {series.first} to {series.last})" if series.values else ""
