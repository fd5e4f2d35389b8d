"""The sheets of raters: what each of them is shown, written in three forms and read back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from coreeval.errors import UsageError
from coreeval.evaluation.annotation.collecting import SheetRow
from coreeval.evaluation.annotation.drawing import Drawn, Excerpt
from coreeval.evaluation.annotation.guideline import CRITERIA
from coreeval.tools.html_references import unescape
from coreeval.tools.text import (
    find_columns,
    format_sheet,
    iter_sheet_rows,
    join_fields,
    unescape_formula,
)

Form = Literal["csv", "xlsx", "page"]
RATINGS: Final = tuple(each.name for each in CRITERIA)
SHOWN: Final = ("item", "rater", "text", "asks", "label", "news")
COLUMNS: Final = (*SHOWN, *RATINGS, "note")
_READ: Final = ("item", "rater", *RATINGS)
"""Columns that are read back, and `note` if it is there; the others may be taken out."""


@dataclass(frozen=True, kw_only=True)
class SheetItem:
    """One text as a rater is shown it: nothing beside it depends on its arm."""

    item: str
    fields: Mapping[str, str]
    question: str
    label: str
    meaning: str
    evidence: tuple[Excerpt, ...]


def shown(drawn: Drawn) -> SheetItem:
    """Return what a rater is shown of an item.

    Spaces and signs written as HTML (`&amp;`) are made alike: some benchmarks end every text with
    a space or have such signs, and rewritten texts do not.
    """
    candidate = drawn.candidate
    return SheetItem(
        item=drawn.item,
        fields={name: _even(text) for name, text in candidate.texts[drawn.arm].items()},
        question=candidate.question,
        label=candidate.label,
        meaning=candidate.meaning,
        evidence=candidate.evidence,
    )


def _even(text: str) -> str:
    return " ".join(unescape(text).split())


def cells_of(each: SheetItem, rater: str) -> list[str]:
    """Return an item's row, without ratings."""
    news = "\n".join(
        " ".join(filter(None, (one.published_at[:10], one.domain, one.snippet, one.url)))
        for one in each.evidence
    )
    told = f"{each.label}: {each.meaning}"
    text = join_fields(each.fields)
    return [each.item, rater, text, each.question, told, news, *[""] * (len(RATINGS) + 1)]


def write_csv(path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
    """Write a sheet as CSV."""
    del study  # every item's name begins with it
    rows = (cells_of(each, rater) for each in items)
    path.write_text(format_sheet(COLUMNS, rows), encoding="utf-8", newline="")


def read_sheets(paths: Sequence[Path]) -> Iterator[SheetRow]:
    """Yield the rows of filled sheets.

    Raises:
        UsageError: one of them is no sheet.
    """
    for path in paths:
        yield from _rows(path, READERS[_suffix(path)](path))


def _suffix(path: Path) -> str:
    suffix = path.suffix.casefold()
    if suffix not in READERS:
        raise UsageError(
            f"a file that ends in {suffix!r} is no sheet" if suffix else "this is no sheet",
            where=str(path),
            hint=f"give {' or '.join(READERS)}; a page downloads its ratings as CSV",
        )
    return suffix


def _rows(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Iterator[SheetRow]:
    _, header = next(rows, (1, []))
    places = find_columns(path, header, _READ)
    names = [name.strip().casefold() for name in header]
    places |= {"note": names.index("note")} if "note" in names else {}
    for line, cells in rows:
        said = {
            name: unescape_formula(cells[place]) if place < len(cells) else ""
            for name, place in places.items()
        }
        if any(value.strip() for value in said.values()):
            yield SheetRow(
                where=f"{path.name}, line {line}",
                item=said["item"].strip(),
                rater=said["rater"].strip(),
                cells={name: said[name] for name in RATINGS},
                note=said.get("note", "").strip(),
            )


def _read_xlsx(path: Path) -> Iterator[tuple[int, list[str]]]:
    from coreeval.evaluation.annotation.workbook import workbook_rows

    return workbook_rows(path)


READERS: Final[dict[str, Callable[[Path], Iterator[tuple[int, list[str]]]]]] = {
    ".csv": iter_sheet_rows,
    ".xlsx": _read_xlsx,
}
