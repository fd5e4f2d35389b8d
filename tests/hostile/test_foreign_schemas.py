"""A SQLite file from somebody else with views, triggers, columns or tables of its own, or with a
journal, pipe or link beside it."""

import asyncio
import os
import re
import shutil
import sqlite3
import struct
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.agents.name_finder import NameFinder
from coreeval.errors import KnowledgeError, RunCorrupt
from coreeval.graph.checkpoints import open_checkpoints
from coreeval.releases.takedown import documents
from coreeval.releases.takedown.calls import (
    erase_cache_entries,
    erase_checkpoints,
    open_database,
)
from coreeval.releases.takedown.run_rows import find_matches
from coreeval.tools.articles.file_index import FileIndex
from coreeval.tools.clock import utc_now
from coreeval.tools.gdelt.index.store_catalog import open_catalog
from coreeval.tools.gdelt.sync.store_ledger import open_ledger
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.heartbeat import SIDE_FILES, open_readonly
from coreeval.tools.stores.run_store import RunStore

FINDER = NameFinder(["Jane Quill Example"])
TRIGGER = "CREATE TRIGGER theirs AFTER INSERT ON {table} BEGIN UPDATE {table} SET {column} = 1; END"
COPY = "CREATE TABLE theirs AS SELECT * FROM {table}"
VIEW = "CREATE VIEW theirs AS SELECT * FROM {table}"
COMPUTED = "ALTER TABLE {table} ADD COLUMN theirs AS (1)"
SCHEMAS = (TRIGGER, COPY, VIEW, COMPUTED)


async def _use_checkpoints(path: Path) -> None:
    async with open_checkpoints(path):
        pass


def _use_ledger(path: Path) -> None:
    with open_ledger(path):
        pass


def _use_catalog(path: Path) -> None:
    if not path.exists():
        _use_ledger(path)
    with open_catalog(path.parent, create=True):
        pass


FILES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "run.db": (lambda path: RunStore.open(path, now=utc_now).close(), "predictions", "answer"),
    "calls.db": (lambda path: open_calls(path).close(), "calls", "draw"),
    "checkpoints.db": (lambda path: asyncio.run(_use_checkpoints(path)), "checkpoints", "type"),
    "cache.db": (lambda path: JsonCache(path.parent).close(), "Settings", "value"),
    "store.db": (_use_catalog, "segments", "day"),
    "index.db": (lambda path: FileIndex(path).find([], []), "files", "state"),
}
"""How each file is opened, a table of it and a column."""


def _search(path: Path, *, dry: bool) -> None:
    with open_database(path, dry=dry, known=None) as database:
        database.execute("SELECT count(*) FROM sqlite_master")


OPENERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    **{name: (name, use) for name, (use, *_) in FILES.items()},
    "ledger": ("store.db", _use_ledger),
    "reader": ("run.db", lambda path: _read(path)),
    "dry takedown": ("run.db", lambda path: _search(path, dry=True)),
    "takedown": ("run.db", lambda path: _search(path, dry=False)),
}
"""The file and the function for each way in which CoreEval opens one."""
OPENING_MODULES = {
    "graph/checkpoints.py",
    "releases/takedown/calls.py",
    "tools/articles/file_index.py",
    "tools/gdelt/index/store_catalog.py",
    "tools/json_cache.py",
    "tools/stores/heartbeat.py",
    "tools/stores/sqlite.py",
}
"""The modules of `OPENERS`."""
PACKAGE = Path(__file__).parents[2] / "coreeval"
_OPENS = re.compile(r'sqlite3\.connect\((?!":memory:")|aiosqlite\.connect\(|diskcache\.Cache\(')


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_schema_of_its_own_is_refused(tmp_path: Path, name: str) -> None:
    use, table, column = FILES[name]
    for number, schema in enumerate(SCHEMAS):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        use(path)
        _change(path, schema.format(table=table, column=column))
        with pytest.raises(RunCorrupt, match="of another program, which CoreEval does not create"):
            use(path)
        if name == "store.db":
            with pytest.raises(RunCorrupt, match="of another program"):
                _use_ledger(path)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_analysed_is_still_used(tmp_path: Path, name: str) -> None:
    use, *_ = FILES[name]
    use(tmp_path / name)
    _change(tmp_path / name, "ANALYZE")
    use(tmp_path / name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("answer VARCHAR NOT NULL", "answer VARCHAR COLLATE NOCASE NOT NULL"),
        ("answer VARCHAR NOT NULL", "answer VARCHAR NOT NULL ON CONFLICT IGNORE"),
        ("answer VARCHAR NOT NULL", "answer VARCHAR NOT NULL CHECK (answer <> '')"),
    ],
)
def test_the_columns_of_a_run_are_those_that_it_was_created_with(
    tmp_path: Path, old: str, new: str
) -> None:
    path = tmp_path / "run.db"
    FILES["run.db"][0](path)
    _change(path, f"UPDATE sqlite_master SET sql = replace(sql, '{old}', {_quote(new)})")
    with pytest.raises(RunCorrupt, match=r"a table of another program.*'predictions'"):
        FILES["run.db"][0](path)


def test_a_reader_refuses_what_is_computed_and_reads_stores_of_newer_versions(
    tmp_path: Path,
) -> None:
    """A reader fires no trigger; a newer version may have more tables and triggers."""
    for number, schema in enumerate(SCHEMAS):
        path = tmp_path / f"{number}.db"
        FILES["run.db"][0](path)
        _change(path, schema.format(table="samples", column="label"))
        if schema in (TRIGGER, COPY):
            assert _read(path) == 0
        else:
            with pytest.raises(RunCorrupt, match="of another program"):
                _read(path)


def test_values_that_fill_the_memory_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    FILES["run.db"][0](path)
    _change(path, "INSERT INTO bad_rows VALUES (1, 'f', 1, 'r', zeroblob(70000000))")
    with pytest.raises(RunCorrupt, match="too big"), open_readonly(path, what="run.db") as store:
        store.execute("SELECT text FROM bad_rows").fetchall()


@pytest.mark.parametrize("schema", [TRIGGER, COPY])
def test_takedown_says_that_it_cannot_search_such_a_file(tmp_path: Path, schema: str) -> None:
    for name in ("run.db", "cache.db", "checkpoints.db"):
        use, table, column = FILES[name]
        use(tmp_path / name)
        _change(tmp_path / name, schema.format(table=table, column=column))
    with pytest.raises(RunCorrupt, match="of another program"):
        find_matches(tmp_path / "run.db", FINDER)
    with pytest.raises(RunCorrupt, match="of another program"):
        list(erase_cache_entries(tmp_path, FINDER, dry=False))
    with pytest.raises(RunCorrupt, match="of another program"):
        list(erase_checkpoints(tmp_path / "checkpoints.db", FINDER, set(), dry=False))


def test_a_database_of_another_program_is_searched_without_its_computed_columns(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, said TEXT)")
        database.execute("INSERT INTO t VALUES (1, 'said Jane Quill Example')")
        database.execute("INSERT INTO t VALUES (2, 'nothing')")
        database.execute("ALTER TABLE t ADD COLUMN x AS (printf('%.*c', 60000000, 'x'))")
    began = time.monotonic()
    assert documents.count_matches(path, FINDER) == 1
    assert time.monotonic() - began < 1


@pytest.mark.timeout(60)
def test_the_search_of_a_database_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that share one default are many more bytes than the file."""
    monkeypatch.setattr(documents, "_MOST_S", 0.3)
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (n INTEGER)")
        database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(10_000)])
        database.execute(f"ALTER TABLE t ADD COLUMN x TEXT DEFAULT '{'x' * 900_000}'")
    with pytest.raises(ValueError, match="searching it takes more than"):
        documents.count_matches(path, FINDER)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("_directory", "{other}"),
        ("_local", "x"),
        ("directory", "x"),
        ("eviction_policy", "x"),
        ("disk_x", 1),
        ("size", "x"),
        ("sqlite_user_version", 5),
        (b"sqlite_x", 1),
    ],
)
def test_a_cache_does_not_name_attributes_of_the_library(
    tmp_path: Path, key: str | bytes, value: str | int
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder, said in ((mine, "mine"), (other, "theirs")):
        with JsonCache(folder) as cache:
            assert cache.put("key", said, expire_s=60)
    with closing(sqlite3.connect(mine / "cache.db")) as database, database:
        row = (key, value.format(other=other) if isinstance(value, str) else value)
        database.execute("INSERT OR REPLACE INTO Settings VALUES (?, ?)", row)
    got = list[object]()

    def use() -> None:
        got.append((cache.get("key"), cache.put("big", "x" * 100_000, expire_s=60)))

    with JsonCache(mine) as cache:
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert got == [("mine", True)]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("way", OPENERS)
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_journal_beside_a_database_does_not_delete_files(
    tmp_path: Path, way: str, mode: str
) -> None:
    """SQLite would delete the file that it names, without an error."""
    name, use = OPENERS[way]
    path, mine = tmp_path / "theirs" / name, tmp_path / "thesis.txt"
    path.parent.mkdir()
    FILES[name][0](path)
    mine.write_text("my thesis")
    _plant_journal(path, mine, mode)
    with pytest.raises(RunCorrupt, match="-journal names a file that SQLite would delete") as told:
        use(path)
    assert mine.read_text() == "my thesis"
    assert str(told.value.where) == f"{path}-journal"
    path.with_name(f"{name}-journal").unlink()
    use(path)


def test_a_journal_is_found_beside_a_database_that_a_link_leads_to(tmp_path: Path) -> None:
    path, link, mine = (tmp_path / name for name in ("a.db", "calls.db", "thesis.txt"))
    FILES["calls.db"][0](path)
    link.symlink_to(path)
    mine.touch()
    _plant_journal(path, mine, "wal")
    with pytest.raises(RunCorrupt, match="SQLite would delete"):
        FILES["calls.db"][0](link)
    assert mine.exists()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("way", OPENERS)
@pytest.mark.parametrize("end", SIDE_FILES)
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_pipe_or_link_beside_a_database_is_refused(
    tmp_path: Path, way: str, end: str, kind: str
) -> None:
    name, use = OPENERS[way]
    path, mine = tmp_path / "theirs" / name, tmp_path / "thesis.txt"
    path.parent.mkdir()
    FILES[name][0](path)
    mine.write_text("my thesis")
    beside = path.with_name(f"{name}{end}")
    beside.unlink(missing_ok=True)
    os.mkfifo(beside) if kind == "pipe" else beside.symlink_to(mine)
    with pytest.raises((RunCorrupt, KnowledgeError), match="which CoreEval never creates"):
        use(path)
    assert mine.read_text() == "my thesis"


def test_an_interrupted_change_is_still_undone(tmp_path: Path) -> None:
    """Where a file system has no shared memory, SQLite uses a journal instead of a log."""
    path, copy = tmp_path / "a.db", tmp_path / "run.db"
    FILES["run.db"][0](path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = delete")
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        database.execute("INSERT INTO bad_rows VALUES (1, 'f', 1, 'r', zeroblob(90000))")
        for end in ("", "-journal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    assert copy.with_name("run.db-journal").stat().st_size
    FILES["run.db"][0](copy)
    with open_readonly(copy, what="run.db") as store:
        assert store.execute("SELECT count(*) FROM bad_rows").fetchone()[0] == 0


def test_every_place_that_opens_a_database_is_among_these_tests() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): text
        for path in PACKAGE.rglob("*.py")
        if _OPENS.search(text := path.read_text(encoding="utf-8"))
    }
    assert set(found) == OPENING_MODULES
    assert all("refuse_side_files(" in text for text in found.values())


def _plant_journal(path: Path, named: Path, mode: str) -> None:
    """Write a journal that names a file which SQLite deletes after it has read the journal."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
    name = bytes(named)
    numbers = struct.pack(">II", len(name), sum(name))
    end = bytes.fromhex("d9d505f920a163d7")
    path.with_name(f"{path.name}-journal").write_bytes(b"x" * 512 + name + numbers + end)


def _change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute(statement)


def _read(path: Path) -> int:
    with open_readonly(path, what="run.db") as store:
        return int(store.execute("SELECT count(*) FROM samples").fetchone()[0])


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
