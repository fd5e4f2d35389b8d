"""The table of samples beside a report: each sample of each target, right or wrong by arm."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from coreeval.tools.files import replacing
from coreeval.tools.text import escape_formula, visible

Row = Mapping[str, str | int | float | None]


def write_items(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write the table as CSV, as one replacement; what is not known is empty.

    People open it with a spreadsheet: no text is a formula (see `harmless`) or hides characters.
    """
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows({name: _cell(row[name]) for name in row} for row in rows)


def _cell(value: str | int | float | None) -> str | int | float | None:
    return escape_formula(visible(value)) if isinstance(value, str) else value
