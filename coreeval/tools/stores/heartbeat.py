"""What a run's process knows of itself, and what the run has spent, without SQLAlchemy.

Importing SQLAlchemy takes longer than `status` may take. Only what is asked again and again while
a run goes on is read so, and nothing is written.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.files import special_kind

Cause = Literal["budget", "throttled", "resting", "news", "turn", "answer", "step"]
"""What is waited for: money that requests in flight may leave over; an endpoint that said to come
later; the next try of a request that failed; a news source; a place among the requests in flight;
an answer; a step without a model. What explains most comes first."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Something that holds a run up, or would if it lasted."""

    cause: Cause
    who: str
    """A model, a step or a news source."""
    number: int
    """Calls or samples that wait."""
    seconds: float
    """How long the one that has waited longest has."""
    reason: str = ""
    """What the endpoint said last, where it refused."""


@dataclass(frozen=True, kw_only=True)
class RoleSpeed:
    """How fast a role is answered, since this process took the run up."""

    role: str
    model: str
    answers: int
    mean_s: float
    """Seconds from request to answer, on average; what waits to be sent does not count."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What a run has spent by the ledger, in US dollars."""

    billed_usd: float
    """Of answers that are stored and have a price."""
    reserved_usd: float
    """The most that requests can cost which are in flight, or of which nobody knows the end."""
    unpriced: int
    """Stored answers that were paid for at a price that is not known."""
    budget_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class ProgressSnapshot:
    """A run at one moment, as the process that works on it sees it."""

    stage: str
    done: int = 0
    total: int = 0
    """Of what the stage counts: samples, or questions to targets; 0 where it counts nothing."""
    per_minute: float | None = None
    """How many of these ended a minute of late; None while there is too little to tell."""
    left_s: float | None = None
    """Seconds until the stage is done, at that rate."""
    idle_s: float = 0.0
    """Seconds since anything moved: an answer came, a step or a sample ended."""
    sent: int = 0
    """Requests in flight."""
    roles: tuple[RoleSpeed, ...] = ()
    """Slowest first."""
    waits: tuple[Wait, ...] = ()
    """What is waited for: what explains most first."""
    spend: Spend | None = None
    """What the run had spent at the last heartbeat; None until that was read."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return a snapshot from its `dataclasses.asdict` form."""
        roles = tuple(RoleSpeed(**role) for role in row["roles"])
        waits = tuple(Wait(**wait) for wait in row["waits"])
        spend = Spend(**row["spend"]) if row.get("spend") else None
        return cls(**{**row, "roles": roles, "waits": waits, "spend": spend})


REPAIR = (
    "nothing was overwritten; restore the file from a copy, or move it away and start a new run"
)
RESUME = "see to the disk, then resume the run"
OPENING = "is the folder there, may it be written, is the disk full?"
COPYING = (
    "it may not be written here, and was not closed before: copy its folder, with the files that "
    "end in -wal and -shm, to where you may write"
)
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
"""Of sums in US dollars: two that add up the same calls in another order are equal."""


@contextmanager
def open_readonly(path: Path, *, what: str) -> Iterator[sqlite3.Connection]:
    """Open a database for reading inside the block; rows are mappings.

    Args:
        path: The file.
        what: The name to show to users.

    Raises:
        RunCorrupt: the file is not a database, or is damaged.
        RunError: the database cannot be used now.
    """
    where = str(path)
    try:
        with closing(
            sqlite3.connect(reading_uri(path), uri=True, timeout=_PATIENCE_S)
        ) as connection:
            connection.row_factory = sqlite3.Row
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
            f"{path.name} is {kind}, and CoreEval makes none: nothing was read or written",
            where=str(path),
            hint="delete it, or put a file in its place",
        )


def reading_uri(path: Path) -> str:
    """Return the URI that opens a database for reading.

    SQLite creates a file of its own beside a database with a log, which fails if the folder is not
    writable. In that case the database is opened as immutable, unless a log lies beside it.
    """
    fixed = not may_change(path) and not Path(f"{path}-wal").exists()
    return f"{path.resolve().as_uri()}?{'immutable=1' if fixed else 'mode=ro'}"


def may_change(path: Path) -> bool:
    """Return whether this process may write a database and the files that SQLite adds to it."""
    return os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK)


def read_single_row(connection: sqlite3.Connection, table: str) -> Mapping[str, Any] | None:
    """Return the only row of a table, with the columns that the file has; None if it is empty."""
    row = connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
    return dict(row) if row else None


class SpendingReader:
    """What a run has spent, by the ledger in the call store; only what is new is added up again.

    Args:
        calls: The call store; where there is none, nothing was paid.
        payer: The run's name in it.
        budget_usd: What the run may spend.
    """

    def __init__(self, calls: Path, payer: str, budget_usd: float | None = None) -> None:
        self._calls, self._payer, self._budget = calls, payer, budget_usd
        self._newest = 0
        """The last row that was looked at."""
        self._billed, self._unpriced = 0.0, 0

    def now(self) -> Spend:
        """Return the amount spent so far.

        Raises:
            RunCorrupt: the store is damaged.
            RunError: the store cannot be read.
        """
        reserved = self._read() if self._calls.exists() else 0.0
        return Spend(
            billed_usd=round(self._billed, DIGITS),
            reserved_usd=reserved,
            unpriced=self._unpriced,
            budget_usd=self._budget,
        )

    def _read(self) -> float:
        """Add up the rows since the last read; return the amount reserved."""
        with open_readonly(self._calls, what="the call store") as connection:
            connection.execute("BEGIN")  # the sums are of one moment
            (newest,) = connection.execute(_NEWEST).fetchone()
            if newest < self._newest or not self._newest:  # rows were taken out, or the first look
                found = connection.execute(PAID, {"payer": self._payer}).fetchone()
                self._billed, self._unpriced = found
            elif newest > self._newest:
                since = {"payer": self._payer, "seen": self._newest}
                billed, unpriced = connection.execute(_PAID_SINCE, since).fetchone()
                self._billed, self._unpriced = self._billed + billed, self._unpriced + unpriced
            self._newest = newest
            return float(connection.execute(_RESERVED, {"payer": self._payer}).fetchone()[0])
