"""Rows of calls.db whose checksum is of the first form, brought to today's.

Schema versions 1 and 2 summed the JSON of a call; later ones sum the row. Without this step such
rows would count as damaged, and be asked and paid for again.
"""

import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from coreeval.tools.stores.call_records import canonical_json, checksum
from coreeval.tools.stores.sqlite import Row

AT_ONCE = 500
"""Rows read and written together: a store may hold more than fits into memory."""
_LATER = {"method": "", "tries": "", "usd": None}
"""What the columns hold, in rows of the first form, that came after it."""
_READ = text(
    "SELECT key, draw, role, request, response, valid, error, prompt_tokens, cached_tokens, "
    "completion_tokens, model_returned, finish_reason, started_at, seconds, checksum, paid_by "
    "FROM calls WHERE key > :last AND method = '' AND tries = '' AND usd IS NULL "
    "ORDER BY key LIMIT :most"
)
_WRITE = text("UPDATE calls SET checksum = :checksum WHERE key = :key")


def renew(connection: Connection) -> None:
    """Give each row that matches a checksum of the first form one of today's.

    A row that matches neither stays as it is, and damaged. All is one transaction of the caller's.
    """
    last: object = ""
    while rows := _after(connection, last):
        renewed = [
            {"key": row["key"], "checksum": checksum(_without(row, "checksum") | _LATER)}
            for row in rows
            if _of_first_form(row)
        ]
        if renewed:
            connection.execute(_WRITE, renewed)
        last = rows[-1]["key"]


def _after(connection: Connection, last: object) -> Sequence[Row]:
    found = connection.execute(_READ, {"last": last, "most": AT_ONCE})
    return [dict(row) for row in found.mappings()]


def _of_first_form(row: Row) -> bool:
    said: str = row["checksum"]
    try:
        return said == _first_form(_without(row, "checksum"))
    except (zlib.error, ValueError, TypeError, KeyError):
        return False


def _first_form(values: Row) -> str:
    """Return the checksum of a call by the rule of schema versions 1 and 2."""
    told: dict[str, Any] = values | {
        "request": zlib.decompress(values["request"]).decode(),
        "response": zlib.decompress(values["response"]).decode(),
        "valid": {0: False, 1: True}[values["valid"]],
        "seconds": float(values["seconds"]),
    }
    if not told["paid_by"]:  # there were no payers in version 1
        del told["paid_by"]
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()


def _without(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}
