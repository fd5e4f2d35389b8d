"""Calls, cache entries and samples in flight that name a person: their words go, their cost stays.

A call gets another key and keeps its model, role, payer, tokens and price. So the sums of money
stay what they were, and a question that is put once more is asked anew. Entries of a cache, and
places of samples in flight, may be lost and asked again.
"""

import json
import secrets
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from coreeval.agents.name_finder import NameFinder
from coreeval.releases.takedown.databases import FoundTexts, open_database, transaction
from coreeval.tools.links import is_plain_file, leads_out
from coreeval.tools.stores.call_records import CallRecord, canonical_json, decompress, encode_record
from coreeval.tools.stores.call_store import open_calls

CACHE_DATABASE = "cache.db"
_FOREIGN = (
    "its list names files outside of its folder, which CoreEval never writes: those files were "
    "neither read nor deleted. Delete the cache: what is in it is asked again"
)


def erase_cache_entries(folder: Path, finder: NameFinder, *, dry: bool) -> Iterator[FoundTexts]:
    """Delete the entries of a cache (tools/json_cache.py) that name somebody.

    Somebody else may have made the cache: only files in its folder are read and deleted.

    Raises:
        RunError: it cannot be used, is damaged, or another process uses it.
    """
    path = folder / CACHE_DATABASE
    with open_database(path, dry=dry) as database:
        rows = database.execute("SELECT rowid, key, filename, value FROM Cache").fetchall()
        entries = [
            (row["rowid"], row["filename"])
            for row in rows
            if any(
                map(finder.finds, _cache_texts(folder, row["key"], row["filename"], row["value"]))
            )
        ]
        foreign = sum(leads_out(folder, str(row["filename"])) for row in rows if row["filename"])
        if not dry:
            with transaction(database):
                database.executemany(
                    "DELETE FROM Cache WHERE rowid = ?", [(rowid,) for rowid, _ in entries]
                )
                for _, name in entries:
                    if name and is_plain_file(folder, str(name)):
                        (folder / str(name)).unlink(missing_ok=True)
    if entries:
        yield FoundTexts(kind="cached answers", path=path, count=len(entries), action="deleted")
    if foreign:
        yield FoundTexts(
            kind="cached answers", path=path, count=foreign, action="reported", to_do=_FOREIGN
        )


def _cache_texts(folder: Path, key: object, filename: object, value: object) -> Iterator[str]:
    yield _unpack(key)
    yield _unpack(value)
    if filename and is_plain_file(folder, str(filename)):
        yield _unpack((folder / str(filename)).read_bytes())


def _unpack(value: object) -> str:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return zlib.decompress(value).decode(errors="replace")
    except zlib.error:
        return value.decode(errors="replace")


def erase_checkpoints(
    path: Path, finder: NameFinder, samples: set[str], *, dry: bool
) -> Iterator[FoundTexts]:
    """Delete the places of samples that name somebody, or are asked anew.

    Args:
        path: checkpoints.db.
        finder: Whom to look for.
        samples: Ids of the samples that are asked anew or no more.
        dry: Whether only to look.

    Raises:
        RunError: it cannot be used, is damaged, or another process uses it.
    """
    if not path.exists():
        return
    with open_database(path, dry=dry) as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        told = {"checkpoints": "checkpoint, metadata", "writes": "channel, value"}
        threads = set[str]()
        for table in told.keys() & tables:
            for row in database.execute(f"SELECT thread_id, {told[table]} FROM {table}"):
                bodies = [each.decode(errors="replace") if isinstance(each, bytes) else str(each)
                          for each in row]  # fmt: skip
                if row["thread_id"] in samples or any(map(finder.finds, bodies)):
                    threads.add(row["thread_id"])
        if not dry:
            with transaction(database):
                for table in told.keys() & tables:
                    database.executemany(
                        f"DELETE FROM {table} WHERE thread_id = ?", [(each,) for each in threads]
                    )
    if threads:
        yield FoundTexts(kind="samples in flight", path=path, count=len(threads), action="deleted")


ERASED = "taken_down"
"""What such a call has as its error: it is no answer any more."""
_BATCH = 200
_BODIES = ("request", "response", "logprobs")
_WORDS = ("error", "tries")


def erase_calls(path: Path, finder: NameFinder, *, dry: bool) -> Iterator[FoundTexts]:
    """Blank the calls of a store that name somebody.

    Raises:
        RunLocked: another process uses the store.
        RunCorrupt: it is damaged.
        RunError: it cannot be used now.
    """
    open_calls(path).close()  # brings an older file to the newest tables
    with open_database(path, dry=dry) as database:
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
        if not dry:
            for start in range(0, len(keys), _BATCH):
                with transaction(database):
                    for key in keys[start : start + _BATCH]:
                        _blank_call(database, key)
            with transaction(database):
                database.executemany("DELETE FROM texts WHERE sha256 = ?", [(t,) for t in texts])
    if keys:
        yield FoundTexts(kind="calls", path=path, count=len(keys), action="blanked")
    if texts:
        yield FoundTexts(kind="instructions", path=path, count=len(texts), action="deleted")


def _call_names(row: sqlite3.Row, finder: NameFinder, texts: Collection[str]) -> bool:
    """Tell whether a call names somebody, itself or by the instructions that it refers to."""
    bodies = [_text_of(row[name]) for name in _BODIES if row[name]]
    if any(map(finder.finds, bodies)) or any(finder.finds(row[name] or "") for name in _WORDS):
        return True
    return any(sha in bodies[0] for sha in texts)


def _text_of(body: bytes) -> str:
    """Return the text of a row; of a damaged one what can be read."""
    try:
        return decompress(body)
    except ValueError:
        return body.decode(errors="replace")


def _blank_call(database: sqlite3.Connection, key: str) -> None:
    (old,) = database.execute("SELECT * FROM calls WHERE key = ?", (key,)).fetchall()
    row, _ = encode_record(_strip_call(old))
    names = ", ".join(row)
    marks = ", ".join("?" * len(row))
    database.execute("DELETE FROM calls WHERE key = ?", (key,))
    database.execute(f"INSERT INTO calls ({names}) VALUES ({marks})", [*row.values()])


def _strip_call(row: sqlite3.Row) -> CallRecord:
    """Return a call as what it cost and whom it asked."""
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
    """Return who was asked, without what."""
    try:
        asked = json.loads(request)
        whom = {name: asked[name] for name in ("provider", "endpoint", "model")}
    except (ValueError, KeyError, TypeError):
        whom = {"provider": "unknown", "endpoint": "", "model": "unknown"}
    return whom | {"parameters": {}, "schema": {}, "messages": [], "draw": 0}
