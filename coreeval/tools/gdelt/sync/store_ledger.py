"""The ledger of a store: the files read, their segments, and batches missing upstream.

Each commit is atomic; data files that are not listed are the remains of a killed process. These are
the tables of store.db that the intake writes; the search index adds its own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from sqlalchemy import (
    Column,
    Engine,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.engine import URL

from coreeval.tools.chunks import chunks
from coreeval.tools.gdelt.index.store_catalog import REPAIR, SEARCH_STATEMENTS
from coreeval.tools.gdelt.sync.feeds import Feed
from coreeval.tools.stores.sqlite import Schema, explain_errors, open_engine, prepare_database

metadata = MetaData()

files_table = Table(
    "files",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("feed", String, nullable=False),
    Column("batch", Integer, nullable=True),
    Column("size", Integer, nullable=False),
    Column("md5", String(32), nullable=False),
    Column("state", String, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("articles", Integer, nullable=False),
    Column("bad", Text, nullable=False),
    Column("read_at", Integer, nullable=False),
)
"""The files that were read; `bad` is JSON: invalid rows by reason. Times are in epoch seconds."""
segments_table = Table(
    "segments",
    metadata,
    Column("path", String, primary_key=True),
    Column("day", String(10), nullable=False),
    Column("rows", Integer, nullable=False),
)
"""The Parquet files under segments/ and signals/; `day` is the crawl day."""
holds_table = Table(
    "holds",
    metadata,
    Column("file", Integer, primary_key=True),
    Column("segment", String, primary_key=True),
)
"""The segments that contain rows of each file."""
batches_table = Table(
    "batches",
    metadata,
    Column("feed", String, primary_key=True),
    Column("batch", Integer, primary_key=True),
    Column("state", String, nullable=False),
    Column("checked_at", Integer, nullable=False),
)
"""The quarter hours of a feed: `read`, in `part` (from a file that is not a copy of GDELT's), or
`missing`."""
ranges_table = Table(
    "asked",
    metadata,
    Column("feed", String, primary_key=True),
    Column("first", Integer, primary_key=True),
    Column("last", Integer, primary_key=True),
)
"""The ranges of batches, both ends included, that should be in the store."""
ignored_table = Table(
    "ignored",
    metadata,
    Column("name", String, primary_key=True),
    Column("reason", Text, nullable=False),
)
"""The files in a folder that were skipped, and the reasons."""
Index("files_by_md5", files_table.c.md5)


SCHEMA: Final = Schema(version=1, create=metadata.create_all, also=SEARCH_STATEMENTS)


STORE_NAME = "the news store"
GO_ON = "free some space, then run the same command again to continue"
FileState = Literal["read", "damaged", "refused"]
BatchState = Literal["read", "part", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file that was read."""

    id: int
    name: str
    feed: Feed
    batch: int | None
    """The quarter hour in the file's name, in epoch seconds; None if there is none."""
    size: int
    md5: str
    state: FileState
    """`damaged`: read in part; `refused`: not read at all."""
    rows: int
    articles: int
    """The number of valid rows, also for signals."""
    bad: Mapping[str, int] = field(default_factory=dict)
    read_at: int


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A data file of the store."""

    path: str
    """The path below the store's folder."""
    day: str
    rows: int
    files: tuple[int, ...] = ()
    """The files that its rows come from."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A quarter hour of a feed and its state."""

    feed: Feed
    batch: int
    state: BatchState
    checked_at: int


@dataclass(frozen=True, slots=True)
class BatchRange:
    """The batches of a feed that should be in the store, both ends included, in epoch seconds."""

    feed: Feed
    first: int
    last: int


@dataclass(slots=True)
class LedgerEntry:
    """The rows added by one commit."""

    files: list[FileRow] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    batches: list[BatchRow] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)


@contextmanager
def open_ledger(path: Path) -> Iterator["StoreLedger"]:
    """Open a ledger for the block, creating it if needed.

    Raises:
        RunCorrupt: the ledger is damaged, or a newer CoreEval wrote it.
        RunError: the ledger cannot be opened.
    """
    engine = open_engine(str(URL.create("sqlite", database=str(path))))
    prepare_database(engine, SCHEMA, what=STORE_NAME, repair=REPAIR)
    explain_errors(engine, what=STORE_NAME, resume=GO_ON, repair=REPAIR)
    try:
        yield StoreLedger(engine)
    finally:
        engine.dispose()


class StoreLedger:
    """The list of files that were read; the process that writes to it holds the store's lock."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def commit(self, entry: LedgerEntry) -> None:
        """Write files, segments and batches in one transaction."""
        holds = [
            {"file": file, "segment": each.path} for each in entry.segments for file in each.files
        ]
        rows: list[tuple[Table, list[dict[str, Any]]]] = [
            (files_table, [_file_values(row) for row in entry.files]),
            (segments_table, [_segment_values(row) for row in entry.segments]),
            (holds_table, holds),
            (batches_table, [asdict(row) for row in entry.batches]),
            (ignored_table, [{"name": name, "reason": why} for name, why in entry.ignored.items()]),
        ]
        with self._engine.begin() as connection:
            for table, values in rows:
                for chunk in chunks(values, 500):
                    connection.execute(_insert_or_replace(table), chunk)

    def note_ranges(self, asked: Sequence[BatchRange]) -> None:
        """Record the batches that the store should have."""
        if asked:
            with self._engine.begin() as connection:
                connection.execute(
                    _insert_or_replace(ranges_table), [asdict(each) for each in asked]
                )

    def next_file(self) -> int:
        """Return a number that no file has."""
        with self._engine.connect() as connection:
            return int(connection.scalar(select(func.max(files_table.c.id))) or 0) + 1

    def contents(self) -> set[str]:
        """Return the MD5 of every file that was read."""
        with self._engine.connect() as connection:
            return set(connection.scalars(select(files_table.c.md5)))

    def files(self) -> list[FileRow]:
        """Return the files in the order in which they were read."""
        found = self._rows(select(files_table).order_by(files_table.c.id))
        return [FileRow(**{**row, "bad": json.loads(row["bad"])}) for row in found]

    def segments(self) -> list[SegmentRow]:
        """Return the data files, without the list of files that they contain."""
        query = select(segments_table).order_by(segments_table.c.path)
        return [SegmentRow(**row) for row in self._rows(query)]

    def batches(self, feed: Feed) -> dict[int, BatchRow]:
        """Return the rows of a feed's batches, in chronological order."""
        query = (
            select(batches_table)
            .where(batches_table.c.feed == feed)
            .order_by(batches_table.c.batch)
        )
        return {row["batch"]: BatchRow(**row) for row in self._rows(query)}

    def whole_files(self, feed: Feed) -> set[str]:
        """Return the names of a feed's files that were read from end to end."""
        names = select(files_table.c.name).where(
            files_table.c.feed == feed, files_table.c.state == "read"
        )
        with self._engine.connect() as connection:
            return set(connection.scalars(names))

    def count_batches_after(self, feeds: Sequence[Feed], moment: int) -> int:
        """Return the number of batches of these feeds that are newer than a given time."""
        newer = select(func.count()).where(
            batches_table.c.feed.in_(feeds),
            batches_table.c.state != "missing",
            batches_table.c.batch > moment,
        )
        with self._engine.connect() as connection:
            return int(connection.scalar(newer) or 0)

    def list_ranges(self) -> list[BatchRange]:
        """Return the batches that the store should have."""
        query = select(ranges_table).order_by(ranges_table.c.feed, ranges_table.c.first)
        return [BatchRange(**row) for row in self._rows(query)]

    def list_ignored_files(self) -> dict[str, str]:
        """Return the files that were skipped, and the reasons."""
        found = self._rows(select(ignored_table).order_by(ignored_table.c.name))
        return {row["name"]: row["reason"] for row in found}

    def _rows(self, query: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any select
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _insert_or_replace(table: Table) -> Any:  # noqa: ANN401 - SQLAlchemy's insert of either kind
    """Return an insert; rows about a batch or an ignored file replace earlier rows."""
    if table in (files_table, segments_table):
        return insert(table)
    statement = upsert(table)
    values = {column.name: statement.excluded[column.name] for column in table.columns
              if not column.primary_key}  # fmt: skip
    keys = [column.name for column in table.primary_key]
    if not values:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=values)


def _file_values(row: FileRow) -> dict[str, Any]:
    return {**asdict(row), "bad": json.dumps(dict(row.bad))}


def _segment_values(row: SegmentRow) -> dict[str, Any]:
    return {"path": row.path, "day": row.day, "rows": row.rows}
