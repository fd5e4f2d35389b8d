"""A store of an older CoreEval is brought to this version, or is refused and left alone."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.stores.call_tables import CALL_SCHEMA
from coreeval.tools.stores.places import STORE_VERSIONS
from coreeval.tools.stores.run_triggers import RUN_SCHEMA
from coreeval.tools.stores.sqlite import Schema, open_store
from tests.tools.stores.released_stores import (
    NAMES,
    count_rows,
    read_tables,
    released_file,
    released_versions,
)

SCHEMAS = {"calls.db": CALL_SCHEMA, "run.db": RUN_SCHEMA}


def _create(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE things (id INTEGER, name TEXT)"))


def _add_colour(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE things ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'"))


def _add_index(connection: Connection) -> None:
    connection.execute(text("CREATE INDEX things_by_name ON things (name)"))


def _fail(connection: Connection) -> None:
    _add_index(connection)
    connection.execute(text("ALTER TABLE nowhere ADD COLUMN colour TEXT"))


FIRST = Schema(version=1, create=_create)
LATER = (
    "CREATE TABLE things (id INTEGER, name TEXT, colour TEXT NOT NULL DEFAULT 'red')",
    "CREATE INDEX things_by_name ON things (name)",
)
"""What the steps leave."""
THIRD = Schema(version=3, create=_create, migrations={1: _add_colour, 2: _add_index}, also=LATER)
BROKEN = Schema(version=3, create=_create, migrations={1: _add_colour, 2: _fail})
GAP = Schema(version=3, create=_create, migrations={2: _add_index})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of version 1 with one row."""
    path = tmp_path / "a.db"
    open_store(path, FIRST, what="a.db").dispose()
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO things VALUES (1, 'one')")
        database.commit()
    return path


def _content(path: Path) -> tuple[list[object], list[object]]:
    with closing(sqlite3.connect(path)) as database:
        versions = [row[0] for row in database.execute("SELECT version FROM schema_version")]
        return versions, database.execute("SELECT * FROM things").fetchall()


def test_an_older_store_gets_all_steps_and_keeps_its_rows(store: Path) -> None:
    for _ in range(2):
        open_store(store, THIRD, what="a.db").dispose()
        assert _content(store) == ([3], [(1, "one", "red")])
    assert "things_by_name" in read_tables(store)
    with pytest.raises(
        RunCorrupt, match="schema version 3; this version of CoreEval supports only 1"
    ) as caught:
        open_store(store, FIRST, what="a.db")
    assert caught.value.hint == "install a newer CoreEval"


def test_a_step_that_fails_leaves_the_store_as_it_was(store: Path) -> None:
    before = read_tables(store)
    with pytest.raises(RunError, match="no such table: nowhere"):
        open_store(store, BROKEN, what="a.db")
    assert read_tables(store) == before
    assert _content(store) == ([1], [(1, "one")])


def test_a_store_that_no_steps_lead_from_is_refused(store: Path) -> None:
    with pytest.raises(
        RunCorrupt, match="schema version 1; this version of CoreEval supports only 3"
    ) as caught:
        open_store(store, GAP, what="a.db")
    assert (
        "a pre-release version of CoreEval created it; move it away and start again"
        in caught.value.hint
    )
    assert _content(store) == ([1], [(1, "one")])


def test_two_that_open_it_at_once_make_the_steps_once(store: Path) -> None:
    threads = [
        threading.Thread(target=lambda: open_store(store, THIRD, what="a.db").dispose())
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _content(store) == ([3], [(1, "one", "red")])


RELEASED = [(name, version) for name in NAMES for version in released_versions(name)]


@pytest.mark.parametrize(("name", "version"), RELEASED)
def test_a_store_of_each_released_version_is_opened_with_its_rows(
    tmp_path: Path, name: str, version: int
) -> None:
    old, new = tmp_path / name, tmp_path / f"new_{name}"
    with closing(sqlite3.connect(old)) as database:
        database.executescript(released_file(name, version).read_text(encoding="utf-8"))
    rows = count_rows(old)
    assert sum(rows.values()) >= 2
    for path in (old, new):
        open_store(path, SCHEMAS[name], what=NAMES[name]).dispose()
    assert read_tables(old) == read_tables(new)
    assert rows.items() <= count_rows(old).items()


@pytest.mark.parametrize("name", NAMES)
def test_tables_do_not_change_without_a_new_version(tmp_path: Path, name: str) -> None:
    """If it fails: raise the version, write the step from it, and the file of the new one."""
    current = STORE_VERSIONS[NAMES[name]]
    assert current == released_versions(name)[-1]
    released, new = tmp_path / "released.db", tmp_path / name
    with closing(sqlite3.connect(released)) as database:
        database.executescript(released_file(name, current).read_text(encoding="utf-8"))
    open_store(new, SCHEMAS[name], what=NAMES[name]).dispose()
    assert read_tables(released) == read_tables(new)
