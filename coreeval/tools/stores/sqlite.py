"""What every store shares: opening a database, making its tables, one group-committing writer.

All statements go through SQLAlchemy Core. What PostgreSQL needs is in `postgresql_engine`.

A commit outlives the process in any case. That it outlives a power cut costs a flush of the disk,
which is made for all commits of half a second together, and at once for those that ask for it.
"""

import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from sqlalchemy import (
    Connection,
    Engine,
    ExceptionContext,
    Executable,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError
from sqlalchemy.pool import QueuePool

from coreeval.errors import CoreEvalError, RunCorrupt, RunError, RunLocked
from coreeval.tools.stores.heartbeat import (
    BUSY,
    COPYING,
    OPENING,
    REPAIR,
    RESUME,
    may_change,
    reading_uri,
)
from coreeval.tools.stores.places import find_schema
from coreeval.tools.stores.postgresql import StoreUnreachable

if TYPE_CHECKING:
    from coreeval.tools.stores.postgresql_engine import LockMode, WriterSession

Row = dict[str, Any]
BATCH = 256
"""The most writes in one commit."""
LINGER_S = 0.05
"""The seconds that a write without a waiting caller may wait for others: a commit costs more than
its rows."""
FLUSH_S = 0.5
"""The most seconds until a commit that need not survive a power cut is flushed to the disk."""
CACHE_KIB = 256
"""The cache of each of a run's half dozen connections, in KiB; SQLite's default of 2,000 fills up
within a minute, and the system's own cache is as fast (benchmarks/trivial_nodes.py)."""


def open_engine(url: str, *, checked: bool = False, flushing: bool = True) -> Engine:
    """Open a database; SQLite gets WAL and a busy timeout.

    Args:
        url: The database's address.
        checked: Whether rows have their own checksums. If so, text that is not UTF-8 is still read,
            so that only its row counts as damaged.
        flushing: Whether to flush each commit to the disk; not needed if a `Writer` does that.
    """
    engine = create_engine(url, poolclass=QueuePool, pool_size=4, pool_timeout=60)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "do_connect", _read_only)
        event.listen(engine, "connect", _tune_sqlite)
        if not flushing:
            event.listen(engine, "connect", _leave_flushing)
        if checked:
            event.listen(engine, "connect", _read_any_text)
    return engine


def _read_only(
    _dialect: object, _record: object, given: Sequence[object], _options: object
) -> sqlite3.Connection | None:
    """Return a read-only connection if the place is not writable, otherwise None."""
    path = Path(str(given[0]))
    if not path.exists() or may_change(path):
        return None
    return sqlite3.connect(reading_uri(path), uri=True, check_same_thread=False)


def _read_any_text(connection: sqlite3.Connection, _record: object) -> None:
    connection.text_factory = lambda text: text.decode(errors="replace")


def _tune_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    settings = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000")
    for setting in (*settings, f"cache_size=-{CACHE_KIB}"):
        connection.execute(f"PRAGMA {setting}")


def _leave_flushing(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


@dataclass(frozen=True)
class Schema:
    """The tables of a database; each change is a new version, and other versions are rejected."""

    version: int
    create: Callable[[Connection], None]
    """Creates the tables of a new file."""
    create_postgresql: Callable[[Connection], None] | None = None
    """Creates those of a new schema in PostgreSQL; None if they are only kept in files."""


def open_store(path: Path, schema: Schema, *, what: str, checked: bool = False) -> Engine:
    """Open a store in its file, which is created if needed, or in its PostgreSQL schema.

    Args:
        path: The file.
        schema: Its tables.
        what: The name to show to users.
        checked: As in `open_engine`.

    Raises:
        ConfigError: it is in PostgreSQL, and `COREEVAL_STORE_URL` is missing.
        RunCorrupt: it is damaged, of another version, or missing from the database.
        RunError: it cannot be opened.
    """
    if name := find_schema(path):
        from coreeval.tools.stores.postgresql_engine import open_postgresql

        return open_postgresql(name, what=what, version=schema.version)
    engine = open_engine(
        str(URL.create("sqlite", database=str(path))), checked=checked, flushing=False
    )
    prepare_database(engine, schema, what=what)
    explain_errors(engine, what=what)
    return engine


def create_store(path: Path, schema: Schema, *, what: str) -> None:
    """Create a store in PostgreSQL; see `create_postgresql_store`.

    Raises:
        ConfigError: `COREEVAL_STORE_URL` is missing or psycopg is not installed.
        RunError: the database cannot be used.
    """
    from coreeval.tools.stores.postgresql_engine import create_postgresql_store

    assert schema.create_postgresql
    create_postgresql_store(
        path, what=what, version=schema.version, create=schema.create_postgresql
    )


def prepare_database(engine: Engine, schema: Schema, *, what: str, repair: str = REPAIR) -> None:
    """Create the tables of a new database, or check that an existing one is of this version.

    Args:
        engine: The database.
        schema: Its tables.
        what: The name to show to users.
        repair: What users can do if it is damaged.

    Raises:
        RunCorrupt: the file is not a database, is damaged, or is of another version.
        RunError: it cannot be opened.
    """
    try:
        _prepare(engine, schema, what, repair)
    except CoreEvalError:
        engine.dispose()  # nobody gets the store, so nobody could close it
        raise


def _prepare(engine: Engine, schema: Schema, what: str, repair: str) -> None:
    try:
        with engine.begin() as connection:
            _create_once(connection, schema, what, repair)
    except OperationalError as error:
        raise RunError(
            f"{what} cannot be opened: {error.orig}",
            where=str(engine.url.database),
            hint=_opening_hint(Path(str(engine.url.database)), str(error.orig)),
        ) from None
    except DatabaseError as error:
        raise RunCorrupt(
            f"{what} is damaged: {error.orig}",
            where=str(engine.url.database),
            hint=repair,
        ) from None


def _opening_hint(path: Path, problem: str) -> str:
    """Return what users can do about a database that cannot be opened."""
    if "locked" in problem:
        return BUSY
    return COPYING if path.exists() and not may_change(path) else OPENING


def _create_once(connection: Connection, schema: Schema, what: str, repair: str) -> None:
    version = _version(connection, what, repair)
    if version == schema.version:
        return
    if version:
        _refuse_version(connection, version, schema.version, what)
    _refuse_foreign(connection, what)
    _begin(connection)
    if _version(connection, what, repair):  # another process was faster
        return
    schema.create(connection)
    connection.execute(text("DELETE FROM schema_version"))
    connection.execute(text("INSERT INTO schema_version VALUES (:n)"), {"n": schema.version})


def _refuse_version(connection: Connection, version: int, known: int, what: str) -> NoReturn:
    newer = version > known
    raise RunCorrupt(
        f"{what} has schema version {version}; this CoreEval knows {known} only",
        where=str(connection.engine.url.database),
        hint="install a newer CoreEval"
        if newer
        else "it is of a CoreEval before the first release: move it away and start anew",
    )


def _refuse_foreign(connection: Connection, what: str) -> None:
    """Refuse a database of another program: our tables and triggers do not belong in it.

    Raises:
        RunCorrupt: it has tables, but none with our version.
    """
    tables = set(inspect(connection).get_table_names())
    if tables and "schema_version" not in tables:
        raise RunCorrupt(
            f"this is not {what} but a database of another program, and nothing was written "
            "into it",
            where=str(connection.engine.url.database),
            hint="move it away, or restore the right file from a copy",
        )


def _version(connection: Connection, what: str, repair: str) -> int:
    """Return the schema's version; 0 for a file that was only created.

    Raises:
        RunCorrupt: the version is not a number.
    """
    if not inspect(connection).has_table("schema_version"):
        return 0
    found = connection.execute(text("SELECT max(version) FROM schema_version")).scalar()
    if not isinstance(found, int | None):
        raise RunCorrupt(
            f"{what} has no number in the place of its schema version",
            where=str(connection.engine.url.database),
            hint=repair,
        )
    return found or 0


def _begin(connection: Connection) -> None:
    """Start a transaction explicitly, since SQLite's driver excludes table creation from it."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    connection.execute(text("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)"))


def explain_errors(
    engine: Engine, *, what: str, resume: str = RESUME, repair: str = REPAIR
) -> None:
    """Make every statement raise our own errors if the database file causes them.

    A damaged file raises `RunCorrupt`; one that cannot be used now (a full disk, a lock) raises
    `RunError`. A violated constraint is not converted: it is a bug or up to the caller. `resume`
    and `repair` say what to do about each error.
    """

    def explain(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if not isinstance(error, DatabaseError) or isinstance(error, IntegrityError):
            return
        where = str(engine.url.database)
        if isinstance(error, OperationalError):
            raise RunError(f"{what} cannot be used: {error.orig}", where=where, hint=resume)
        raise RunCorrupt(f"{what} is damaged: {error.orig}", where=where, hint=repair)

    event.listen(engine, "handle_error", explain)


class RunnableStatement(Protocol):
    """A statement that was compiled to SQL once."""

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Execute the statement with rows; return the number of rows written."""
        ...


Write = tuple[Executable | RunnableStatement, Sequence[Row] | None]
"""A statement and the rows to run it with; None for one that takes no rows."""


class BatchWriter:
    """A writer thread that commits all waiting jobs together.

    `submit` returns a future that is done when the write is committed: a caller that waits for it
    knows that the row survives a kill. A power cut loses at most the commits of the last `FLUSH_S`
    seconds, and none that was requested to last.

    If rows refer to rows of a second file, `rests_on`, the commits to that file are flushed first,
    so that a power cut leaves no row without the one it refers to. The exception: if SQLite itself
    has just moved its log on, this waits for the second file's own writer.

    In PostgreSQL a commit lasts. If the connection is lost, the writes are made again on a new one,
    so they must come to the same if they are made twice.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        rests_on: Path | None = None,
        lock: "LockMode" = "none",
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine
        self._session = _open_session(engine, lock, on_lost)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._hurry = threading.Event()
        """Set if a caller waits for a queued write."""
        self._broken: Exception | None = None
        """The error of a failed write that no caller waited for; no write is made after it."""
        files = [rests_on, engine.url.database] if rests_on else [engine.url.database]
        self._logs = [] if self._session else [Path(f"{file}-wal") for file in files]
        self._unflushed: RunError | None = None
        """The error of a commit that the disk did not accept; None if there is none."""
        self._due: float | None = None
        """When the commits will be flushed; None if all of them are."""
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    def submit(
        self, writes: Sequence[Write], *, waited_for: bool = True, lasting: bool = False
    ) -> Future[int]:
        """Queue statements that are committed together or not at all.

        Args:
            writes: The statements, each with its rows.
            waited_for: Whether a caller waits for the commit. Otherwise it may be committed a
                little later, together with others, but never after later jobs.
            lasting: Whether a power cut must not undo the writes once the future is done.

        Returns:
            The number of rows that they changed, once it is committed.
        """
        job = _Job(writes, waited_for=waited_for, lasting=lasting)
        self._jobs.put(job)
        if waited_for:
            self._hurry.set()
        return job.done

    def hold(self, lock: "LockMode") -> None:
        """Take a lock on a store in PostgreSQL, until this is closed.

        Raises:
            RunLocked: another process holds it.
            RunError: the database cannot be used.
        """
        if self._session:
            self._session.hold(lock)

    def close(self) -> None:
        """Write the queue, then stop.

        Raises:
            RunError: the disk cannot be written to.
        """
        self._jobs.put(None)
        self._hurry.set()
        self._thread.join()
        if self._session:
            self._session.close()
        if self._due is not None:
            self._flush()
        if self._unflushed:
            raise self._unflushed

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if not job.waited_for:  # nor is this thread woken by each that follows
                self._hurry.wait(LINGER_S)
            self._hurry.clear()
            batch, last = [job], False
            while len(batch) < BATCH and not (last or self._jobs.empty()):
                following = self._jobs.get()
                last = following is None
                batch += [following] if following else []
            self._commit(batch)
            if last:
                return

    def _next(self) -> "_Job | None":
        """Return the next job; if none arrives in time, flush the commits so far."""
        try:
            if self._due is not None:
                return self._jobs.get(timeout=max(0.0, self._due - time.monotonic()))
        except queue.Empty:
            self._flush_or_break()
        return self._jobs.get()

    def _flush_or_break(self) -> None:
        try:
            self._flush()
        except RunError as error:
            self._broken = error

    def _commit(self, batch: "list[_Job]") -> None:
        """Commit a batch; if it fails, commit each job alone so that only the bad one fails.

        If nobody waits for the bad job, the jobs after it must not be stored without it.
        """
        if self._broken:
            for job in batch:
                job.done.set_exception(self._broken)
            return
        try:
            counts = self._execute(batch)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits for the write
            if isinstance(error, StoreUnreachable | RunLocked):
                self._broken = error
                for job in batch:
                    job.done.set_exception(error)
                return
            if len(batch) == 1:
                self._broken = None if batch[0].waited_for else error
                batch[0].done.set_exception(error)
                return
            for job in batch:
                self._commit([job])
            return
        self._tell(batch, counts)

    def _tell(self, batch: "list[_Job]", counts: Sequence[int]) -> None:
        """Report a batch as committed, once it is on the disk if one of its jobs must last."""
        try:
            self._flush_in_time(lasting=any(job.lasting for job in batch))
        except RunError as error:
            self._broken = error
            for job in batch:
                job.done.set_exception(error)
            return
        for job, count in zip(batch, counts, strict=True):
            job.done.set_result(count)

    def _flush_in_time(self, *, lasting: bool) -> None:
        now = time.monotonic()
        if self._due is None:
            self._due = now + FLUSH_S
        if lasting or now >= self._due:
            self._flush()

    def _flush(self) -> None:
        """Flush the commits to the disk; what SQLite has checkpointed is already there."""
        self._due = None
        for log in self._logs:
            try:
                _flush_file(log)
            except OSError as error:
                self._unflushed = RunError(
                    f"the disk does not take what was written: {error.strerror or error}",
                    where=str(log),
                    hint=RESUME,
                )
                raise self._unflushed from None

    def _execute(self, batch: "list[_Job]") -> list[int]:
        if self._session:
            return self._session.run(lambda connection: [job.run(connection) for job in batch])
        with self._engine.begin() as connection:
            return [job.run(connection) for job in batch]


def is_postgresql(engine: Engine | Connection) -> bool:
    """Return whether a database is PostgreSQL."""
    return engine.dialect.name == "postgresql"


def _open_session(
    engine: Engine, lock: "LockMode", on_lost: Callable[[], None] | None
) -> "WriterSession | None":
    """Return the session of a writer to PostgreSQL; None for SQLite."""
    if not is_postgresql(engine):
        return None
    from coreeval.tools.stores.postgresql_engine import WriterSession

    session = WriterSession(engine, lock=lock, on_lost=on_lost)
    if lock != "none":
        session.hold(lock)
    return session


def _flush_file(path: Path) -> None:
    with suppress(FileNotFoundError), path.open("rb+", buffering=0) as file:
        os.fsync(file)


class _Job:
    """Statements that belong together, and the future of their commit.

    The future counts as running from the start, so that it cannot be cancelled: a submitted job is
    written even if its caller has gone.
    """

    def __init__(self, writes: Sequence[Write], *, waited_for: bool, lasting: bool) -> None:
        self._writes = writes
        self.waited_for = waited_for
        self.lasting = lasting
        self.done: Future[int] = Future()
        self.done.set_running_or_notify_cancel()

    def run(self, connection: Connection) -> int:
        return sum(_run(connection, *write) for write in self._writes if write[1] != [])


def _run(
    connection: Connection, statement: Executable | RunnableStatement, rows: Sequence[Row] | None
) -> int:
    if isinstance(statement, Executable):
        return max(connection.execute(statement, rows).rowcount, 0)
    return statement.run(connection, rows or ())
