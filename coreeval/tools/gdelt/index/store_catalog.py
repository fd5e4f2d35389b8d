"""The contents of a store: its files, their list (store.db), and the files that it was built from.

The version of the code that builds parts is here too, since that code needs DuckDB and Arrow: a
part built by other rules is rebuilt.
"""

import hashlib
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from coreeval.config import credentials
from coreeval.errors import KnowledgeError, RunCorrupt, RunError
from coreeval.languages import ENGLISH
from coreeval.schema import Precision, Value
from coreeval.tools.formatting import format_quantity, plural
from coreeval.tools.gdelt.own_files import (
    DOWNLOADS,
    find_data_files,
    find_part_folders,
    own_paths,
    refuse_special_files,
)
from coreeval.tools.stores.foreign_schema import KnownSchema, limit_values, refuse_foreign_schema
from coreeval.tools.stores.heartbeat import OPENING, StoreReader, refuse_side_files

REPAIR = "nothing was overwritten; move the store away and sync again"
FINISH = (
    "unless a sync is running, run the same `coreeval gdelt sync` again to make the articles "
    "searchable"
)
"""Advice for news that a stopped or killed sync had already read."""


class FileRead(Value):
    """A file that was read."""

    name: str
    kind: str
    md5: str
    rows: int
    articles: int
    """The number of rows that were articles, before duplicates are merged and titles screened."""
    bad: dict[str, int] = {}
    """The number of rows that were not articles, by reason."""


class StoreStats(Value):
    """The contents of the store; rows = bad + duplicates + dropped + articles."""

    fingerprint: str
    files: tuple[FileRead, ...]
    ignored: dict[str, str] = {}
    """The files in the folder without articles, and the reasons that they were skipped."""
    rows: int
    bad: dict[str, int] = {}
    duplicates: int
    """The number of articles with the same canonical URL as an earlier row."""
    dropped: dict[str, int] = {}
    """The number of articles not offered as evidence (language, screen), by reason."""
    articles: int
    clusters: int
    """The number of groups of two or more kept articles about the same event."""
    precision: dict[Precision, int] = {}
    """The number of kept articles by the precision of their publication time."""


LONGEST_FILE_NAME = 180
"""The most characters of a file name, well below the 255 bytes that file systems allow."""


@dataclass(frozen=True)
class StoreLayout:
    """The files of one store."""

    root: Path

    @property
    def ledger(self) -> Path:
        """The ledger of the files read and their rows."""
        return self.root / "store.db"

    @property
    def lock(self) -> Path:
        """The lock of the process that adds to the store."""
        return self.root / "lock"

    @property
    def downloads(self) -> Path:
        """Downloads from the mirror that are being read."""
        return self.root / DOWNLOADS

    def aside(self, name: str) -> Path:
        """Return the path for the invalid rows of a file."""
        return self.root / "aside" / f"{to_safe_name(name)}.jsonl.gz"

    def prepare(self) -> None:
        """Create the store's folder.

        Raises:
            KnowledgeError: something else is in its place, or there is a link in it.
        """
        if self.root.exists() and not self._may_be_store():
            raise KnowledgeError(
                "this is not a news store",
                where=str(self.root),
                hint="choose a new or empty folder with --store DIR",
            )
        self.root.mkdir(parents=True, exist_ok=True)
        refuse_special_files(self.root)

    def require(self) -> None:
        """Check that the store exists.

        Raises:
            KnowledgeError: it does not exist, or there is a link in it.
        """
        if not self.ledger.is_file():
            raise KnowledgeError(
                "this folder contains no news store",
                where=str(self.root),
                hint="create one with: coreeval gdelt sync --days 7, or choose an existing one "
                "with --store DIR",
            )
        refuse_special_files(self.root)

    def clear_leftovers(self, listed: Iterable[str]) -> None:
        """Remove the remains of a killed process: downloads, and data files that are not listed.

        Other files in the store's folders stay.

        Raises:
            KnowledgeError: there is a link in the store, or a listed path is not of a data file.
        """
        refuse_special_files(self.root)
        shutil.rmtree(self.downloads, ignore_errors=True)
        kept = {self.root / path for path in own_paths(self.root, listed)}
        for file in find_data_files(self.root):
            if file not in kept:
                file.unlink()

    def _may_be_store(self) -> bool:
        if not self.root.is_dir():
            return False
        return self.ledger.is_file() or {path.name for path in self.root.iterdir()} <= {"lock"}


def to_safe_name(name: str) -> str:
    """Return a name that is safe as a file name and short; different names stay different."""
    plain = quote(name.replace("/", "_"), safe="")
    if plain == name and len(plain) <= LONGEST_FILE_NAME:
        return plain
    return f"{plain[: LONGEST_FILE_NAME - 9]}-{sha256(name.encode()).hexdigest()[:8]}"


@cache
def hash_code() -> str:
    """Return a hash of the code that builds parts: parts built by other code are rebuilt."""
    digest = hashlib.sha256()
    for module in [*sorted(Path(__file__).parents[1].glob("**/*.py")), Path(credentials.__file__)]:
        digest.update(module.read_bytes())
    return digest.hexdigest()


DATABASE = "store.db"
_OF_INTAKE = {"files", "segments", "ignored"}
"""The tables of `sync/store_ledger.py` that are read here."""
_ALSO_OF_INTAKE = {"holds", "batches", "asked", "schema_version"}
_OF_SEARCH = {
    "parts": """
        id INTEGER PRIMARY KEY, first TEXT NOT NULL, last TEXT NOT NULL, fingerprint TEXT NOT NULL,
        rows INTEGER NOT NULL, articles INTEGER NOT NULL, dropped TEXT NOT NULL,
        stories INTEGER NOT NULL, precision TEXT NOT NULL""",
    "languages": "code TEXT PRIMARY KEY",
    "searchable": "path TEXT PRIMARY KEY",
}
"""The columns of the tables of searchable data."""
SEARCH_STATEMENTS = tuple(f"CREATE TABLE {name} ({text})" for name, text in _OF_SEARCH.items())
CATALOG = KnownSchema(tables=frozenset({*_OF_INTAKE, *_ALSO_OF_INTAKE, *_OF_SEARCH}))
"""All tables of store.db."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePart:
    """Some consecutive crawl days of the store, ready to be searched."""

    id: int
    first: str
    last: str
    """The last crawl day as `YYYY-MM-DD`, included, like the first."""
    fingerprint: str
    """A hash of the segments and the code that the part was built from."""
    rows: int
    articles: int
    dropped: dict[str, int] = field(default_factory=dict)
    stories: int
    precision: dict[int, int] = field(default_factory=dict)
    """The number of articles by the precision of their publication time."""

    @property
    def duplicates(self) -> int:
        """The number of rows about a page that an earlier row already covered."""
        return self.rows - self.articles - sum(self.dropped.values())


@contextmanager
def open_catalog(store: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the catalog of a store that the intake (sync/store_ledger.py) has created.

    The tables of searchable data are created in it only if `create`. If they are missing, the
    connection has temporary empty ones, so that readers change nothing.

    Raises:
        KnowledgeError: there is a link in the store, or its first sync ended before creating it.
        RunCorrupt: the catalog is damaged or has a schema of its own; raised in the block as well.
        RunError: the catalog cannot be used; raised in the block as well.
    """
    refuse_special_files(store)
    path = store / DATABASE
    refuse_side_files(path)
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, timeout=60, uri=True)) as database:
            limit_values(database)
            refuse_foreign_schema(database.execute, path, CATALOG, hint=REPAIR)
            _prepare_tables(store, database, create=create)
            yield database
    except sqlite3.OperationalError as error:
        raise RunError(
            f"the news store cannot be used: {error}", where=str(path), hint=OPENING
        ) from None
    except sqlite3.DatabaseError as error:
        raise RunCorrupt(
            f"the news store is damaged: {error}", where=str(path), hint=REPAIR
        ) from None


def _prepare_tables(store: Path, database: sqlite3.Connection, *, create: bool) -> None:
    listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    there = {name for (name,) in listed}
    if not there >= _OF_INTAKE:
        raise KnowledgeError(
            "this news store was created but is still empty",
            where=str(store),
            hint="run the same `coreeval gdelt sync` again to build the store",
        )
    for name, columns in _OF_SEARCH.items():
        if name not in there:
            database.execute(f"CREATE {'' if create else 'TEMP '}TABLE {name} ({columns})")


def list_segments(store: Path, database: StoreReader) -> dict[str, tuple[str, int]]:
    """Return (crawl day, rows) by path of each segment and signals file, in order of path.

    Raises:
        KnowledgeError: a path is not of a data file of the store.
    """
    listed = database.execute("SELECT path, day, rows FROM segments ORDER BY path")
    found = {path: (day, rows) for path, day, rows in listed}
    own_paths(store, found)
    return found


def list_parts(database: sqlite3.Connection) -> list[StorePart]:
    """Return the parts in chronological order."""
    listed = database.execute(
        "SELECT id, first, last, fingerprint, rows, articles, dropped, stories, precision "
        "FROM parts ORDER BY first"
    )
    return [
        StorePart(id=number, first=first, last=last, fingerprint=fingerprint, rows=rows,
             articles=articles, dropped=json.loads(dropped), stories=stories,
             precision={int(key): count for key, count in json.loads(precision).items()})
        for number, first, last, fingerprint, rows, articles, dropped, stories, precision in listed
    ]  # fmt: skip


def count_left_out(database: sqlite3.Connection) -> dict[str, int]:
    """Return the number of articles that are not searchable, by reason."""
    found = Counter[str]()
    for part in list_parts(database):
        found.update(part.dropped)
    return dict(sorted(found.items()))


def replace_parts(
    database: sqlite3.Connection, gone: Sequence[StorePart], new: Sequence[StorePart]
) -> None:
    """Replace parts by others, in one transaction."""
    with database:
        database.executemany("DELETE FROM parts WHERE id = ?", [(part.id,) for part in gone])
        database.executemany(
            "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(part.id, part.first, part.last, part.fingerprint, part.rows, part.articles,
              json.dumps(part.dropped), part.stories, json.dumps(part.precision))
             for part in new],
        )  # fmt: skip


def set_searchable(database: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Set the data files that the parts were built from."""
    with database:
        database.execute("DELETE FROM searchable")
        database.executemany("INSERT INTO searchable VALUES (?)", [(path,) for path in paths])


def describe_unsearchable(database: sqlite3.Connection) -> str:
    """Return a message on data that the parts lack, and what to do; "" if they are complete."""
    ((rows,),) = database.execute(
        "SELECT coalesce(sum(rows), 0) FROM segments WHERE path LIKE 'segments/%' "
        "AND path NOT IN (SELECT path FROM searchable)"
    )
    if not rows:
        return ""
    are = plural(rows, "is", "are")
    articles = format_quantity(rows, "article")
    return f"{articles} in the news store {are} not searchable yet: {FINISH}"


def list_languages(database: sqlite3.Connection) -> tuple[str, ...]:
    """Return the languages whose articles the store offers: English, unless others were set."""
    listed = database.execute("SELECT code FROM languages ORDER BY code")
    return tuple(code for (code,) in listed) or (ENGLISH,)


def set_languages(database: sqlite3.Connection, codes: Iterable[str]) -> None:
    """Set the languages whose articles the store offers."""
    with database:
        database.execute("DELETE FROM languages")
        database.executemany("INSERT INTO languages VALUES (?)", [(code,) for code in set(codes)])


def list_files_read(database: sqlite3.Connection) -> list[FileRead]:
    """Return the result of reading each file of articles; signals have none."""
    listed = database.execute(
        "SELECT name, feed, md5, rows, articles, bad FROM files "
        "WHERE feed NOT IN ('events', 'mentions') ORDER BY id"
    )
    return [
        FileRead(name=name, kind=feed, md5=md5, rows=rows, articles=articles, bad=json.loads(bad))
        for name, feed, md5, rows, articles, bad in listed
    ]


def list_ignored_files(database: sqlite3.Connection) -> dict[str, str]:
    """Return the files without articles, and the reasons that they were skipped."""
    return dict(database.execute("SELECT name, reason FROM ignored ORDER BY name"))


def list_file_names(database: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the number and name of each file that was read."""
    return list(database.execute("SELECT id, name FROM files ORDER BY id"))


def list_outdated_files(database: sqlite3.Connection) -> list[int]:
    """Return the files of facts whose page was read again later, and had facts then too."""
    listed = database.execute(
        "SELECT id FROM files AS old WHERE feed = 'current_events' AND EXISTS ("
        "SELECT 1 FROM files WHERE feed = old.feed AND batch = old.batch AND id > old.id "
        "AND articles > 0) ORDER BY id"
    )
    return [number for (number,) in listed]


def part_folder(store: Path, part: int) -> Path:
    """Return the folder of a part."""
    return store / "parts" / f"{part:06d}"


def find_replaced_parts(store: Path, database: sqlite3.Connection) -> list[Path]:
    """Return the folders of parts that are no longer listed."""
    listed = {part_folder(store, part.id) for part in list_parts(database)}
    return [folder for folder in find_part_folders(store) if folder not in listed]
