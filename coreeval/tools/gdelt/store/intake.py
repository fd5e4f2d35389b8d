"""From files to committed segments: some files are read at a time, many are committed at once."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from coreeval.tools.clock import Clock
from coreeval.tools.files import replacing
from coreeval.tools.gdelt.store.deliveries import Delivery, read_all
from coreeval.tools.gdelt.store.feeds import SIGNALS, Feed, is_copy, stamp_in
from coreeval.tools.gdelt.store.layout import Layout
from coreeval.tools.gdelt.store.ledger import (
    BatchRow,
    BatchState,
    Entry,
    FileRow,
    FileState,
    Ledger,
)
from coreeval.tools.gdelt.store.reading import BATCH_S, Reading
from coreeval.tools.gdelt.store.segments import DAY_S, write_articles, write_signals

ROWS = 50_000
"""Articles from which a commit is due: some 50 files of GKG, about 100 MB of memory."""
FILES = 200
LONGEST_S = 20.0
"""Seconds after which one is due however few there are: all that a kill can lose."""


@dataclass(slots=True)
class Counts:
    """What an intake came to."""

    files: int = 0
    rows: int = 0
    articles: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    known: int = 0
    """Files whose content was read before."""
    ignored: dict[str, str] = field(default_factory=dict)
    """Files that were left out, and why."""
    size: int = 0
    """Bytes of the files that were read."""
    copies: dict[Feed, list[int]] = field(default_factory=dict)
    """Batches, in epoch seconds, of files that are copies of GDELT's own."""


Tell = Callable[[int, int], None]
"""Told after each delivery how many were read, and how many articles were in them."""


class Intake:
    """Reads deliveries and commits them; what is not committed is as if it had not been read."""

    def __init__(self, layout: Layout, ledger: Ledger, *, now: Clock, tell: Tell) -> None:
        self._layout = layout
        self._ledger = ledger
        self._now = now
        self._tell = tell
        self._next = ledger.next_file()
        self._contents = ledger.contents()
        self.counts = Counts()
        """Of what is committed."""
        self._open = _Open()

    def take(self, deliveries: Iterable[Delivery]) -> None:
        """Read all deliveries and commit them.

        Raises:
            OSError: the disk is full or cannot be written; what was committed stays.
            RunError: a process that reads died; the same.
        """
        articles = 0
        with closing(read_all(deliveries, self._contents)) as read_ones:
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
        """Add one file to what is committed next."""
        if reading.known or reading.md5 in self._contents:  # or two files at once with one content
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
            added.aside[row.name] = reading.tally.kept_aside()
        if not reading.offer.downloaded:
            added.entry.batches += _batches(row, reading.batches)

    def _row(self, reading: Reading, feed: Feed) -> FileRow:
        tally, self._next = reading.tally, self._next + 1
        stamp = reading.offer.batch or stamp_in(reading.offer.name)
        return FileRow(
            id=self._next - 1,
            name=reading.offer.name,
            feed=feed,
            batch=int(stamp.timestamp()) // BATCH_S * BATCH_S if stamp else None,
            size=reading.size,
            md5=reading.md5,
            state=_state(reading),
            rows=tally.rows,
            articles=tally.articles,
            bad={str(reason): count for reason, count in sorted(tally.bad.items()) if count},
            read_at=int(self._now().timestamp()),
        )

    def _commit(self) -> None:
        """Write what was read, and list it in one transaction."""
        added, self._open = self._open, _Open()
        entry, root = added.entry, self._layout.root
        for name, lines in added.aside.items():
            with replacing(self._layout.aside(name)) as draft:
                draft.write_bytes(lines)
        entry.segments += write_articles(root, added.articles)
        entry.segments += write_signals(root, added.signals, added.day_of.__getitem__)
        self._ledger.commit(entry)
        self._count(added)

    def _count(self, added: "_Open") -> None:
        counts = self.counts
        counts.files += len(added.entry.files)
        counts.known += added.known
        counts.ignored |= added.entry.ignored
        for row in added.entry.files:
            counts.rows += row.rows
            counts.articles += row.articles if row.feed not in SIGNALS else 0
            counts.bad.update(row.bad)
            counts.size += row.size
            if row.batch is not None and is_copy(row.name, row.feed):
                counts.copies.setdefault(row.feed, []).append(row.batch)


@dataclass(slots=True)
class _Open:
    """What was read and not yet committed."""

    entry: Entry = field(default_factory=Entry)
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


def _state(reading: Reading) -> FileState:
    if reading.tally.bad["too_large"]:
        return "refused"
    return "damaged" if reading.tally.bad["damaged"] else "read"


def _batches(row: FileRow, found: Iterable[int]) -> list[BatchRow]:
    """Return the batches that a file from a folder is of: whole where it is a copy of GDELT's."""
    whole = row.state == "read" and is_copy(row.name, row.feed)
    state: BatchState = "read" if whole else "part"
    return [BatchRow(row.feed, batch, state, row.read_at) for batch in sorted(found)]
