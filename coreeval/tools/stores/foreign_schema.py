"""Refuses SQLite files whose tables, views or triggers CoreEval does not create.

A file from somebody else may bring a schema of its own: a view of endless rows, a column of
computed gigabytes, a trigger that changes what is written. So the schema is compared before the
first query.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coreeval.errors import RunCorrupt
from coreeval.tools.files import MOST_UNPACKED

SEARCH_INDEX: Final = "sought_index"
"""The only virtual table that CoreEval creates (run_triggers.py)."""
_ENTRIES = "SELECT type, name, sql FROM main.sqlite_master WHERE sql IS NOT NULL"
"""SQLite creates the indexes without a statement from the table's own."""
_NAME = r"[\"'`\[]?(\w+)[\"'`\]]?"
_TABLE = re.compile(rf"CREATE TABLE {_NAME} ?\(")
_INDEX = re.compile(rf"CREATE (?:UNIQUE )?INDEX {_NAME} ON {_NAME} ?\({_NAME}(?:, ?{_NAME})*\)")
_COMPUTES = re.compile(r"\b(?:AS|CHECK|COLLATE|CONFLICT)\b|\bDEFAULT ?\(|--|/\*", re.IGNORECASE)
_NOT_READ = ("CREATE TRIGGER ", f"CREATE VIRTUAL TABLE {SEARCH_INDEX} ")
_OF_SQLITE = frozenset({"sqlite_stat1", "sqlite_stat4", "sqlite_sequence"})
"""The tables that ANALYZE adds, and the one of columns that count up."""
_MOST_NAME = 60
"""The most characters of a name in a message."""


@dataclass(frozen=True, kw_only=True)
class KnownSchema:
    """What CoreEval, or a library that it uses, creates in a database."""

    statements: frozenset[str] = frozenset()
    """Statements, as from `normalise_statement`."""
    tables: frozenset[str] = frozenset()
    """The names of other tables, which may have any plain columns and indexes."""
    is_open: bool = False
    """Whether there may be any plain table, and triggers, which do not run if a connection only
    reads; so stores of newer versions can be read."""


READ_ONLY: Final = KnownSchema(is_open=True)
"""For a connection that only reads."""
CHECKPOINTS: Final = KnownSchema(tables=frozenset({"checkpoints", "writes"}))
"""What LangGraph creates in checkpoints.db."""


def limit_values(connection: sqlite3.Connection) -> None:
    """Limit the size of each value, so that a small file cannot fill the memory."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_UNPACKED)


def refuse_foreign_schema(
    execute: Callable[[str], Iterable[Any]],
    path: Path,
    known: KnownSchema,
    *,
    hint: str,
) -> None:
    """Refuse a database with a table, view or trigger that CoreEval does not create.

    The statements are compared, not the names and types beside them, which SQLite does not read.

    Args:
        execute: Runs a statement in the database.
        path: The file, to show to users.
        known: What CoreEval creates in it.
        hint: Advice for users.

    Raises:
        RunCorrupt: it has such a table, view or trigger.
    """
    for kind, name, sql in execute(_ENTRIES):
        statement = normalise_statement(str(sql))
        if statement in known.statements or _is_plain(statement, known):
            continue
        raise RunCorrupt(
            f"{path.name} contains a {str(kind)[:_MOST_NAME]} of another program, which CoreEval "
            f"does not create: {str(name)[:_MOST_NAME]!r}; nothing was read from the file",
            where=str(path),
            hint=hint,
        )


def normalise_statement(sql: str) -> str:
    """Return a statement on one line, as it is compared."""
    return " ".join(sql.split())


def _is_plain(statement: str, known: KnownSchema) -> bool:
    """Return whether a statement creates an allowed table without computed values, or its index."""
    if known.is_open and statement.startswith(_NOT_READ):
        return True
    if index := _INDEX.fullmatch(statement):
        return known.is_open or index[2] in known.tables
    table = _TABLE.match(statement)
    if not table or _COMPUTES.search(statement):
        return False
    return known.is_open or table[1] in known.tables or table[1] in _OF_SQLITE
