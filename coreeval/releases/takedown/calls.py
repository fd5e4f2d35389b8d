"""Erases calls, cache entries and open samples that name a person; costs are kept.

A call gets another key and keeps its model, role, payer, tokens and price. So total costs do not
change, and the same question is sent again if needed. Cache entries and the state of samples in
progress may be lost and requested again.
"""

import json
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from coreeval.agents.name_finder import NameFinder
from coreeval.errors import RunCorrupt, RunError, RunLocked, RunStateError
from coreeval.tools.files import (
    MOST_UNPACKED,
    TooLarge,
    decompress_within,
)
from coreeval.tools.json_cache import CACHE_SCHEMA, find_value_files, is_value_file, is_value_name
from coreeval.tools.stores.call_records import (
    ERASED,
    CallRecord,
    canonical_json,
    decompress,
    encode_record,
)
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.call_tables import CALL_SCHEMA
from coreeval.tools.stores.foreign_schema import (
    CHECKPOINTS,
    KnownSchema,
    limit_values,
    refuse_foreign_schema,
)
from coreeval.tools.stores.heartbeat import (
    StoreDatabase,
    refuse_side_files,
    refuse_special_file,
)
from coreeval.tools.stores.places import find_schema, marker_of
from coreeval.tools.stores.postgresql_places import refuse_copy
from coreeval.tools.workspace import ASKED_FOLDERS

TakedownAction = Literal["blanked", "deleted", "reopened", "reported"]
"""A text is replaced, a row or file is deleted, a sample is asked again, or a match is only
reported.
"""
ReportProgress = Callable[[str], None]
"""A callback that receives each place before it is searched."""

UNREADABLE_FILE = "file that cannot be read"
"""The kind of a file that may name the person."""


@dataclass(frozen=True, kw_only=True)
class TextMatches:
    """Matching texts of one kind in one place."""

    kind: str
    path: Path
    count: int
    action: TakedownAction
    to_do: str = ""
    """The remaining work for the user; empty if there is none."""


RETRY_HINT = "check the disk, then run the same command again to continue"
_PATIENCE_S = 10.0
_DAMAGED = (
    "entries with the name cannot be deleted separately: delete the file, or restore it from a "
    "backup and run the command again"
)
SQLITE_MAGIC = b"SQLite format 3\0"


@contextmanager
def open_database(path: Path, *, dry: bool, known: KnownSchema | None) -> Iterator[StoreDatabase]:
    """Open a database for exclusive use, or read-only.

    If the block succeeds, the file is rewritten without any deleted rows, and its log is emptied.

    Args:
        path: The file.
        dry: Whether to only read.
        known: What CoreEval creates in it; None if it may be another program's.

    Raises:
        RunLocked: another process uses it.
        RunCorrupt: it is damaged, a link to a file elsewhere, or has a schema of its own.
        RunError: it cannot be used now, as on a full disk.
    """
    refuse_special_file(path)
    if schema := find_schema(path):
        from coreeval.tools.stores.postgresql import change_schema, read_schema  # only then needed

        opened = (
            read_schema(schema, what=_name_store(path))
            if dry
            else change_schema(schema, marker_of(path), what=_name_store(path))
        )
        with opened as store:
            yield store
        return
    refuse_side_files(path)
    mode = "ro" if dry else "rw"
    with sqlite_errors(path):
        uri = f"{path.resolve().as_uri()}?mode={mode}"
        with closing(
            sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_PATIENCE_S)
        ) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = _read_any_text
            limit_values(database)
            if known:
                refuse_foreign_schema(database.execute, path, known, hint=_DAMAGED)
            if not dry:
                _lock_database(database)
            yield database
            if not dry:
                database.execute("VACUUM")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _name_store(path: Path) -> str:
    return "the call store" if path.stem == "calls" else path.name


def find_original(path: Path) -> RunStateError | None:
    """Return the error that names the original, if a store in PostgreSQL is known by a copy.

    Raises:
        RunError: the store cannot be used now.
    """
    if find_schema(path):
        with open_database(path, dry=True, known=None) as database:
            try:
                refuse_copy(database.execute, marker_of(path), what=_name_store(path))
            except RunStateError as error:
                return error
    return None


def report_copy(path: Path, error: RunStateError) -> TextMatches:
    """Return the report about a store with the name that is known by a copy of its folder."""
    return TextMatches(
        kind=UNREADABLE_FILE,
        path=path,
        count=1,
        action="reported",
        to_do=f"{error.message}; run this command for that folder, then again for this one",
    )


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Convert SQLite errors in the block to errors that say what to do.

    Raises:
        RunLocked: another process uses the database.
        RunCorrupt: it is damaged.
        RunError: it cannot be used now, as on a full disk.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _convert_error(error, path) from None
    except TooLarge as error:
        raise RunCorrupt(
            f"a database contains a value that CoreEval did not write: {error}",
            where=str(path),
            hint=_DAMAGED,
        ) from None


def _read_any_text(text: bytes) -> str:
    return text.decode(errors="replace")


def _lock_database(database: sqlite3.Connection) -> None:
    """Lock other processes out, without writing anything."""
    database.execute("PRAGMA secure_delete=ON")
    database.execute("PRAGMA locking_mode=EXCLUSIVE")
    database.execute("BEGIN IMMEDIATE")
    database.execute("COMMIT")


def _convert_error(error: sqlite3.DatabaseError, path: Path) -> RunError:
    """Return the error to raise: the database is damaged, or its disk or another process fails.

    SQLite reports a missing table, as in an empty file, as `SQLITE_ERROR`.
    """
    of_the_file = not isinstance(error, sqlite3.OperationalError)
    if of_the_file or error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
        return RunCorrupt(
            f"a database is damaged: {error}",
            where=str(path),
            hint=_DAMAGED,
        )
    if "locked" in str(error):
        return RunLocked(
            "another process uses this database",
            where=str(path),
            hint="wait until it ends; --dry-run only reads",
        )
    return RunError(f"a database cannot be used: {error}", where=str(path), hint=RETRY_HINT)


@contextmanager
def transaction(database: StoreDatabase) -> Iterator[None]:
    """Commit all changes of the block, or none."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


CACHE_DATABASE = "cache.db"
ARTICLE_CACHE = "articles"
"""The name of the cache of article texts (tools/articles/sources.py)."""
_FOREIGN = (
    "its list names files that are not its own, which CoreEval never writes; they were neither "
    "read nor deleted. Delete the cache: its entries will be fetched again"
)

_TOO_LARGE = (
    f"entries of more than {MOST_UNPACKED >> 20} MiB, which CoreEval never writes, were not read: "
    "delete the cache; its entries will be fetched again"
)


def erase_cache_entries(folder: Path, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    """Delete the entries of a cache (tools/json_cache.py) that name somebody.

    The cache may come from a stranger, or be in a folder of the user's, so only files with names
    that a cache gives are read and deleted. Such files without an entry, which a killed process or
    a damaged database left, can never be read again and are all deleted.

    Raises:
        RunError: it cannot be used, is damaged, or another process uses it.
    """
    path = folder / CACHE_DATABASE
    with open_database(path, dry=dry, known=CACHE_SCHEMA) as database:
        entries, foreign, too_large = _scan_cache(database, folder, finder)
        left = _find_left_values(database, folder)
        named = len(entries) + sum(_value_names(folder, name, finder) for name in left)
        if not dry:
            with transaction(database):
                database.executemany(
                    "DELETE FROM Cache WHERE rowid = ?", [(rowid,) for rowid, _ in entries]
                )
                for name in (*left, *(str(name) for _, name in entries)):
                    if is_value_file(folder, name):
                        (folder / name).unlink(missing_ok=True)
    if named:
        kind = "article texts" if folder.name == ARTICLE_CACHE else "cached answers"
        yield TextMatches(kind=kind, path=path, count=named, action="deleted")
    if foreign:
        yield TextMatches(
            kind="cached answers", path=path, count=foreign, action="reported", to_do=_FOREIGN
        )
    if too_large:
        yield TextMatches(
            kind=UNREADABLE_FILE, path=path, count=too_large, action="reported", to_do=_TOO_LARGE
        )


def _scan_cache(
    database: StoreDatabase, folder: Path, finder: NameFinder
) -> tuple[list[tuple[int, str | None]], int, int]:
    """Return the entries that name somebody, and the number of foreign and of too large entries."""
    entries, foreign, too_large = list[tuple[int, str | None]](), 0, 0
    for row in database.execute("SELECT rowid, key, filename, value FROM Cache"):
        foreign += bool(row["filename"]) and not is_value_name(folder, str(row["filename"]))
        try:
            texts = [*_cache_texts(folder, row["key"], row["filename"], row["value"])]
        except TooLarge:
            too_large += 1
            continue
        if any(map(finder.finds, texts)):
            entries.append((row["rowid"], row["filename"]))
    return entries, foreign, too_large


def _find_left_values(database: StoreDatabase, folder: Path) -> list[str]:
    """Return the names of the files of values that have no entry."""
    rows = database.execute("SELECT filename FROM Cache WHERE filename IS NOT NULL")
    listed = {folder / str(name) for (name,) in rows}
    return sorted(name for name in find_value_files(folder) if folder / name not in listed)


def _value_names(folder: Path, name: str, finder: NameFinder) -> bool:
    """Return whether the file of a value names somebody, or may do so."""
    try:
        return any(map(finder.finds, _cache_texts(folder, "", name, "")))
    except TooLarge:
        return True


def _cache_texts(folder: Path, key: object, filename: object, value: object) -> Iterator[str]:
    yield _unpack(key)
    yield _unpack(value)
    if filename and is_value_file(folder, str(filename)):
        if (folder / str(filename)).stat().st_size > MOST_UNPACKED:
            raise TooLarge
        yield _unpack((folder / str(filename)).read_bytes())


def _unpack(value: object) -> str:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return decompress_within(value).decode(errors="replace")
    except TooLarge:
        raise
    except ValueError:
        return value.decode(errors="replace")


def erase_checkpoints(
    path: Path, finder: NameFinder, samples: set[str], *, dry: bool
) -> Iterator[TextMatches]:
    """Delete the checkpoints of samples that name somebody or are asked again.

    Args:
        path: checkpoints.db.
        finder: The names to look for.
        samples: The ids of samples that are asked again or removed.
        dry: Whether to change nothing.

    Raises:
        RunError: it cannot be used, is damaged, or another process uses it.
    """
    if not path.exists():
        return
    with open_database(path, dry=dry, known=CHECKPOINTS) as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        told = {"checkpoints": "checkpoint, metadata", "writes": "channel, value"}
        threads = set[str]()
        for table in told.keys() & tables:
            for row in database.execute(f"SELECT thread_id, {told[table]} FROM {table}"):
                bodies = [each.decode(errors="replace") if isinstance(each, bytes) else str(each)
                          for each in row]  # fmt: skip
                sample = row["thread_id"].split(":", 2)[-1]  # after the run and the graph's version
                if sample in samples or any(map(finder.finds, bodies)):
                    threads.add(row["thread_id"])
        if not dry:
            with transaction(database):
                for table in told.keys() & tables:
                    database.executemany(
                        f"DELETE FROM {table} WHERE thread_id = ?", [(each,) for each in threads]
                    )
    if threads:
        yield TextMatches(kind="samples in flight", path=path, count=len(threads), action="deleted")


_BATCH = 200
_BODIES = ("request", "response", "logprobs")
_WORDS = ("error", "tries")
_KEPT_COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "payers": {
        "calls": ("paid_by",),
        "reservations": ("payer",),
        "batches": ("payer",),
        "batch_requests": ("payer",),
    },
    "models": {
        "calls": ("model_returned",),
        "abilities": ("endpoint", "model", "value"),
        "batches": ("endpoint", "model", "status", "problem"),
    },
}
"""The location of each kind of name that the user chose."""
_KEPT_NOTES = {
    "payers": (
        "a payer is the name of your config and is kept so that totals stay correct: rename the "
        f"config, delete its runs and its answers ({', '.join(ASKED_FOLDERS)}), then run "
        "coreeval calls gc"
    ),
    "models": "the name of a model is your choice and is kept: delete the file to remove it",
}


_AT_PROVIDER = (
    "requests in a batch stay with the provider until the batch ends and its files are deleted: "
    "coreeval resume RUN waits for the end and deletes the files; coreeval resume RUN --live "
    "cancels the batch first (coreeval docs batches)"
)
_SENT = """
    SELECT id FROM batches WHERE folder = '' AND (state IN ('sending', 'sent') OR files <> '')
"""
"""The batches whose questions are still at a provider."""


def erase_calls(path: Path, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    """Blank the calls of a store that name somebody.

    Raises:
        RunLocked: another process uses the store.
        RunCorrupt: it is damaged, or has a value that is too large for a call.
        RunError: it cannot be used now.
    """
    open_calls(path).close()  # refuses a store of another version
    original = find_original(path)
    only_read = dry or original is not None
    with open_database(path, dry=only_read, known=CALL_SCHEMA.known) as database:
        texts = [
            row["sha256"]
            for row in database.execute("SELECT sha256, body FROM texts")
            if finder.finds(_text_of(row["body"]))
        ]
        keys = [
            row["key"]
            for row in database.execute("SELECT * FROM calls")
            if _call_names(row, finder, texts)
        ]
        found_waiting = [
            (row["payer"], row["key"], row["batch"])
            for row in database.execute(
                "SELECT payer, key, batch, body, answer, tries FROM batch_requests"
            )
            if _request_names(row, finder)
        ]
        waiting = [(payer, key) for payer, key, _ in found_waiting]
        sent = {row["id"] for row in database.execute(_SENT)}
        at_provider = sum(batch in sent for *_, batch in found_waiting)
        kept = {kind: _count_kept(database, kind, finder) for kind in _KEPT_COLUMNS}
        if original:
            if keys or texts or waiting:
                yield report_copy(path, original)
            return
        if not dry:
            for start in range(0, len(keys), _BATCH):
                with transaction(database):
                    for key in keys[start : start + _BATCH]:
                        _blank_call(database, key)
            with transaction(database):
                database.executemany("DELETE FROM texts WHERE sha256 = ?", [(t,) for t in texts])
                database.executemany(
                    "DELETE FROM batch_requests WHERE payer = ? AND key = ?", waiting
                )
    found = [
        TextMatches(kind="calls", path=path, count=len(keys), action="blanked"),
        TextMatches(kind="instructions", path=path, count=len(texts), action="deleted"),
        TextMatches(kind="questions of batches", path=path, count=len(waiting), action="deleted"),
        TextMatches(
            kind="questions at a provider",
            path=path,
            count=at_provider,
            action="reported",
            to_do=_AT_PROVIDER,
        ),
        *(
            TextMatches(
                kind=kind, path=path, count=count, action="reported", to_do=_KEPT_NOTES[kind]
            )
            for kind, count in kept.items()
        ),
    ]
    yield from (each for each in found if each.count)


def _count_kept(database: StoreDatabase, kind: str, finder: NameFinder) -> int:
    """Return the number of names of a kind that name somebody and stay."""
    places = [(t, each) for t, columns in _KEPT_COLUMNS[kind].items() for each in columns]
    queries = [f"SELECT {column} FROM {table}" for table, column in places]
    return sum(finder.finds(name) for (name,) in database.execute(" UNION ".join(queries)))


def _call_names(row: Mapping[str, Any], finder: NameFinder, texts: Collection[str]) -> bool:
    """Return whether a call names somebody, directly or through the instructions it refers to."""
    bodies = [_text_of(row[name]) for name in _BODIES if row[name]]
    if any(map(finder.finds, bodies)) or any(finder.finds(row[name] or "") for name in _WORDS):
        return True
    return any(sha in bodies[0] for sha in texts)


def _request_names(row: Mapping[str, Any], finder: NameFinder) -> bool:
    """Return whether a question of a batch, or its answer, names somebody."""
    bodies = [_unpack(row[name]) for name in ("body", "answer") if row[name]]
    return any(map(finder.finds, bodies)) or finder.finds(row["tries"])


def _text_of(body: bytes) -> str:
    """Return the text of a row; of a damaged row, the readable part."""
    try:
        return decompress(body)
    except TooLarge:
        raise
    except ValueError:
        return body.decode(errors="replace")


def _blank_call(database: StoreDatabase, key: str) -> None:
    (old,) = database.execute("SELECT * FROM calls WHERE key = ?", (key,)).fetchall()
    row, _ = encode_record(_strip_call(old))
    names = ", ".join(row)
    marks = ", ".join("?" * len(row))
    database.execute("DELETE FROM calls WHERE key = ?", (key,))
    database.execute(f"INSERT INTO calls ({names}) VALUES ({marks})", [*row.values()])


def _strip_call(row: Mapping[str, Any]) -> CallRecord:
    """Return a call reduced to its cost and the model that was asked."""
    kept = {name: row[name] for name in CallRecord.__dataclass_fields__ if name not in _BODIES}
    words: dict[str, Any] = {
        "key": secrets.token_hex(32),
        "request": canonical_json(_strip_request(_text_of(row["request"]))),
        "response": "",
        "valid": False,
        "error": ERASED,
        "tries": "",
    }
    return CallRecord(**kept | words)


def _strip_request(request: str) -> dict[str, object]:
    """Return a request reduced to its recipient, without its content."""
    try:
        asked = json.loads(request)
        whom = {name: asked[name] for name in ("provider", "endpoint", "model")}
    except (ValueError, KeyError, TypeError):
        whom = {"provider": "unknown", "endpoint": "", "model": "unknown"}
    return whom | {"parameters": {}, "schema": {}, "messages": [], "draw": 0}
