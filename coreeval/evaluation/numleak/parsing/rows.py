"""Rows that continue a file, as the file would write them: its columns, its dates, its signs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Final

from coreeval.evaluation.numleak.parsing.dates import day_of
from coreeval.evaluation.numleak.parsing.tables import cells_of
from coreeval.evaluation.numleak.parsing.text import in_plain_signs
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.excerpt import Excerpt
from coreeval.evaluation.numleak.series.series import Series
from coreeval.models.answer_text import iter_objects

_MARKUP: Final = " \t>*`|-"
"""What may stand round a line that is shown as a list, a table or code."""
_DELIMITERS: Final = ("|", "\t", ";", ",")
_COLON: Final = re.compile(r"(?<=\d):\s+(?=[-+]?\d)")
"""Between a date and its value, where no column is parted otherwise."""
_BLANKS: Final = re.compile(r"(?<!\s)\s+(?=[-+]?[\d.])")
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d{2}")


def rows_of(said: str, excerpt: Excerpt, series: Series) -> str:
    """Return an answer's lines as its file has them, those that are no rows left out.

    Dates in other forms ("1984-04", "April 1984") are written as the file writes them, columns
    stand in the order of its header where the answer names them, and dashes are minus signs.

    Args:
        said: The answer without thoughts.
        excerpt: The file.
        series: What it is about.
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
    """Yield the lines of an answer; those of JSON are a line for each record or key."""
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
    elif isinstance(value, dict) and any(day_of(key) for key in value):
        yield from (f"{key}\t{one}" for key, one in value.items() if isinstance(one, str))
    elif isinstance(value, dict):
        texts = {key: str(one) for key, one in value.items() if isinstance(one, str)}
        yield "\t".join(texts)
        yield "\t".join(texts.values())


def _cells(line: str, between: str) -> list[str]:
    """Return the cells of a line, by the file's delimiter or the one that the line has."""
    bare = _COLON.sub("\t", in_plain_signs(line).strip(_MARKUP))
    delimiter = next((one for one in (between, *_DELIMITERS) if one in bare), None)
    if delimiter is None:
        bare, delimiter = _BLANKS.sub("\t", bare), "\t"
    return [cell.strip('"').removesuffix("%").strip() for cell in cells_of(bare, delimiter)]


def _order(cells: Sequence[str], header: Sequence[str], series: Series) -> list[int] | None:
    """Return where an answer has the columns of a file; None where the cells name none."""
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
    """Return the cells of a row where the file has them."""
    if order is None or len(order) != len(cells):
        return list(cells)
    placed = [""] * len(header)
    for place, cell in zip(order, cells, strict=True):
        if place >= 0:
            placed[place] = cell
    return placed


def _dates_written(excerpt: Excerpt, between: str) -> Mapping[Period, str]:
    """Return how a file writes the dates of its lines; nothing where a line holds several."""
    return {
        line.places[0][0]: line.text.split(between)[0].strip().strip('"')
        for line in excerpt.lines
        if len(line.places) == 1
    }


def _as_written(cell: str, written: Mapping[Period, str], series: Series) -> str:
    """Return a date as its file writes it; anything else as it stands."""
    if _YEAR.fullmatch(cell) or cell in written.values():
        return cell
    day: date | None = day_of(cell)
    if day is None:
        return cell
    return written.get(Period.of(day, series.definition.frequency), cell)
