"""The store's list of itself, store.db: which files, segments and parts there are.

A segment or part exists when it is listed; folders that are not listed are what a killed process
left.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.errors import RunError
from coreeval.tools.gdelt.own_files import own_paths, refuse_links
from coreeval.tools.gdelt.stats import FileRead
from coreeval.tools.stores.heartbeat import OPENING

DATABASE = "store.db"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS parts (
    id INTEGER PRIMARY KEY, first TEXT NOT NULL, last TEXT NOT NULL, fingerprint TEXT NOT NULL,
    rows INTEGER NOT NULL, articles INTEGER NOT NULL, dropped TEXT NOT NULL,
    stories INTEGER NOT NULL, precision TEXT NOT NULL
);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some consecutive crawl days of the store, ready to be searched."""

    id: int
    first: str
    last: str
    """Crawl days as `YYYY-MM-DD`, both included."""
    fingerprint: str
    """Of the segments that it was made from, and of the code that made it."""
    rows: int
    articles: int
    dropped: dict[str, int] = field(default_factory=dict)
    stories: int
    precision: dict[int, int] = field(default_factory=dict)
    """How many articles know their publication time how well."""

    @property
    def duplicates(self) -> int:
        """Rows about a page that another row told before."""
        return self.rows - self.articles - sum(self.dropped.values())


@contextmanager
def catalogue(store: Path) -> Iterator[sqlite3.Connection]:
    """Open the list of a store that the intake (store/ledger.py) has made.

    Raises:
        KnowledgeError: there is a link in the store.
        RunError: it cannot be opened.
    """
    refuse_links(store)
    path = store / DATABASE
    try:
        database = sqlite3.connect(path, timeout=60)
    except sqlite3.OperationalError as error:
        raise _unusable(path, error) from None
    with closing(database):
        try:
            database.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            raise _unusable(path, error) from None
        yield database


def _unusable(path: Path, error: sqlite3.OperationalError) -> RunError:
    return RunError(f"the news store cannot be opened: {error}", where=str(path), hint=OPENING)


def segments(store: Path, database: sqlite3.Connection) -> dict[str, tuple[str, int]]:
    """Return (crawl day, rows) by path of each segment and signals file, in order of path.

    Raises:
        KnowledgeError: a path leads out of the store.
    """
    listed = database.execute("SELECT path, day, rows FROM segments ORDER BY path")
    found = {path: (day, rows) for path, day, rows in listed}
    own_paths(store, found)
    return found


def parts(database: sqlite3.Connection) -> list[Part]:
    """Return the parts in order of time."""
    listed = database.execute(
        "SELECT id, first, last, fingerprint, rows, articles, dropped, stories, precision "
        "FROM parts ORDER BY first"
    )
    return [
        Part(id=number, first=first, last=last, fingerprint=fingerprint, rows=rows,
             articles=articles, dropped=json.loads(dropped), stories=stories,
             precision={int(key): count for key, count in json.loads(precision).items()})
        for number, first, last, fingerprint, rows, articles, dropped, stories, precision in listed
    ]  # fmt: skip


def replace_parts(database: sqlite3.Connection, gone: Sequence[Part], new: Sequence[Part]) -> None:
    """Put parts in the place of others, in one transaction."""
    with database:
        database.executemany("DELETE FROM parts WHERE id = ?", [(part.id,) for part in gone])
        database.executemany(
            "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(part.id, part.first, part.last, part.fingerprint, part.rows, part.articles,
              json.dumps(part.dropped), part.stories, json.dumps(part.precision))
             for part in new],
        )  # fmt: skip


def files_read(database: sqlite3.Connection) -> list[FileRead]:
    """Return what reading each file of articles came to; signals have none."""
    listed = database.execute(
        "SELECT name, feed, md5, rows, articles, bad FROM files "
        "WHERE feed NOT IN ('events', 'mentions') ORDER BY id"
    )
    return [
        FileRead(name=name, kind=feed, md5=md5, rows=rows, articles=articles, bad=json.loads(bad))
        for name, feed, md5, rows, articles, bad in listed
    ]


def ignored_files(database: sqlite3.Connection) -> dict[str, str]:
    """Return the files that hold no articles, and why they were left out."""
    return dict(database.execute("SELECT name, reason FROM ignored ORDER BY name"))


def file_names(database: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the number and name of each file that was read."""
    return list(database.execute("SELECT id, name FROM files ORDER BY id"))


def folder_of(store: Path, part: int) -> Path:
    """Return where a part's tables are."""
    return store / "parts" / f"{part:06d}"
