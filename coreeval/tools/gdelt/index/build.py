"""Builds parts from segments: only those whose segments changed, each atomically."""

import hashlib
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]

from coreeval.errors import KnowledgeError, RunError
from coreeval.tools.files import flush, flush_tree
from coreeval.tools.gdelt.index.news_index import is_whole, read_pages
from coreeval.tools.gdelt.index.pages import add_functions, make_keys, make_pages
from coreeval.tools.gdelt.index.part_writer import write_part
from coreeval.tools.gdelt.index.store_catalog import (
    StorePart,
    find_replaced_parts,
    hash_code,
    list_file_names,
    list_languages,
    list_outdated_files,
    list_parts,
    list_segments,
    open_catalog,
    part_folder,
    replace_parts,
    set_languages,
    set_searchable,
)
from coreeval.tools.gdelt.index.stories import make_items, make_stories
from coreeval.tools.gdelt.own_files import WORK, find_part_folders, remove_part
from coreeval.tools.gdelt.rows import LATEST, OLDEST
from coreeval.tools.stores.heartbeat import OPENING

SIZES = (100_000, 10_000, 1_000, 100, 10, 1)
"""The lengths of spans in days, aligned to the calendar, so that a new day only moves the last
border."""
CLOSED_ROWS = 2_000_000
"""The most rows of a part that no longer grows; ten English days have about 1.3 million."""
SMALL_ROWS = 200_000
"""The most rows of a store that consists of one part, which is always rebuilt as a whole."""
REACH = timedelta(days=2)
"""The reach of a story: a day no longer grows after this many whole days."""


@dataclass(frozen=True, slots=True)
class DaySpan:
    """Consecutive crawl days, both included."""

    first: date
    last: date
    grows: bool
    """Whether later days may still add to its stories; they are counted once the span is closed."""

    @property
    def reach(self) -> tuple[date, date]:
        """The days whose articles are compared with those of the span."""
        return self.first - REACH, self.last if self.grows else self.last + REACH


def plan_spans(days: Mapping[date, int]) -> list[DaySpan]:
    """Return the spans that store the days, in order, given the number of rows of each day.

    Days that no longer grow are combined into the largest aligned stretches that have few enough
    rows; each day that may still grow has its own span.
    """
    ordered = sorted(days)
    if sum(days.values()) <= SMALL_ROWS:
        return [DaySpan(ordered[0], ordered[-1], grows=True)] if ordered else []
    open_from = ordered[-1] - REACH
    closed = [day for day in ordered if day < open_from]
    growing = [DaySpan(day, day, grows=True) for day in ordered if day >= open_from]
    return [*_split_days(closed, days, SIZES), *growing]


def _split_days(
    chosen: Sequence[date], rows: Mapping[date, int], sizes: Sequence[int]
) -> Iterator[DaySpan]:
    size, *smaller = sizes
    for start in sorted({day.toordinal() // size for day in chosen}):
        inside = [day for day in chosen if day.toordinal() // size == start]
        if not smaller or sum(rows[day] for day in inside) <= CLOSED_ROWS:
            yield DaySpan(inside[0], inside[-1], grows=False)
        else:
            yield from _split_days(inside, rows, smaller)


MEMORY = "800MB"
"""DuckDB's memory limit; with Python and the store's own tables, the total stays below 1.5 GB."""
THREADS = 2
KEPT_S = 24 * 3600
"""The seconds that a replaced part is kept, since another process may be searching in it."""
_DROPPED = """
SELECT dropped, count(*) FROM pages WHERE own AND dropped IS NOT NULL GROUP BY 1 ORDER BY 1
"""
_PRECISION = "SELECT precision, count(*) FROM items GROUP BY 1 ORDER BY 1"
_SALIENCE = """
CREATE TABLE salience AS
SELECT page_of(url) AS page, max(num_sources)::INTEGER AS sources
FROM read_parquet($files) GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of a compaction."""

    parts: int
    """The number of parts built; the others were up to date."""
    rows: int
    """The number of segment rows in them."""


def compact(store: Path, languages: Sequence[str] = ()) -> CompactionResult:
    """Update a store's parts to match its segments.

    New parts appear, and those they replace disappear, in one transaction; a killed process loses
    only the part that it is writing. The caller must hold the store's lock.

    Args:
        store: The store.
        languages: The languages of the articles to offer from now on; empty leaves them unchanged.

    Raises:
        OSError: the disk is full or not writable.
        KnowledgeError: there is a link in the store, a listed path is not of a data file, or a data
            file is damaged.
        RunError: the disk is full, or DuckDB has too little memory.
    """
    with open_catalog(store, create=True) as database, _duckdb_errors(store):
        _clear(store, database)
        if languages:
            set_languages(database, languages)
        listed = list_segments(store, database)
        rows = _rows_by_day(listed)
        waiting: list[StorePart] = []
        made = 0, 0
        for span, fingerprint in _find_stale(store, database, listed, rows):
            part = _make(store, database, span, fingerprint, listed, waiting)
            made = made[0] + 1, made[1] + part.rows
            waiting = _publish(database, [*waiting, part], rows)
        replace_parts(
            database,
            [part for part in list_parts(database) if not _days_with_segments(part, rows)],
            [],
        )
        set_searchable(database, listed)
        return CompactionResult(*made)


def _rows_by_day(listed: Mapping[str, tuple[str, int]]) -> dict[date, int]:
    """Return the number of rows of each day, without days that have no rows left."""
    rows: dict[date, int] = {}
    for path, (day, count) in listed.items():
        at = date.fromisoformat(day)
        if path.startswith("segments/") and OLDEST.date() <= at < LATEST.date():
            rows[at] = rows.get(at, 0) + count
    return rows


def _find_stale(
    store: Path,
    database: sqlite3.Connection,
    listed: Mapping[str, tuple[str, int]],
    rows: Mapping[date, int],
) -> list[tuple[DaySpan, str]]:
    """Return the spans without a complete part built from their current segments."""
    known = {
        (part.first, part.last, part.fingerprint)
        for part in list_parts(database)
        if is_whole(part_folder(store, part.id))
    }
    languages = list_languages(database)
    wanted = [(span, _fingerprint(span, listed, languages)) for span in plan_spans(rows)]
    return [
        (span, fingerprint)
        for span, fingerprint in wanted
        if (span.first.isoformat(), span.last.isoformat(), fingerprint) not in known
    ]


def _near_segments(span: DaySpan, listed: Mapping[str, tuple[str, int]], folder: str) -> list[str]:
    first, last = (day.isoformat() for day in span.reach)
    return [path for path, (day, _) in listed.items()
            if path.startswith(f"{folder}/") and first <= day <= last]  # fmt: skip


def _fingerprint(
    span: DaySpan, listed: Mapping[str, tuple[str, int]], languages: Sequence[str]
) -> str:
    """Return a hash of a part's inputs; days after a closed one no longer change."""
    digest = hashlib.sha256(f"{hash_code()} {span.grows} {','.join(languages)}".encode())
    until = span.last.isoformat()
    for folder in ("segments", "signals"):
        near = (path for path in _near_segments(span, listed, folder) if listed[path][0] <= until)
        digest.update("\n".join(near).encode())
    return digest.hexdigest()[:16]


def _make(
    store: Path,
    database: sqlite3.Connection,
    span: DaySpan,
    fingerprint: str,
    listed: Mapping[str, tuple[str, int]],
    waiting: Sequence[StorePart],
) -> StorePart:
    """Write one part to a temporary folder and rename it."""
    known = [*list_parts(database), *waiting]
    number = _next_number(store, known)
    earlier = [
        part
        for part in known
        if part.last < span.first.isoformat() and is_whole(part_folder(store, part.id))
    ]
    work = store / "parts" / WORK
    (work / "part").mkdir(parents=True)
    with _scratch(work) as scratch:
        _load_known(scratch, store, earlier, list_file_names(database))
        _load_signals(
            scratch, [str(store / path) for path in _near_segments(span, listed, "signals")]
        )
        first, last = span.first.isoformat(), span.last.isoformat()
        near = [str(store / path) for path in _near_segments(span, listed, "segments")]
        outdated, languages = list_outdated_files(database), list_languages(database)
        rows = make_pages(scratch, near, first, last, outdated, languages)
        make_keys(scratch)
        make_stories(scratch)
        make_items(scratch)
        write_part(scratch, work / "part")
        part = StorePart(
            id=number, first=first, last=last, fingerprint=fingerprint, rows=rows,
            articles=_count(scratch, "SELECT count(*) FROM items"),
            dropped=_tally(scratch, _DROPPED),
            stories=_count(scratch, "SELECT count(DISTINCT story) FROM items"),
            precision=_tally(scratch, _PRECISION),
        )  # fmt: skip
    flush_tree(work / "part")  # before the store's list names it; the list is flushed as well
    (work / "part").rename(part_folder(store, number))
    flush(store / "parts")
    shutil.rmtree(work)
    return part


@contextmanager
def _duckdb_errors(store: Path) -> Iterator[None]:
    """Convert DuckDB's errors in the block to errors that say what to do.

    Raises:
        KnowledgeError: a data file is damaged, or has other columns.
        RunError: the disk is full, or DuckDB has too little memory.
    """
    try:
        yield
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        if isinstance(error, duckdb.OperationalError):
            raise RunError(
                f"the news store cannot be made searchable: {reason}",
                where=str(store),
                hint=f"{OPENING}, then run the same command again",
            ) from error
        raise KnowledgeError(
            f"a data file of the news store is damaged: {reason}",
            where=str(store),
            hint="delete the store and download its news again",
        ) from error


@contextmanager
def _scratch(work: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database for intermediate steps, which uses the disk if memory is short."""
    settings: dict[str, Any] = {
        "threads": THREADS, "memory_limit": MEMORY, "temp_directory": str(work / "spill"),
        "preserve_insertion_order": False,
    }  # fmt: skip
    with duckdb.connect(config=settings) as scratch:
        add_functions(scratch)
        yield scratch


def _load_known(
    scratch: duckdb.DuckDBPyConnection,
    store: Path,
    earlier: Sequence[StorePart],
    files: Sequence[tuple[int, str]],
) -> None:
    """Create the tables `known`, the pages of earlier parts, and `files`, the names by number."""
    scratch.execute("CREATE TABLE known (page UBIGINT)")
    for part in earlier:
        pages = pa.table({"page": read_pages(part_folder(store, part.id))})
        scratch.register("pages_there", pages)
        scratch.execute("INSERT INTO known FROM pages_there")
        scratch.unregister("pages_there")
    scratch.execute(
        "CREATE TABLE files AS SELECT unnest(?::INTEGER[]) AS file, unnest(?::VARCHAR[]) AS name",
        [[number for number, _ in files], [name for _, name in files]],
    )


def _load_signals(scratch: duckdb.DuckDBPyConnection, signals: Sequence[str]) -> None:
    """Create the table `salience`: the number of sources that GDELT counted for each page."""
    if signals:
        scratch.execute(_SALIENCE, {"files": list(signals)})
    else:
        scratch.execute("CREATE TABLE salience (page UBIGINT, sources INTEGER)")


def _count(scratch: duckdb.DuckDBPyConnection, query: str) -> int:
    ((count,),) = scratch.execute(query).fetchall()
    return int(count)


def _tally(scratch: duckdb.DuckDBPyConnection, query: str) -> dict[Any, int]:
    return dict(scratch.execute(query).fetchall())


def _next_number(store: Path, known: Sequence[StorePart]) -> int:
    """Return a number that neither a part nor a folder that another process may read has."""
    folders = (int(path.name) for path in find_part_folders(store))
    return max([0, *folders, *(part.id for part in known)]) + 1


def _publish(
    database: sqlite3.Connection, waiting: list[StorePart], rows: Mapping[date, int]
) -> list[StorePart]:
    """Publish the waiting parts, unless they would replace a part with days not built yet."""
    gone = [
        part
        for part in list_parts(database)
        if any(part.first <= new.last and part.last >= new.first for new in waiting)
    ]
    made = {day for new in waiting for day in _days_with_segments(new, rows)}
    if not all(_days_with_segments(part, rows) <= made for part in gone):
        return waiting
    replace_parts(database, gone, waiting)
    return []


def _days_with_segments(part: StorePart, rows: Mapping[date, int]) -> set[date]:
    """Return the days of a part that still have segments."""
    return {day for day in rows if part.first <= day.isoformat() <= part.last}


def _clear(store: Path, database: sqlite3.Connection) -> None:
    """Remove the remains of killed processes, and parts replaced more than a day ago."""
    shutil.rmtree(store / "parts" / WORK, ignore_errors=True)
    for folder in find_replaced_parts(store, database):
        if abs(time.time() - folder.stat().st_mtime) > KEPT_S:
            remove_part(folder)
