"""What every store shares: opening a database, migrating it, one group-committing writer.

SQLite now; another database is another URL. All statements go through SQLAlchemy Core.
"""

import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    ExceptionContext,
    Executable,
    Table,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError
from sqlalchemy.pool import QueuePool

from coreeval.errors import CoreEvalError, RunCorrupt, RunError

Migration = Callable[[Connection], None]
Row = dict[str, Any]
BATCH = 256
"""Most writes that one commit may carry."""
_REPAIR = (
    "nothing was overwritten; restore the file from a copy, or move it away and start a new run"
)


def open_engine(url: str) -> Engine:
    """Open a database; SQLite gets WAL, a busy timeout and full durability of commits."""
    engine = create_engine(url, poolclass=QueuePool, pool_size=4, pool_timeout=60)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune_sqlite)
    return engine


def _tune_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
        connection.execute(f"PRAGMA {pragma}")


def migrate(engine: Engine, migrations: Sequence[Migration], *, what: str) -> None:
    """Bring a database to the newest schema; version n means that n migrations were applied.

    Raises:
        RunCorrupt: the file is no database, is damaged, or was written by a newer version.
    """
    try:
        _bring_up(engine, migrations, what)
    except CoreEvalError:
        engine.dispose()  # nobody gets the store, so nobody could close it
        raise


def _bring_up(engine: Engine, migrations: Sequence[Migration], what: str) -> None:
    try:
        with engine.begin() as connection:
            _migrate(connection, migrations, what)
    except OperationalError as error:
        raise RunError(
            f"{what} cannot be opened: {error.orig}",
            where=str(engine.url.database),
            hint="is the folder there, may it be written, is the disk full?",
        ) from None
    except DatabaseError as error:
        raise RunCorrupt(
            f"{what} is damaged: {error.orig}",
            where=str(engine.url.database),
            hint=_REPAIR,
        ) from None


def _migrate(connection: Connection, migrations: Sequence[Migration], what: str) -> None:
    if not inspect(connection).has_table("schema_version"):
        connection.execute(text("CREATE TABLE schema_version (version INTEGER NOT NULL)"))
        connection.execute(text("INSERT INTO schema_version VALUES (0)"))
    version = connection.execute(text("SELECT version FROM schema_version")).scalar_one()
    if version > len(migrations):
        raise RunCorrupt(
            f"{what} has schema version {version}; this CoreEval knows up to {len(migrations)}",
            where=str(connection.engine.url.database),
            hint="install a newer CoreEval",
        )
    for step in migrations[version:]:
        step(connection)
    if version < len(migrations):
        connection.execute(text("UPDATE schema_version SET version = :n"), {"n": len(migrations)})


def explain_errors(engine: Engine, *, what: str) -> None:
    """Let every statement raise our own errors where its file is the trouble.

    A damaged file is `RunCorrupt`, one that cannot be used now (a full disk, a lock) `RunError`;
    a broken constraint stays what it is: a bug, or the caller's affair.
    """

    def explain(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if not isinstance(error, DatabaseError) or isinstance(error, IntegrityError):
            return
        where = str(engine.url.database)
        if isinstance(error, OperationalError):
            hint = "see to the disk, then resume the run"
            raise RunError(f"{what} cannot be used: {error.orig}", where=where, hint=hint)
        raise RunCorrupt(f"{what} is damaged: {error.orig}", where=where, hint=_REPAIR)

    event.listen(engine, "handle_error", explain)


class Writer:
    """One thread that writes: whatever waits together is committed together.

    `submit` returns a future that is done when the write is committed: a caller that waits for it
    knows that the row survives a kill.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, statement: Executable, rows: Sequence[Row] | Row | None = None) -> Future[int]:
        """Queue one statement; the future holds the number of rows it changed."""
        job = _Job([(statement, rows)])
        self._jobs.put(job)
        return job.done

    def submit_all(
        self, writes: Sequence[tuple[Executable, Sequence[Row] | Row | None]]
    ) -> Future[int]:
        """Queue statements that are committed together or not at all."""
        job = _Job(writes)
        self._jobs.put(job)
        return job.done

    def close(self) -> None:
        """Write what is queued, then stop."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch, last = [job], False
            while len(batch) < BATCH and not self._jobs.empty():
                following = self._jobs.get()
                if following is None:
                    last = True
                    break
                batch.append(following)
            self._commit(batch)
            if last:
                return

    def _commit(self, batch: "list[_Job]") -> None:
        """Commit a batch; if it fails, commit each job alone so that only the bad one fails."""
        try:
            counts = self._execute(batch)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits for the write
            if len(batch) == 1:
                batch[0].done.set_exception(error)
                return
            for job in batch:
                self._commit([job])
            return
        for job, count in zip(batch, counts, strict=True):
            job.done.set_result(count)

    def _execute(self, batch: "list[_Job]") -> list[int]:
        with self._engine.begin() as connection:
            return [job.run(connection) for job in batch]


class _Job:
    """Statements that belong together, and the future of their commit.

    It counts as running from the start, so that it cannot be cancelled: what was handed in is
    written even where whoever waited for it has gone.
    """

    def __init__(self, writes: Sequence[tuple[Executable, Sequence[Row] | Row | None]]) -> None:
        self._writes = writes
        self.done: Future[int] = Future()
        self.done.set_running_or_notify_cancel()

    def run(self, connection: Connection) -> int:
        return sum(
            max(connection.execute(statement, rows).rowcount, 0)
            for statement, rows in self._writes
            if rows is None or rows
        )


def upsert(engine: Engine, table: Table, keep: Sequence[str] = ()) -> Executable:
    """Return an insert that replaces the row with the same primary key, except columns `keep`."""
    insert = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    fixed = {*keys, *keep}
    changes = {c.name: statement.excluded[c.name] for c in table.c if c.name not in fixed}
    if not changes:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=changes)
