"""The table of samples beside a report: each sample of each target, right or wrong by arm."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from coreeval.tools.files import replacing

Row = Mapping[str, str | int | float | None]


def write_items(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write the table as CSV, as one replacement; what is not known is empty."""
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
