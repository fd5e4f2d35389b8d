"""One writer for each store, which commits all waiting writes together.

A commit always survives a kill of the process. To survive a power cut, it needs a flush to the
disk, which is done once for all commits of half a second, and immediately for those that request
it.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from sqlalchemy import Connection, Engine, Executable

from coreeval.errors import RunError, RunLocked
from coreeval.tools.stores.heartbeat import RESUME
from coreeval.tools.stores.postgresql import StoreUnreachable
from coreeval.tools.stores.sqlite import Row, is_postgresql

if TYPE_CHECKING:
    from coreeval.tools.stores.postgresql_engine import LockMode, WriterSession

BATCH = 256
"""The most writes in one commit."""
LINGER_S = 0.05
"""The seconds that a write without a waiting caller waits for others: a commit costs more than its
rows."""
FLUSH_S = 0.5
"""The most seconds until a commit that need not survive a power cut is flushed to the disk."""


class RunnableStatement(Protocol):
    """A statement that is compiled to SQL once."""

    joins_rows: ClassVar[bool]
    """Whether one execution may write the rows of several jobs."""

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Execute the statement with rows; return the number of rows written."""
        ...


Write = tuple[Executable | RunnableStatement, Sequence[Row] | None]
"""A statement and the rows to run it with; None if it takes no rows."""


class BatchWriter:
    """A writer thread that commits all waiting jobs together.

    `submit` returns a future that is done when the write is committed: a caller that waits for it
    knows that the row survives a kill. A power cut loses at most the commits of the last `FLUSH_S`
    seconds, and none that was requested to last.

    If rows refer to rows of a second file, `rests_on`, the commits to that file are flushed first,
    so that a power cut leaves no row without the one it refers to. The exception: if SQLite has
    just advanced its log, this waits for the second file's own writer.

    In PostgreSQL every commit lasts. If the connection is lost, the writes are repeated on a new
    one, so they must be idempotent.
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
        """Set if a caller is waiting for a queued write."""
        self._broken: Exception | None = None
        """The error of a failed write that no caller waited for; later writes are not made."""
        files = [rests_on, engine.url.database] if rests_on else [engine.url.database]
        self._logs = [] if self._session else [Path(f"{file}-wal") for file in files]
        self._unflushed: RunError | None = None
        """The error of a commit that the disk did not accept; None if there is none."""
        self._due: float | None = None
        """The time at which the commits will be flushed; None if all of them are."""
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
        """Acquire a lock on a store in PostgreSQL until this writer is closed.

        Raises:
            RunLocked: another process holds it.
            RunError: the database cannot be used.
        """
        if self._session:
            self._session.hold(lock)

    def claim(self) -> None:
        """Check that a store in PostgreSQL may be written to, before anything depends on it.

        Raises:
            RunStateError: the folder that names it here is a copy.
            RunError: the database cannot be used.
        """
        if self._session:
            self._session.claim()

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
            if not job.waited_for:  # nor does each following write wake this thread
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

        If no caller waits for the bad job, later jobs must not be stored without it.
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
        """Report a batch as committed, after a flush if one of its jobs must last."""
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
                    f"writing to the disk failed: {error.strerror or error}",
                    where=str(log),
                    hint=RESUME,
                )
                raise self._unflushed from None

    def _execute(self, batch: "list[_Job]") -> list[int]:
        if self._session:
            return self._session.run(lambda connection: _run_together(connection, batch))
        with self._engine.begin() as connection:
            return [job.run(connection) for job in batch]


def _run_together(connection: Connection, batch: "list[_Job]") -> list[int]:
    """Run jobs; run each prepared statement of consecutive jobs once for all of their rows.

    A remote database writes many rows as fast as one. Prepared statements of different tables may
    be reordered: none depends on rows of another. The count of such a job is the number of its
    rows.
    """
    counts = list[int]()
    for prepared, some in groupby(batch, key=lambda job: job.is_prepared):
        if not prepared:
            counts += [job.run(connection) for job in some]
            continue
        rows = dict[RunnableStatement, list[Row]]()
        for job in some:
            for statement, given in job.prepared_writes():
                rows.setdefault(statement, []).extend(given)
            counts.append(sum(len(given) for _, given in job.prepared_writes()))
        for statement, given in rows.items():
            if given:
                statement.run(connection, given)
    return counts


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
    written even if its caller is gone.
    """

    def __init__(self, writes: Sequence[Write], *, waited_for: bool, lasting: bool) -> None:
        self._writes = writes
        self.waited_for = waited_for
        self.lasting = lasting
        self.done: Future[int] = Future()
        self.done.set_running_or_notify_cancel()

    @property
    def is_prepared(self) -> bool:
        """Whether all of its statements are prepared and may combine rows of several jobs."""
        return all(
            not isinstance(statement, Executable) and statement.joins_rows
            for statement, _ in self._writes
        )

    def prepared_writes(self) -> Iterator[tuple[RunnableStatement, Sequence[Row]]]:
        """Yield its prepared statements with their rows."""
        for statement, rows in self._writes:
            if not isinstance(statement, Executable):
                yield statement, rows or ()

    def run(self, connection: Connection) -> int:
        return sum(_run(connection, *write) for write in self._writes if write[1] != [])


def _run(
    connection: Connection, statement: Executable | RunnableStatement, rows: Sequence[Row] | None
) -> int:
    if isinstance(statement, Executable):
        return max(connection.execute(statement, rows).rowcount, 0)
    return statement.run(connection, rows or ())
