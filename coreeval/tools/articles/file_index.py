"""An index of the articles in large files by evidence id, so that a file is read once.

The index has hashes and positions, but no texts. It is rebuilt when a file changes.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from filelock import FileLock

from coreeval.errors import KnowledgeError, RunCorrupt
from coreeval.tools.files import path_to_text
from coreeval.tools.stores.foreign_schema import (
    KnownSchema,
    limit_values,
    refuse_foreign_schema,
)
from coreeval.tools.stores.heartbeat import refuse_side_files

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS files (
  id INTEGER PRIMARY KEY, path TEXT UNIQUE, state TEXT, rows INTEGER, bad TEXT, damage TEXT);
CREATE TABLE IF NOT EXISTS entries (file INTEGER, key TEXT, at INTEGER, seen INTEGER);
CREATE INDEX IF NOT EXISTS by_key ON entries (key, file);
"""
_FIND: Final = (
    "SELECT path, key, at, seen FROM entries JOIN files ON file = id"
    " WHERE key IN (SELECT value FROM json_each(?)) ORDER BY at"
)
_KNOWN: Final = KnownSchema(tables=frozenset({"files", "entries"}))
_REBUILD: Final = "delete the index; CoreEval will rebuild it from the files"
_VERSION: Final = 2
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Entry:
    """The position of an article in a file."""

    key: str
    """The evidence id of the article's URL."""
    at: int
    """The byte at which it begins: decompressed in a file of JSON lines, compressed in a WARC
    file."""
    seen: int = 0
    """The crawl time of the page in seconds since 1970; 0 if the file does not state it."""


@dataclass
class FileTally:
    """The counts of a file."""

    rows: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    """The number of rows that cannot be used, by reason."""
    damage: str = ""
    """The reason that the file could not be read to its end."""


Scan = Callable[[Path, FileTally], Iterator[Entry]]


@dataclass(frozen=True)
class FileIndex:
    """The index of a workspace."""

    path: Path

    def ensure(self, file: Path, scan: Scan) -> FileTally:
        """Index a file unless it is already indexed since its last change.

        Raises:
            KnowledgeError: the file cannot be read, or the index cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock"), closing(self._open()) as database, database:
                known = self._known(database, file)
                return known or self._add(database, file, scan)
        except OSError as error:
            raise unreadable(file, error) from None
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def find(self, files: Sequence[Path], keys: Sequence[str]) -> dict[Path, list[Entry]]:
        """Return the positions of articles in indexed files, in the order of each file.

        Raises:
            KnowledgeError: the index cannot be read.
        """
        try:
            with closing(self._open()) as database:
                rows = database.execute(_FIND, (json.dumps(list(keys)),)).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        found = dict[str, list[Entry]]((path_to_text(file), []) for file in files)
        for path, *entry in rows:
            if path in found:
                found[path].append(Entry(*entry))
        return {file: entries for file in files if (entries := found[path_to_text(file)])}

    def _open(self) -> sqlite3.Connection:
        try:
            return _opened(self.path)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise
            self.path.unlink(missing_ok=True)
            return _opened(self.path)

    def _unusable(self, error: sqlite3.Error) -> KnowledgeError:
        return KnowledgeError(
            f"the index of articles cannot be used: {error}",
            where=str(self.path),
            hint=_REBUILD,
        )

    def _known(self, database: sqlite3.Connection, file: Path) -> FileTally | None:
        found = database.execute(
            "SELECT rows, bad, damage FROM files WHERE path = ? AND state = ?",
            (path_to_text(file), _state(file)),
        ).fetchone()
        return FileTally(found[0], Counter(json.loads(found[1])), found[2]) if found else None

    def _add(self, database: sqlite3.Connection, file: Path, scan: Scan) -> FileTally:
        path = (path_to_text(file),)
        database.execute(
            "DELETE FROM entries WHERE file = (SELECT id FROM files WHERE path = ?)", path
        )
        database.execute("DELETE FROM files WHERE path = ?", path)
        state, tally = _state(file), FileTally()
        number = database.execute("INSERT INTO files (path) VALUES (?)", path).lastrowid
        database.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?)",
            ((number, each.key, each.at, each.seen) for each in scan(file, tally)),
        )
        database.execute(
            "UPDATE files SET state = ?, rows = ?, bad = ?, damage = ? WHERE id = ?",
            (state, tally.rows, json.dumps(tally.bad), tally.damage, number),
        )
        return tally


def _opened(path: Path) -> sqlite3.Connection:
    if path.is_symlink():  # SQLite would write into the link's target
        path.unlink()
    refuse_side_files(path)
    database = sqlite3.connect(path, timeout=_PATIENCE_S)
    try:
        limit_values(database)
        refuse_foreign_schema(database.execute, path, _KNOWN, hint=_REBUILD)
        database.execute("PRAGMA journal_mode = WAL")  # searches do not wait for indexing
        database.executescript(_TABLES)
    except (sqlite3.Error, RunCorrupt):
        database.close()
        raise
    return database


def _state(file: Path) -> str:
    found = file.stat()
    return f"{_VERSION} {found.st_size} {found.st_mtime_ns} {found.st_ino}"


def unreadable(file: Path, error: OSError) -> KnowledgeError:
    """Return the error for a file of articles that cannot be read."""
    return KnowledgeError(
        f"cannot read a file of articles: {error.strerror or error}",
        where=str(file),
        hint="use only existing, readable files and folders in knowledge.articles",
    )
