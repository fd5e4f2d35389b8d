"""GDELT's files put into the tables as GDELT itself would have."""

import json
from pathlib import Path

from coreeval.tools.gdelt.rows import (
    GKG_COLUMNS,
    FileDamage,
    classify_lines,
    decode_line,
    find_files,
    first_lines,
    read_lines,
)
from tests.support.bigquery.engine import Engine


def fill(engine: Engine, folder: Path) -> int:
    """Add the GKG rows and article lists of a folder; return how many rows there were."""
    count = 0
    for file in find_files(folder):
        rows = (
            [decode_line(line) for line in read_lines(file) if line.strip()] if _kind(file) else []
        )
        if _kind(file) == "gkg":
            rows = [row for row in rows if row.count("\t") == GKG_COLUMNS - 1]
            engine.add(gkg=rows)
        elif _kind(file) == "gal":
            engine.add(gal=[row for row in rows if json.loads(row)])
        count += len(rows)
    return count


def _kind(file: Path) -> str:
    try:
        kind = classify_lines(first_lines(file))
    except FileDamage:
        return ""
    return kind if kind in ("gkg", "gal") else ""
