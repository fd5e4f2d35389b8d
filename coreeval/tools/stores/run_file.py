"""run.db as a file: opening it, reading rows, queueing writes."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Engine, Select, Table
from sqlalchemy.engine import URL

from coreeval.tools.clock import Clock
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.looking import refuse_link
from coreeval.tools.stores.prepared import PreparedInsert
from coreeval.tools.stores.run_listing import RunListing
from coreeval.tools.stores.run_migrations import MIGRATIONS
from coreeval.tools.stores.run_standings import RunStandings
from coreeval.tools.stores.sql import (
    Row,
    Write,
    Writer,
    explain_errors,
    migrate,
    open_engine,
)

CHUNK = 2000
"""Rows read or written at a time, so that memory does not grow with the dataset."""
FIRST_STAYS = {t.calls: ["cached"], t.evidence: ["body"]}
"""Columns that a second write of the same row leaves as they are."""
T = TypeVar("T")


class RunFile:
    """The open file: one writer, any number of readers."""

    def __init__(self, engine: Engine, *, now: Clock, rests_on: Path | None = None) -> None:
        migrate(engine, MIGRATIONS, what="run.db")
        explain_errors(engine, what="run.db")
        self._engine = engine
        self._writer = Writer(engine, rests_on=rests_on)
        self._now = now
        self._put = _Inserts(engine)
        self._lost: BaseException | None = None
        """Why a queued write, for which nobody waits, came to nothing."""

    @classmethod
    def open(cls, path: Path, *, now: Clock, rests_on: Path | None = None) -> Self:
        """Open or create the store.

        Args:
            path: The file.
            now: The time of day.
            rests_on: The call store whose calls are named in it, for whoever works on the run.

        Raises:
            RunCorrupt: the file is damaged, from a newer version, or a link to one elsewhere.
        """
        refuse_link(path)
        engine = open_engine(str(URL.create("sqlite", database=str(path))), flushing=False)
        return cls(engine, now=now, rests_on=rests_on)

    @property
    def listing(self) -> RunListing:
        """The samples as a list, and what the run came to as a whole."""
        return RunListing(self._engine)

    @property
    def standings(self) -> RunStandings:
        """How the samples stand, for laying two runs side by side."""
        return RunStandings(self._engine)

    def close(self) -> None:
        """Write what is queued and close the file."""
        try:
            self._writer.close()
        finally:
            self._engine.dispose()

    def _submit(self, writes: Sequence[Write], *, waited_for: bool = True) -> Future[int]:
        return self._writer.submit(writes, waited_for=waited_for)

    def _written(self, write: Future[int]) -> None:
        """Keep the first failure of a queued write, for the next caller who waits for one."""
        self._lost = self._lost or write.exception()

    def _rows(self, query: Select[Any]) -> Iterator[Row]:
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
        return (dict(row) for row in rows)

    def _stream(self, query: Select[Any]) -> Iterator[Row]:
        with self._engine.connect().execution_options(yield_per=CHUNK) as connection:
            for row in connection.execute(query).mappings():
                yield dict(row)

    def _tuples(self, query: Select[Any]) -> Iterator[tuple[Any, ...]]:
        """Stream rows as tuples; a dict for each would be most of the work."""
        with self._engine.connect().execution_options(yield_per=CHUNK) as connection:
            yield from connection.execute(query)

    def _count(self, query: Select[Any]) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="milliseconds")


class _Inserts(dict[Table, PreparedInsert]):
    """For each table the statement that adds rows or takes the place of those there.

    It is made when it is first used: a reader needs none.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def __missing__(self, table: Table) -> PreparedInsert:
        keep = FIRST_STAYS.get(table, ())
        return self.setdefault(
            table, PreparedInsert(self._engine, table, twice="replaces", keep=keep)
        )


def chunks(rows: Iterable[T]) -> Iterator[list[T]]:
    """Yield rows in lists of `CHUNK`."""
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk
