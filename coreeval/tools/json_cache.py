"""A cache on disk that stores JSON, never pickle."""

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

import diskcache
from diskcache.core import DEFAULT_SETTINGS, METADATA, MODE_BINARY, MODE_RAW
from pydantic import JsonValue

from coreeval.errors import RunError
from coreeval.tools.files import MOST_UNPACKED, decompress_within, is_plain_file, leads_out
from coreeval.tools.stores.foreign_schema import KnownSchema, refuse_foreign_schema
from coreeval.tools.stores.heartbeat import OPENING, refuse_side_files

MOST_BYTES = 1 << 30
"""The size in bytes above which the least recently stored values are removed (own choice: 1
GiB)."""
_VALUE_FILE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{28}\.val")
"""The name that diskcache gives a value's file. A cache may be from somebody else, or its database
may be in a folder of the user's, so other files are neither read nor deleted."""
_DAMAGE = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
"""SQLite's codes for a database that is damaged, or has other tables than a cache's."""
_COUNTED = (
    ("count_insert", "INSERT", "+ 1"),
    ("count_delete", "DELETE", "- 1"),
    ("size_insert", "INSERT", "+ NEW.size"),
    ("size_update", "UPDATE", "+ NEW.size - OLD.size"),
    ("size_delete", "DELETE", "- OLD.size"),
)
CACHE_SCHEMA = KnownSchema(
    statements=frozenset(
        f"CREATE TRIGGER Settings_{name} AFTER {when} ON Cache FOR EACH ROW BEGIN UPDATE Settings "
        f'SET value = value {change} WHERE key = "{name.partition("_")[0]}"; END'
        for name, when, change in _COUNTED
    ),
    tables=frozenset({"Settings", "Cache"}),
)
"""What diskcache creates in cache.db."""
_SETTINGS = {**DEFAULT_SETTINGS, "size_limit": MOST_BYTES}
_UNREADABLE = (ValueError, OSError, sqlite3.DatabaseError, diskcache.Timeout)


class _JsonOnly(diskcache.JSONDisk):  # type: ignore[misc]  # the library has no types
    """A disk that stores keys and values as JSON; it did not write entries marked as pickled.

    diskcache, including JSONDisk, unpickles such entries, which runs code in them (CVE-2025-69872).
    """

    def get(self, key: bytes, raw: bool) -> object:
        """Return the value of a key."""
        if not raw:
            raise ValueError("a key of the cache is pickled")
        return json.loads(decompress_within(key))

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> object:
        """Return a value from the row, or from a file in the cache's own folder."""
        if mode not in (MODE_RAW, MODE_BINARY):
            raise ValueError("a value of the cache is neither bytes nor a file of bytes")
        if filename and leads_out(Path(self._directory), filename):
            raise ValueError("a value of the cache is a file outside of it")
        if filename and (Path(self._directory) / filename).stat().st_size > MOST_UNPACKED:
            raise ValueError("a value of the cache is too large")
        packed = diskcache.Disk.fetch(self, mode, filename, value, read)
        if not isinstance(packed, bytes):
            raise ValueError("a value of the cache is not packed")
        return json.loads(decompress_within(packed))

    def remove(self, file_path: str) -> None:
        """Delete the file of a removed entry if it is in the cache's own folder.

        diskcache deletes the file of each entry that is replaced or expired at the path that the
        row names, and then the folders above it if they are empty.
        """
        folder = Path(self._directory)
        if is_value_file(folder, str(file_path)):
            with suppress(OSError):  # another process deleted it first
                (folder / str(file_path)).unlink()

    def _write(
        self, full_path: str, iterator: object, mode: str, encoding: str | None = None
    ) -> int:
        """Write the file of an entry without following a link."""
        folder = Path(self._directory)
        if leads_out(folder, os.path.relpath(full_path, folder)):
            raise OSError(f"a folder of the cache is a link: {full_path}")
        written: int = super()._write(full_path, iterator, mode, encoding)
        return written


def is_value_name(folder: Path, name: str) -> bool:
    """Return whether a cache may give a file this name, which no link in its folder leads from."""
    posix = name.replace(os.sep, "/")
    return bool(_VALUE_FILE.fullmatch(posix)) and not leads_out(folder, posix)


def is_value_file(folder: Path, name: str) -> bool:
    """Return whether a cache's folder has a file of a large value of this name."""
    return is_value_name(folder, name) and is_plain_file(folder, name)


def find_value_files(folder: Path) -> Iterator[str]:
    """Yield the names of the files of large values in a cache's folder."""
    for path in folder.glob("??/??/*.val"):
        if is_value_file(folder, name := path.relative_to(folder).as_posix()):
            yield name


class JsonCache:
    """JSON values by key, shared by processes; an unreadable value counts as missing.

    Args:
        folder: The cache's folder; created if needed, and recreated if it is damaged.

    Raises:
        RunError: the cache cannot be used now, as on a full disk; nothing in it was deleted.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._cache = _open(folder)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
                raise RunError(
                    f"a cache cannot be used: {error}", where=str(folder), hint=OPENING
                ) from None
            (folder / diskcache.core.DBNAME).unlink()
            for name in find_value_files(folder):  # without the database, nothing can read them
                (folder / name).unlink(missing_ok=True)
            self._cache = _open(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, key: str) -> JsonValue:
        """Return a value; None if it is missing or was stored by a clock ahead of this one."""
        try:
            value, until, kept_s = self._cache.get(key, expire_time=True, tag=True)
            if until is not None and kept_s is not None and until - time.time() > float(kept_s):
                return None
        except _UNREADABLE:
            return None
        found: JsonValue = value
        return found

    def put(self, key: str, value: JsonValue, *, expire_s: float) -> bool:
        """Store a value for a while; return False if it could not be stored, as on a full disk."""
        try:
            return bool(self._cache.set(key, value, expire=expire_s, tag=str(expire_s)))
        except _UNREADABLE:
            return False

    def close(self) -> None:
        """Close the cache's file."""
        self._cache.close()


def _open(folder: Path) -> diskcache.Cache:
    database = folder / diskcache.core.DBNAME
    if database.is_symlink():  # diskcache would write its tables into the link's target
        database.unlink()
    refuse_side_files(database)
    if database.is_file():
        _check_database(database)
    return diskcache.Cache(str(folder), disk=_JsonOnly, size_limit=MOST_BYTES)


def _check_database(path: Path) -> None:
    """Refuse a database with a schema of its own, and delete settings that this class never makes.

    diskcache sets the attribute, or the pragma, that each row of its settings names.

    Raises:
        RunCorrupt: it has a schema of its own.
    """
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as database:
        hint = "delete its folder: the entries will be fetched again"
        refuse_foreign_schema(database.execute, path, CACHE_SCHEMA, hint=hint)
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'").fetchone():
            return
        rows = database.execute("SELECT rowid, key, value FROM Settings").fetchall()
        odd = [(row,) for row, key, value in rows if not _is_setting(key, value)]
        if odd:
            database.executemany("DELETE FROM Settings WHERE rowid = ?", odd)


def _is_setting(key: object, value: object) -> bool:
    return _SETTINGS.get(key) == value or (key in METADATA and type(value) is int)
