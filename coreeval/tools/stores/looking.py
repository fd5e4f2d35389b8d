"""Looking into a store without SQLAlchemy, which takes longer to import than `status` may take.

Only what is asked again and again while a run goes on is read so; nothing is written.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coreeval.errors import RunCorrupt, RunError

REPAIR = (
    "nothing was overwritten; restore the file from a copy, or move it away and start a new run"
)
RESUME = "see to the disk, then resume the run"
_PATIENCE_S = 10.0
_SPENT = "SELECT coalesce(sum(usd), 0.0), count(*) - count(usd) FROM calls WHERE paid_by = ?"
_OPEN = "SELECT coalesce(sum(usd), 0.0) FROM reservations WHERE payer = ?"


@contextmanager
def looked_at(path: Path, *, what: str) -> Iterator[sqlite3.Connection]:
    """Open a database for the block to read it; rows are mappings.

    Args:
        path: The file.
        what: What people call it.

    Raises:
        RunCorrupt: it is no database or damaged.
        RunError: it cannot be used now.
    """
    where = str(path)
    try:
        with closing(sqlite3.connect(_uri(path), uri=True, timeout=_PATIENCE_S)) as connection:
            connection.row_factory = sqlite3.Row
            yield connection
    except sqlite3.OperationalError as error:
        raise RunError(f"{what} cannot be used: {error}", where=where, hint=RESUME) from None
    except sqlite3.DatabaseError as error:
        raise RunCorrupt(f"{what} is damaged: {error}", where=where, hint=REPAIR) from None


def _uri(path: Path) -> str:
    return f"{path.resolve().as_uri()}?mode=ro"


def last_row(connection: sqlite3.Connection, table: str) -> Mapping[str, Any] | None:
    """Return the row of a table that has one or none, with the columns that the file has."""
    row = connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
    return dict(row) if row else None


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


def spend_of(calls: Path, payer: str, budget_usd: float | None = None) -> Spend:
    """Return what a run has spent until now, as the ledger in the call store has it.

    Args:
        calls: The call store; where there is none, nothing was paid.
        payer: The run's name in it.
        budget_usd: What the run may spend.

    Raises:
        RunCorrupt: it is damaged.
        RunError: it cannot be read.
    """
    if not calls.exists():
        return Spend(billed_usd=0.0, reserved_usd=0.0, unpriced=0, budget_usd=budget_usd)
    with looked_at(calls, what="the call store") as connection:
        billed, unpriced = connection.execute(_SPENT, (payer,)).fetchone()
        (reserved,) = connection.execute(_OPEN, (payer,)).fetchone()
    return Spend(billed_usd=billed, reserved_usd=reserved, unpriced=unpriced, budget_usd=budget_usd)
