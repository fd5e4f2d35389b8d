"""The progress of a run's process, and the run's spending, read without SQLAlchemy.

Importing SQLAlchemy takes longer than `status` may take. This module reads only what is requested
repeatedly during a run, and writes nothing.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.files import special_kind
from coreeval.tools.stores.foreign_schema import READ_ONLY, limit_values, refuse_foreign_schema
from coreeval.tools.stores.places import find_schema, has_store

Cause = Literal["budget", "throttled", "resting", "news", "turn", "answer", "step"]
"""The reason for a wait: a budget that requests in flight may not use up; an endpoint that
requested a delay; the next try of a failed request; a news source; a place among the requests in
flight; an answer; a step without a model. In order of precedence."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Something that the run is waiting for."""

    cause: Cause
    who: str
    """A model, a step or a news source."""
    number: int
    """The number of calls or samples that wait."""
    seconds: float
    """The seconds that the longest of them has waited."""
    reason: str = ""
    """The last message of the endpoint if it refused; "" if it did not."""


@dataclass(frozen=True, kw_only=True)
class RoleSpeed:
    """The speed at which a role is answered, since this process resumed the run."""

    role: str
    model: str
    answers: int
    mean_s: float
    """The mean seconds from request to answer; waiting to be sent does not count."""


@dataclass(frozen=True, kw_only=True)
class WorkerSnapshot:
    """The state of one of several processes that work on a run."""

    number: int
    pid: int
    host: str
    ended: int = 0
    """The number of samples that have finished their phase in it."""
    per_second: float = 0.0
    """The number of calls answered per second over its last ten reports."""
    sent: int = 0
    """The number of requests in flight."""
    age_s: float = 0.0
    """The seconds since its last report."""
    waits: tuple[Wait, ...] = ()
    """Its current waits, in order of the precedence of their causes."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """The amounts that a run has spent according to the ledger, in US dollars."""

    billed_usd: float
    """The cost of stored answers with a known price."""
    reserved_usd: float
    """The most that requests in flight or with an unknown result cost."""
    unpriced: int
    """The number of stored answers paid for at an unknown price."""
    budget_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class CostForecast:
    """The expected total spending of a run at the end of its current stage, in US dollars."""

    usd: float
    low_usd: float
    high_usd: float
    exceeds_budget: bool | None
    """None without a budget."""


@dataclass(frozen=True, kw_only=True)
class ProgressSnapshot:
    """The state of a run at one moment, as seen by the process that works on it."""

    stage: str
    done: int = 0
    total: int = 0
    """The number of samples, or questions to targets, of the stage; 0 if the stage counts
    nothing."""
    per_minute: float | None = None
    """The number of these that finished per minute recently; None if there is too little data."""
    left_s: float | None = None
    """The seconds until the stage is finished, at that rate."""
    ends_at: str = ""
    """The time at which it is then finished, in UTC; empty if there is too little data."""
    cost: CostForecast | None = None
    """None if there is too little data, or nothing was paid."""
    idle_s: float = 0.0
    """The seconds since the last progress: an answer arrived, or a step or sample ended."""
    sent: int = 0
    """The number of requests in flight."""
    roles: tuple[RoleSpeed, ...] = ()
    """The speeds of the roles, slowest first."""
    waits: tuple[Wait, ...] = ()
    """The current waits, in order of the precedence of their causes."""
    spend: Spend | None = None
    """The run's spending at the last heartbeat; None until it was read."""
    workers: tuple[WorkerSnapshot, ...] = ()
    """The worker processes, if the run has several."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return a snapshot from its `dataclasses.asdict` form."""
        known = {
            "roles": tuple(RoleSpeed(**role) for role in row["roles"]),
            "waits": _to_waits(row["waits"]),
            "spend": Spend(**row["spend"]) if row.get("spend") else None,
            "cost": CostForecast(**row["cost"]) if row.get("cost") else None,
            "workers": tuple(
                WorkerSnapshot(**{**worker, "waits": _to_waits(worker["waits"])})
                for worker in row.get("workers", ())
            ),
        }
        return cls(**{**row, **known})


def _to_waits(rows: Iterable[Mapping[str, Any]]) -> tuple[Wait, ...]:
    return tuple(Wait(**row) for row in rows)


REPAIR = (
    "nothing was overwritten; restore the file from a backup, or move it away and start a new run"
)
RESUME = "check the disk, then resume the run"
BUSY = "another process, such as coreeval calls gc, is using it: try again when that has ended"
OPENING = "check that the folder exists and is writable, and that the disk is not full"
COPYING = (
    "it is read-only here and was not closed properly: copy its folder, with the files that end "
    "in -wal and -shm, to a writable place"
)
SIDE_FILES = ("-wal", "-shm", "-journal")
"""The endings of the files that SQLite creates and reads beside a database."""
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""The last bytes of a journal that names a file which SQLite deletes after it has read the journal.
SQLite writes such journals only for transactions in several databases, which CoreEval never
uses."""
_PATIENCE_S = 10.0
_NEWEST = "SELECT coalesce(max(rowid), 0) FROM calls"
PAID = """
    SELECT coalesce(sum(usd), 0.0), count(*) - count(usd) FROM calls WHERE paid_by = :payer
"""
_PAID_SINCE = """
    SELECT coalesce(sum(usd), 0.0), count(*) - count(usd) FROM calls NOT INDEXED
    WHERE rowid > :seen AND paid_by = :payer
"""
_RESERVED = "SELECT coalesce(sum(usd), 0.0) FROM reservations WHERE payer = :payer"
DIGITS = 9
"""The decimal digits of sums in US dollars, so that sums of the same calls in any order are
equal."""


class RowCursor(Protocol):
    """The result of a statement; rows are read by position or by name."""

    def fetchone(self) -> Any:  # noqa: ANN401 - a row
        """Return the next row; None if there is none."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows."""


class StoreReader(Protocol):
    """A connection to a store that only reads."""

    def execute(self, statement: str, values: Any = ..., /) -> RowCursor:  # noqa: ANN401
        """Run a statement with values for `?` or `:name`."""


class StoreDatabase(StoreReader, Protocol):
    """A connection to a store that may write."""

    def executemany(self, statement: str, values: Any, /) -> object:  # noqa: ANN401
        """Run a statement once for each of the values."""


@contextmanager
def open_readonly(path: Path, *, what: str) -> Iterator[StoreReader]:
    """Open a store for reading inside the block; rows are mappings.

    Raises:
        ConfigError: it is in PostgreSQL, and `COREEVAL_STORE_URL` is missing.
        RunCorrupt: the file is not a database, is damaged, or has a schema of its own.
        RunError: the database cannot be used now.
    """
    if schema := find_schema(path):
        from coreeval.tools.stores.postgresql import read_schema  # only needed for PostgreSQL

        with read_schema(schema, what=what) as reader:
            yield reader
        return
    where = str(path)
    refuse_side_files(path)
    try:
        with closing(
            sqlite3.connect(reading_uri(path), uri=True, timeout=_PATIENCE_S)
        ) as connection:
            connection.row_factory = sqlite3.Row
            limit_values(connection)
            refuse_foreign_schema(connection.execute, path, READ_ONLY, hint=REPAIR)
            yield connection
    except sqlite3.OperationalError as error:
        hint = RESUME if may_change(path) else COPYING
        raise RunError(f"{what} cannot be used: {error}", where=where, hint=hint) from None
    except sqlite3.DatabaseError as error:
        raise RunCorrupt(f"{what} is damaged: {error}", where=where, hint=REPAIR) from None


def refuse_special_file(path: Path) -> None:
    """Refuse a database that is not a regular file: a run from elsewhere may contain a link.

    Raises:
        RunCorrupt: it is a link, pipe or device.
    """
    if kind := special_kind(path):
        raise RunCorrupt(
            f"{path.name} is {kind}, which CoreEval never creates; nothing was read or written",
            where=str(path),
            hint="delete it, or replace it with a file",
        )


def refuse_side_files(path: Path) -> None:
    """Refuse a database if SQLite would delete, or wait for, something outside it when opening it.

    Every function that opens a database calls this first: SQLite reads the files beside a database
    before its schema, also on a connection that only reads. The database may be missing, or a link
    to one.

    Raises:
        RunCorrupt: it, or a file beside it, is a pipe, a device or a link, or its journal names
            another file.
    """
    real = os.path.realpath(path)
    for end in ("", *SIDE_FILES):
        refuse_special_file(Path(f"{real}{end}"))
    journal = Path(f"{real}-journal")
    try:
        with journal.open("rb") as file:
            file.seek(-len(_SUPER_JOURNAL), os.SEEK_END)
            foreign = file.read() == _SUPER_JOURNAL
    except OSError:  # it is missing or short, or SQLite will fail to read it, too
        return
    if foreign:
        raise RunCorrupt(
            f"{journal.name} names a file that SQLite would delete when it opens {path.name}; "
            "CoreEval never writes such a journal; nothing was read or deleted",
            where=str(journal),
            hint="if you do not know where it comes from, delete it; otherwise open the database "
            "with the program that wrote it",
        )


def reading_uri(path: Path) -> str:
    """Return the URI that opens a database for reading.

    SQLite creates a file beside a database with a log, which fails if the folder is not writable.
    In that case the database is opened as immutable, unless a log is beside it.
    """
    fixed = not may_change(path) and not Path(f"{path}-wal").exists()
    return f"{path.resolve().as_uri()}?{'immutable=1' if fixed else 'mode=ro'}"


def may_change(path: Path) -> bool:
    """Return whether this process may write a database and the files that SQLite adds to it."""
    return os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK)


class SpendingReader:
    """A reader of a run's spending in the call store's ledger; it reads only new rows.

    Args:
        calls: The call store; if it does not exist, nothing was paid.
        payer: The run's name in it.
        budget_usd: The run's budget.
    """

    def __init__(self, calls: Path, payer: str, budget_usd: float | None = None) -> None:
        self._calls, self._payer, self._budget = calls, payer, budget_usd
        self._newest = 0
        """The last row that was read."""
        self._billed, self._unpriced = 0.0, 0

    def now(self) -> Spend:
        """Return the amount spent so far.

        Raises:
            RunCorrupt: the store is damaged.
            RunError: the store cannot be read.
        """
        reserved = self._read() if has_store(self._calls) else 0.0
        return Spend(
            billed_usd=round(self._billed, DIGITS),
            reserved_usd=reserved,
            unpriced=self._unpriced,
            budget_usd=self._budget,
        )

    def _read(self) -> float:
        """Add up the rows since the last read; return the amount reserved."""
        with open_readonly(self._calls, what="the call store") as connection:
            connection.execute("BEGIN")  # all sums are at the same time
            (newest,) = connection.execute(_NEWEST).fetchone()
            if newest < self._newest or not self._newest:  # rows were deleted, or first read
                found = connection.execute(PAID, {"payer": self._payer}).fetchone()
                self._billed, self._unpriced = found
            elif newest > self._newest:
                since = {"payer": self._payer, "seen": self._newest}
                billed, unpriced = connection.execute(_PAID_SINCE, since).fetchone()
                self._billed, self._unpriced = self._billed + billed, self._unpriced + unpriced
            self._newest = newest
            return float(connection.execute(_RESERVED, {"payer": self._payer}).fetchone()[0])
