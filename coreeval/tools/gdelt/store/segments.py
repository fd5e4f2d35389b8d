"""Writing what was read: a Parquet file for each crawl day, whole or not there."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from coreeval.tools.files import replacing
from coreeval.tools.gdelt.store.ledger import SegmentRow
from coreeval.tools.gdelt.store.tables import ARTICLES, SIGNALS

DAY_S = 86_400
LEVEL = 3
"""Of zstd: 6 doubles the time of writing for a tenth fewer bytes."""
Numbered = tuple[int, Any]
"""The number of a file in the ledger, and a table of its rows."""


def write_articles(root: Path, tables: Sequence[Numbered]) -> list[SegmentRow]:
    """Write articles below `segments/`, by the day of their crawl."""
    numbered = [_numbered(file, table) for file, table in tables]
    whole = pa.concat_tables(numbered) if numbered else ARTICLES.empty_table()
    return _write_days(root, "segments", whole, _days_of(whole["crawled_at"]), whole["file"])


def write_signals(
    root: Path, tables: Sequence[Numbered], day_of: Callable[[int], int]
) -> list[SegmentRow]:
    """Write signals below `signals/`, by the day of their file.

    Args:
        root: The store's folder.
        tables: The signals of each file.
        day_of: Tells the day of a file, as days since 1970.
    """
    whole = pa.concat_tables([table for _, table in tables]) if tables else SIGNALS.empty_table()
    owners = _repeated((file for file, _ in tables), tables)
    days = _repeated((day_of(file) for file, _ in tables), tables)
    return _write_days(root, "signals", whole, days, owners)


def _repeated(values: Iterable[int], tables: Sequence[Numbered]) -> Any:  # noqa: ANN401
    lengths = [len(table) for _, table in tables]
    return np.repeat(np.fromiter(values, np.int64, len(tables)), lengths)


def _numbered(file: int, table: Any) -> Any:  # noqa: ANN401 - Arrow has no types
    place = ARTICLES.get_field_index("file")
    column = pa.array(np.full(len(table), file, np.int32))
    return table.set_column(place, ARTICLES.field(place), column)


def _days_of(column: Any) -> Any:  # noqa: ANN401
    return column.to_numpy() // DAY_S


def _write_days(root: Path, folder: str, rows: Any, days: Any, files: Any) -> list[SegmentRow]:  # noqa: ANN401
    """Write one file for each day, named by the files that it has rows of."""
    owners = np.asarray(files)
    written = []
    for day in np.unique(days):
        chosen = np.flatnonzero(days == day)
        held = tuple(int(file) for file in np.unique(owners[chosen]))
        name = datetime.fromtimestamp(int(day) * DAY_S, UTC).date().isoformat()
        path = f"{folder}/{name}/{held[0]:08d}-{_hash(held)}.parquet"
        table = rows if len(chosen) == len(rows) else rows.take(pa.array(chosen))
        with replacing(root / path) as draft:
            pq.write_table(table, draft, compression="zstd", compression_level=LEVEL)
        written.append(SegmentRow(path, name, len(chosen), held))
    return written


def _hash(files: Sequence[int]) -> str:
    return hashlib.sha256(repr(files).encode()).hexdigest()[:8]
