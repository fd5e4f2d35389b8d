"""The tables of each version of a store that a release had, with a row of each table.

`python -m tests.tools.stores.released_stores RUN/run.db WORKSPACE/calls.db` writes the files of
the current versions, with rows of a finished run. Files of older versions are never changed: users
have such stores.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from coreeval.tools.stores.places import STORE_VERSIONS

FOLDER = Path(__file__).with_name("released")
NAMES = {"calls.db": "the call store", "run.db": "run.db"}
"""The name for users of the store in each file."""


def released_file(store: str, version: int) -> Path:
    """Return the file with the statements that make a store of a version."""
    return FOLDER / f"{store.removesuffix('.db')}_{version}.sql"


def released_versions(store: str) -> list[int]:
    """Return the versions of a store that there are files of, in order."""
    found = FOLDER.glob(f"{store.removesuffix('.db')}_*.sql")
    return sorted(int(path.stem.rpartition("_")[2]) for path in found)


def read_tables(path: Path) -> dict[str, str]:
    """Return the statement that made each table, index and trigger of a store, by its name."""
    with closing(sqlite3.connect(path)) as database:
        return dict(
            database.execute(
                "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
            )
        )


def count_rows(path: Path) -> dict[str, int]:
    """Return how many rows each table of a store has, but for `schema_version`."""
    with closing(sqlite3.connect(path)) as database:
        return {name: _count(database, name) for name in _tables(database)}


def _tables(database: sqlite3.Connection) -> list[str]:
    """Return the tables, without those that SQLite keeps for a search index."""
    rows = database.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite_%' AND name <> 'schema_version' ORDER BY name"
    )
    return [name for (name,) in rows]


def _count(database: sqlite3.Connection, table: str) -> int:
    (count,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    return int(count)


def _statements(path: Path) -> Iterator[str]:
    """Yield what makes the store of a file: tables and indexes, a row of each table, triggers."""
    with closing(sqlite3.connect(path)) as database:
        kinds = "type IN ('table', 'index')", "type IN ('trigger', 'view')"
        tables, triggers = (_definitions(database, kind) for kind in kinds)
        yield from tables
        for table in ["schema_version", *_tables(database)]:
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            values = " || ', ' || ".join(f'quote("{column}")' for column in columns)
            first = database.execute(f'SELECT {values} FROM "{table}" LIMIT 1').fetchone()
            if first:
                yield f'INSERT INTO "{table}" VALUES ({first[0]})'
        yield from triggers


def _definitions(database: sqlite3.Connection, kind: str) -> list[str]:
    rows = database.execute(
        f"SELECT sql FROM sqlite_master WHERE {kind} AND sql IS NOT NULL AND name NOT IN"
        " (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid"
    )
    return [sql for (sql,) in rows]


def main(places: list[Path]) -> None:
    """Write the files of the current versions from stores that a finished run used."""
    for place in places:
        written = released_file(place.name, STORE_VERSIONS[NAMES[place.name]])
        written.write_text("".join(f"{one};\n" for one in _statements(place)), encoding="utf-8")


if __name__ == "__main__":
    main([Path(named) for named in sys.argv[1:]])
