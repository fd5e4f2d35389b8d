"""Changing and deleting SQLite rows so that their bytes are gone from the file; what was found."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coreeval.errors import RunCorrupt, RunError, RunLocked
from coreeval.tools.stores.heartbeat import refuse_link

TakedownAction = Literal["blanked", "deleted", "reopened", "reported"]
"""A text is replaced, a row or file is deleted, a sample is asked again; or it is only told."""
ReportProgress = Callable[[str], None]
"""Told of each place that is looked at."""

UNREADABLE_FILE = "file that cannot be read"
"""Kind of what may name them or not."""


@dataclass(frozen=True, kw_only=True)
class FoundTexts:
    """Some texts of one kind in one place."""

    kind: str
    path: Path
    count: int
    action: TakedownAction
    to_do: str = ""
    """What is left to the user."""


RETRY_HINT = "see to the disk, then give the same command again: it goes on"
_PATIENCE_S = 10.0
SQLITE_MAGIC = b"SQLite format 3\0"


@contextmanager
def open_database(path: Path, *, dry: bool) -> Iterator[sqlite3.Connection]:
    """Open a database for one process alone, or only to look at it.

    When the block ends well the file is written anew without what was deleted, now or ever before,
    and its log is emptied.

    Raises:
        RunLocked: another process uses it.
        RunCorrupt: it is damaged, or a link to a file elsewhere.
        RunError: it cannot be used now, as on a full disk.
    """
    refuse_link(path)
    mode = "ro" if dry else "rw"
    with sqlite_errors(path):
        uri = f"{path.resolve().as_uri()}?mode={mode}"
        with closing(
            sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_PATIENCE_S)
        ) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = _read_any_text
            if not dry:
                _lock_database(database)
            yield database
            if not dry:
                database.execute("VACUUM")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Raise what SQLite raises in the block as errors that say what to do.

    Raises:
        RunLocked: another process uses the database.
        RunCorrupt: it is damaged.
        RunError: it cannot be used now, as on a full disk.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _convert_error(error, path) from None


def _read_any_text(text: bytes) -> str:
    return text.decode(errors="replace")


def _lock_database(database: sqlite3.Connection) -> None:
    """Keep everybody else out; nothing is written yet."""
    database.execute("PRAGMA secure_delete=ON")
    database.execute("PRAGMA locking_mode=EXCLUSIVE")
    database.execute("BEGIN IMMEDIATE")
    database.execute("COMMIT")


def _convert_error(error: sqlite3.DatabaseError, path: Path) -> RunError:
    """Return the error to raise: one of the database itself, or one of its disk and processes.

    SQLite reports a missing table, as in an empty file, as `SQLITE_ERROR`.
    """
    of_the_file = not isinstance(error, sqlite3.OperationalError)
    if of_the_file or error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
        return RunCorrupt(
            f"a database is damaged: {error}",
            where=str(path),
            hint="what it holds of the name cannot be deleted alone: delete the file, or restore "
            "it from a copy and give the command again",
        )
    if "locked" in str(error):
        return RunLocked(
            "another process uses this database",
            where=str(path),
            hint="wait until it has ended; --dry-run only looks",
        )
    return RunError(f"a database cannot be used: {error}", where=str(path), hint=RETRY_HINT)


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block changes, all of it or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
