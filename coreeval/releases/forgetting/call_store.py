"""Calls that name somebody: their words go, and what they cost stays counted.

A call gets another key and keeps its model, role, payer, tokens and price. So the sums of money
stay what they were, and a question that is put once more is asked anew.
"""

import json
import secrets
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from coreeval.agents.name_finder import NameFinder
from coreeval.releases.forgetting.databases import opened, transaction
from coreeval.releases.forgetting.found import Found
from coreeval.tools.stores.call_records import CallRecord, canonical_json, decompress, encode_record
from coreeval.tools.stores.call_store import open_calls

TAKEN = "taken_down"
"""What such a call has as its error: it is no answer any more."""
_AT_ONCE = 200
_BODIES = ("request", "response", "logprobs")
_WORDS = ("error", "tries")


def forget_calls(path: Path, finder: NameFinder, *, dry: bool) -> Iterator[Found]:
    """Blank the calls of a store that name somebody.

    Raises:
        RunLocked: another process uses the store.
        RunCorrupt: it is damaged.
        RunError: it cannot be used now.
    """
    open_calls(path).close()  # brings an older file to the newest tables
    with opened(path, dry=dry) as database:
        texts = [
            row["sha256"]
            for row in database.execute("SELECT sha256, body FROM texts")
            if finder.finds(_text_of(row["body"]))
        ]
        keys = [
            row["key"]
            for row in database.execute("SELECT * FROM calls")
            if _names(row, finder, texts)
        ]
        if not dry:
            for start in range(0, len(keys), _AT_ONCE):
                with transaction(database):
                    for key in keys[start : start + _AT_ONCE]:
                        _blank(database, key)
            with transaction(database):
                database.executemany("DELETE FROM texts WHERE sha256 = ?", [(t,) for t in texts])
    if keys:
        yield Found(kind="calls", path=path, count=len(keys), action="blanked")
    if texts:
        yield Found(kind="instructions", path=path, count=len(texts), action="deleted")


def _names(row: sqlite3.Row, finder: NameFinder, texts: Collection[str]) -> bool:
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


def _blank(database: sqlite3.Connection, key: str) -> None:
    (old,) = database.execute("SELECT * FROM calls WHERE key = ?", (key,)).fetchall()
    row, _ = encode_record(_without_words(old))
    names = ", ".join(row)
    marks = ", ".join("?" * len(row))
    database.execute("DELETE FROM calls WHERE key = ?", (key,))
    database.execute(f"INSERT INTO calls ({names}) VALUES ({marks})", [*row.values()])


def _without_words(row: sqlite3.Row) -> CallRecord:
    """Return a call as what it cost and whom it asked."""
    kept = {name: row[name] for name in CallRecord.__dataclass_fields__ if name not in _BODIES}
    words: dict[str, Any] = {
        "key": secrets.token_hex(32),
        "request": canonical_json(_asked(_text_of(row["request"]))),
        "response": "",
        "valid": False,
        "error": TAKEN,
        "tries": "",
    }
    return CallRecord(**kept | words)


def _asked(request: str) -> dict[str, object]:
    """Return who was asked, without what."""
    try:
        asked = json.loads(request)
        whom = {name: asked[name] for name in ("provider", "endpoint", "model")}
    except (ValueError, KeyError, TypeError):
        whom = {"provider": "unknown", "endpoint": "", "model": "unknown"}
    return whom | {"parameters": {}, "schema": {}, "messages": [], "draw": 0}
