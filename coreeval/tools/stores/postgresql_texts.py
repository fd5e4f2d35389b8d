"""Encodes texts for PostgreSQL, which cannot store the character with code 0.

The character with code 1 is the escape: code 0 is stored as 1 1, and code 1 as 1 2. So every text
is restored unchanged, different texts stay different and in the same order, and a part of a text is
found if it is encoded too. JSON contains both as JSON escapes.
"""

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import Buffer

_LOW = re.compile("[\0\1]")
_STORED = re.compile("\1([\1\2])")
_LOW_IN_JSON = re.compile(r"\\u000([01])|\\.")
_STORED_IN_JSON = re.compile(r"\\u0001\\u000([12])|\\.")


def escape_text(text: str) -> str:
    """Return the stored form of a text."""
    if "\0" not in text and "\1" not in text:
        return text
    return _LOW.sub(lambda found: "\1" + chr(ord(found[0]) + 1), text)


def restore_text(stored: str) -> str:
    """Return the text of a stored form."""
    if "\1" not in stored:
        return stored
    return _STORED.sub(lambda found: chr(ord(found[1]) - 1), stored)


def dump_json(value: object) -> str:
    """Return a value as JSON with its texts in stored form."""
    told = json.dumps(value)
    if r"\u000" not in told:
        return told
    return _LOW_IN_JSON.sub(_escape_in_json, told)


def _escape_in_json(found: re.Match[str]) -> str:
    return rf"\u0001\u000{int(found[1]) + 1}" if found[1] else found[0]


def restore_json(stored: str) -> str:
    """Return the JSON of a stored form."""
    if r"\u0001" not in stored:
        return stored
    return _STORED_IN_JSON.sub(_restore_in_json, stored)


def _restore_in_json(found: re.Match[str]) -> str:
    return rf"\u000{int(found[1]) - 1}" if found[1] else found[0]


def load_json(stored: str | bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of stored JSON."""
    return json.loads(restore_json(stored if isinstance(stored, str) else stored.decode()))


def adapt_values(connection: "psycopg.Connection[Any]") -> None:
    """Convert values as SQLite does: sums are int or float, and texts may have any character."""
    number, text, dumper = _adapters()
    connection.adapters.register_loader("numeric", number)
    connection.adapters.register_loader("text", text)
    connection.adapters.register_dumper(str, dumper)


def keep_json_plain(connection: "psycopg.Connection[Any]") -> None:
    """Return JSON as text, as in SQLite."""
    from psycopg.adapt import Loader

    class JsonTextLoader(Loader):
        def load(self, data: "Buffer") -> str:
            return restore_json(bytes(data).decode())

    connection.adapters.register_loader("json", JsonTextLoader)


@cache
def _adapters() -> tuple[type, type, type]:
    from psycopg.adapt import Loader
    from psycopg.types.string import StrDumperUnknown

    class NumberLoader(Loader):
        def load(self, data: "Buffer") -> int | float:
            text = bytes(data)
            return int(text) if text.lstrip(b"-").isdigit() else float(text)

    class StoredTextLoader(Loader):
        def load(self, data: "Buffer") -> str:
            return restore_text(bytes(data).decode())

    class TextDumper(StrDumperUnknown):
        def dump(self, obj: str) -> "Buffer | None":
            return super().dump(escape_text(obj))

    return NumberLoader, StoredTextLoader, TextDumper
