"""Turns files into committed segments: reads a few at a time, and commits many at once.

Deliveries, files that arrive together, are read only a few ahead of their turn. A commit writes a
Parquet file for each crawl day atomically.
"""

import hashlib
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from coreeval.tools.clock import Clock
from coreeval.tools.files import replacing
from coreeval.tools.gdelt.index.store_catalog import StoreLayout
from coreeval.tools.gdelt.sync.feeds import SIGNAL_FEEDS, Feed, is_copy, stamp_in_name
from coreeval.tools.gdelt.sync.file_reader import BATCH_S, Content, Offer, Reading, read
from coreeval.tools.gdelt.sync.reader_processes import ReaderProcesses
from coreeval.tools.gdelt.sync.segment_rows import ARTICLES, SIGNALS
from coreeval.tools.gdelt.sync.store_ledger import (
    BatchRow,
    FileRow,
    FileState,
    LedgerEntry,
    SegmentRow,
    StoreLedger,
)

DAY_S = 86_400
COMPRESSION_LEVEL = 3
"""The zstd level; level 6 doubles the time of writing for a tenth fewer bytes."""
FileTable = tuple[int, Any]
"""The number of a file in the ledger, and a table of its rows."""


def write_articles(root: Path, tables: Sequence[FileTable]) -> list[SegmentRow]:
    """Write articles below `segments/`, by crawl day."""
    numbered = [_number_rows(file, table) for file, table in tables]
    whole = pa.concat_tables(numbered) if numbered else ARTICLES.empty_table()
    return _write_days(root, "segments", whole, _days_of(whole["crawled_at"]), whole["file"])


def write_signals(
    root: Path, tables: Sequence[FileTable], day_of: Callable[[int], int]
) -> list[SegmentRow]:
    """Write signals below `signals/`, by the day of their file.

    Args:
        root: The store's folder.
        tables: The signals of each file.
        day_of: Returns the day of a file, as days since 1970.
    """
    whole = pa.concat_tables([table for _, table in tables]) if tables else SIGNALS.empty_table()
    owners = _repeat_for_rows((file for file, _ in tables), tables)
    days = _repeat_for_rows((day_of(file) for file, _ in tables), tables)
    return _write_days(root, "signals", whole, days, owners)


def _repeat_for_rows(values: Iterable[int], tables: Sequence[FileTable]) -> Any:  # noqa: ANN401
    lengths = [len(table) for _, table in tables]
    return np.repeat(np.fromiter(values, np.int64, len(tables)), lengths)


def _number_rows(file: int, table: Any) -> Any:  # noqa: ANN401 - Arrow has no types
    place = ARTICLES.get_field_index("file")
    column = pa.array(np.full(len(table), file, np.int32))
    return table.set_column(place, ARTICLES.field(place), column)


def _days_of(column: Any) -> Any:  # noqa: ANN401
    return column.to_numpy() // DAY_S


def _write_days(root: Path, folder: str, rows: Any, days: Any, files: Any) -> list[SegmentRow]:  # noqa: ANN401
    """Write one file per day, named after the source files of its rows."""
    owners = np.asarray(files)
    written = []
    for day in np.unique(days):
        chosen = np.flatnonzero(days == day)
        held = tuple(int(file) for file in np.unique(owners[chosen]))
        name = datetime.fromtimestamp(int(day) * DAY_S, UTC).date().isoformat()
        path = f"{folder}/{name}/{held[0]:08d}-{_hash_files(held)}.parquet"
        table = rows if len(chosen) == len(rows) else rows.take(pa.array(chosen))
        with replacing(root / path) as draft:
            pq.write_table(table, draft, compression="zstd", compression_level=COMPRESSION_LEVEL)
        written.append(SegmentRow(path, name, len(chosen), held))
    return written


def _hash_files(files: Sequence[int]) -> str:
    return hashlib.sha256(repr(files).encode()).hexdigest()[:8]


AT_ONCE = min(os.cpu_count() or 1, 4)
"""The number of deliveries that are read at the same time."""
AHEAD = 2 * AT_ONCE
"""The most deliveries read before their turn, so that reading continues while others are
committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Files that belong together, and the state of their batch after reading."""

    offers: tuple[Offer, ...] = ()
    batches: tuple[BatchRow, ...] = ()
    done: Callable[[], None] = lambda: None
    """Called when the files have been read."""


def read_deliveries(
    deliveries: Iterable[Delivery], known: Container[str]
) -> Generator[tuple[Delivery, list[Reading]], None, None]:
    """Yield deliveries with their files read, in order, reading only a few ahead."""
    waiting: deque[tuple[Delivery, Future[list[Reading]]]] = deque()
    with ExitStack() as stack:
        pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="reader")
        stack.callback(pool.shutdown, cancel_futures=True)
        content = stack.enter_context(ReaderProcesses()).read
        for delivery in deliveries:
            waiting.append((delivery, pool.submit(_read_delivery, delivery, known, content)))
            while len(waiting) > AHEAD:
                first, job = waiting.popleft()
                yield first, job.result()
        for first, job in waiting:
            yield first, job.result()


def _read_delivery(delivery: Delivery, known: Container[str], content: Content) -> list[Reading]:
    try:
        return [read(offer, known, content) for offer in delivery.offers]
    finally:
        delivery.done()


ROWS = 50_000
"""The number of articles after which to commit: about 50 GKG files, or 100 MB of memory."""
FILES = 200
LONGEST_S = 20.0
"""The seconds after which to commit even few articles, which limits the loss by a kill."""


@dataclass(slots=True)
class IntakeCounts:
    """The result of an intake."""

    files: int = 0
    rows: int = 0
    articles: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    known: int = 0
    """The number of files whose content was read before."""
    ignored: dict[str, str] = field(default_factory=dict)
    """The files that were skipped, and the reasons."""
    size: int = 0
    """The number of bytes of the files that were read."""
    copies: dict[Feed, list[int]] = field(default_factory=dict)
    """The batches, in epoch seconds, of files that are copies of GDELT's own."""


TellProgress = Callable[[int, int], None]
"""Called after each delivery with the number of deliveries read and of articles in them."""


class Intake:
    """A reader that commits deliveries; uncommitted ones count as unread."""

    def __init__(
        self, layout: StoreLayout, ledger: StoreLedger, *, now: Clock, tell: TellProgress
    ) -> None:
        self._layout = layout
        self._ledger = ledger
        self._now = now
        self._tell = tell
        self._next = ledger.next_file()
        self._contents = ledger.contents()
        self.counts = IntakeCounts()
        """The counts of committed data."""
        self._open = _OpenCommit()

    def take(self, deliveries: Iterable[Delivery]) -> None:
        """Read all deliveries and commit them.

        Raises:
            OSError: the disk is full or cannot be written to; commits so far are kept.
            RunError: a reader process died; commits so far are kept.
        """
        articles = 0
        with closing(read_deliveries(deliveries, self._contents)) as read_ones:
            for done, (delivery, readings) in enumerate(read_ones, start=1):
                for reading in readings:
                    self._add(reading)
                    articles += sum(map(len, reading.articles))
                self._open.entry.batches += delivery.batches
                self._tell(done, articles)
                if self._open.is_due():
                    self._commit()
        self._commit()

    def _add(self, reading: Reading) -> None:
        """Add one file to the next commit."""
        if reading.known or reading.md5 in self._contents:  # another file has the same content
            self._open.known += 1
        elif reading.feed is None:
            self._open.entry.ignored[reading.offer.name] = reading.why
        else:
            self._contents.add(reading.md5)
            self._keep(self._row(reading, reading.feed), reading)

    def _keep(self, row: FileRow, reading: Reading) -> None:
        added = self._open
        added.entry.files.append(row)
        added.articles += [(row.id, table) for table in reading.articles]
        added.rows += row.articles if reading.articles else 0
        if reading.signals is not None and len(reading.signals):
            added.signals.append((row.id, reading.signals))
            added.day_of[row.id] = max(reading.batches) // DAY_S
        if reading.tally.aside:
            added.aside[row.name] = reading.tally.pack_bad_rows()
        if not reading.offer.downloaded:
            added.entry.batches += _batches_of_file(row, reading.batches)

    def _row(self, reading: Reading, feed: Feed) -> FileRow:
        tally, self._next = reading.tally, self._next + 1
        stamp = reading.offer.batch or stamp_in_name(reading.offer.name)
        return FileRow(
            id=self._next - 1,
            name=reading.offer.name,
            feed=feed,
            batch=int(stamp.timestamp()) // BATCH_S * BATCH_S if stamp else None,
            size=reading.size,
            md5=reading.md5,
            state=_file_state(reading),
            rows=tally.rows,
            articles=tally.articles,
            bad={str(reason): count for reason, count in sorted(tally.bad.items()) if count},
            read_at=int(self._now().timestamp()),
        )

    def _commit(self) -> None:
        """Write the read data, and list them in the ledger in one transaction."""
        added, self._open = self._open, _OpenCommit()
        entry, root = added.entry, self._layout.root
        for name, lines in added.aside.items():
            with replacing(self._layout.aside(name)) as draft:
                draft.write_bytes(lines)
        entry.segments += write_articles(root, added.articles)
        entry.segments += write_signals(root, added.signals, added.day_of.__getitem__)
        self._ledger.commit(entry)
        self._count(added)

    def _count(self, added: "_OpenCommit") -> None:
        counts = self.counts
        counts.files += len(added.entry.files)
        counts.known += added.known
        counts.ignored |= added.entry.ignored
        for row in added.entry.files:
            counts.rows += row.rows
            counts.articles += row.articles if row.feed not in SIGNAL_FEEDS else 0
            counts.bad.update(row.bad)
            counts.size += row.size
            if row.batch is not None and is_copy(row.name, row.feed):
                counts.copies.setdefault(row.feed, []).append(row.batch)


@dataclass(slots=True)
class _OpenCommit:
    """The rows that were read but are not yet committed."""

    entry: LedgerEntry = field(default_factory=LedgerEntry)
    articles: list[tuple[int, Any]] = field(default_factory=list)
    signals: list[tuple[int, Any]] = field(default_factory=list)
    day_of: dict[int, int] = field(default_factory=dict)
    aside: dict[str, bytes] = field(default_factory=dict)
    rows: int = 0
    known: int = 0
    since: float = field(default_factory=time.monotonic)

    def is_due(self) -> bool:
        late = time.monotonic() - self.since > LONGEST_S
        return late or self.rows >= ROWS or len(self.entry.files) >= FILES


def _file_state(reading: Reading) -> FileState:
    if reading.tally.bad["too_large"]:
        return "refused"
    return "damaged" if reading.tally.bad["damaged"] else "read"


def _batches_of_file(row: FileRow, found: Iterable[int]) -> list[BatchRow]:
    """Return the batch that a file from a folder is a copy of, or the batches of its rows."""
    if row.batch is not None and row.state == "read" and is_copy(row.name, row.feed):
        return [BatchRow(row.feed, row.batch, "read", row.read_at)]
    return [BatchRow(row.feed, batch, "part", row.read_at) for batch in sorted(found)]
