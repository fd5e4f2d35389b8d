"""Tables in an answer as lines of words: a row 2020-03 under Mkt-RF as `2020-03, Mkt-RF: 1`."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_NUMBER: Final = re.compile(
    r"[*_` ~]*[-+]?[ ]?[$\u20ac\u00a3]?(?:\d[\d.,_]*|\.\d+) ?(?:%|[a-zA-Z%]{1,4})?[*_` ]*"
)
_RULE: Final = re.compile(r"[\s|:+]*-[\s|:+-]*")
_BLANKS: Final = re.compile(r"\t| {2,}")
_WHOLE_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d{2}")
_MONTH_NUMBER: Final = re.compile(r"0?[1-9]|1[0-2]")
_DATE_HEADS: Final = frozenset({
    "date", "month", "year", "period", "quarter", "day", "time", "observation_date", "yearmonth",
})  # fmt: skip
_COUNTS: Final = frozenset({"#", "no", "no.", "n", "rank", "id", "index", "step"})
_UNITS: Final = frozenset({"unit", "units"})
_LONGEST_HEAD: Final = 40
Cells = list[str]


def with_rows_told(text: str) -> str:
    """Return an answer with the rows of its tables as lines that name the row and the column.

    A table has a line of names, and below it lines of as many cells with numbers: separated by
    bars, tabs, semicolons, commas or blanks.
    """
    lines = text.split("\n")
    told, at = list[str](), 0
    while at < len(lines):
        head = _head(lines[at])
        rows = _rows(lines[at + 1 :], head) if head else []
        if head and any(rows):
            told += [line for row in rows if row for line in _row_told(head[1], row)]
            at += 1 + len(rows)
        else:
            told.append(lines[at])
            at += 1
    return "\n".join(told)


def cells_of(line: str, delimiter: str) -> Cells:
    """Return the cells of a line, without the marks of its markup."""
    parts = _BLANKS.split(line.strip()) if delimiter == " " else line.strip().split(delimiter)
    cells = [part.strip(" \t*_`") for part in parts]
    if delimiter == "|":
        cells = cells[not cells[0] : len(cells) - (not cells[-1])]
    return cells


def _head(line: str) -> tuple[str, Cells] | None:
    """Return the delimiter and the names of a line that may head a table."""
    for delimiter in ("|", "\t", ";", ",", " "):
        cells = cells_of(line, delimiter)
        if len(cells) > 1:
            return (delimiter, cells) if _names(cells) else None
    return None


def _names(cells: Sequence[str]) -> bool:
    return any(cells[1:]) and all(
        len(cell) <= _LONGEST_HEAD and (not _NUMBER.fullmatch(cell) or _WHOLE_YEAR.fullmatch(cell))
        for cell in cells
    )


def _rows(lines: Sequence[str], head: tuple[str, Cells]) -> list[Cells]:
    """Return the rows below a head; a rule between them is an empty one."""
    delimiter, names = head
    found = list[Cells]()
    for line in lines:
        if delimiter == "|" and _RULE.fullmatch(line):
            found.append([])
            continue
        cells = cells_of(line, delimiter)
        if len(cells) != len(names) or not any(_NUMBER.fullmatch(cell) for cell in cells):
            break
        found.append(cells)
    return found


def _row_told(names: Cells, row: Cells) -> Iterator[str]:
    """Yield a line for each number of a row: what the row is about, the column, the number."""
    dated = _date_of(names, row)
    about = [] if dated is None else [dated]
    unit = ""
    values = list[tuple[str, str]]()
    for name, cell in zip(names, row, strict=True):
        head = name.lower()
        if head in _COUNTS or not cell or (dated is not None and head in _DATE_HEADS):
            continue
        if head in _UNITS:
            unit = f" {cell}"
        elif _NUMBER.fullmatch(cell) and not (_WHOLE_YEAR.fullmatch(cell) and not values):
            values.append((name, cell))
        else:
            about.append(cell)
    year = next((cell for cell in about if _WHOLE_YEAR.fullmatch(cell)), None)
    for name, cell in values:
        of = [f"{name} {year}" if one is year else one for one in about]
        yield f"{' '.join([*of, *([] if year else [name])])}: {cell}{unit}"


def _date_of(names: Cells, row: Cells) -> str | None:
    """Return the date of a row by its columns of dates; a year and a month's number as one."""
    cells = {name.lower(): cell for name, cell in zip(names, row, strict=True)
             if name.lower() in _DATE_HEADS}  # fmt: skip
    year, month = cells.get("year"), cells.get("month")
    if year and month:
        return f"{year}-{int(month):02d}" if _MONTH_NUMBER.fullmatch(month) else f"{month} {year}"
    if len(cells) == 1 and not year:
        return next(iter(cells.values()))
    return None
