import sqlite3
import threading
from concurrent.futures import wait
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, select, text
from sqlalchemy.exc import IntegrityError

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.stores.sql import Writer, migrate, open_engine, upsert

METADATA = MetaData()
THINGS = Table(
    "things",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("first", String),
)


def _first(connection: Connection) -> None:
    METADATA.create_all(connection)


def _second(connection: Connection) -> None:
    connection.execute(text("INSERT INTO things (id, name) VALUES (0, 'made by the migration')"))


def _url(path: Path) -> str:
    return f"sqlite:///{path}"


def _versions(path: Path) -> list[int]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [row[0] for row in connection.execute("SELECT version FROM schema_version")]


def test_migrations_run_once_and_in_order(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    migrate(engine, [_first], what="a.db")
    migrate(engine, [_first, _second], what="a.db")
    migrate(engine, [_first, _second], what="a.db")
    with engine.connect() as connection:
        assert connection.execute(select(THINGS.c.name)).scalars().all() == [
            "made by the migration"
        ]
    engine.dispose()
    assert _versions(tmp_path / "a.db") == [2]


def test_a_store_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    migrate(engine, [_first, _second], what="a.db")
    with pytest.raises(RunCorrupt, match="schema version 2; this CoreEval knows up to 1"):
        migrate(engine, [_first], what="a.db")
    engine.dispose()
    assert _versions(tmp_path / "a.db") == [2]


def test_a_file_that_is_no_database_is_said_so_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"these are no database pages " * 200)
    before = path.read_bytes()
    engine = open_engine(_url(path))
    with pytest.raises(RunCorrupt, match=r"a\.db is damaged"):
        migrate(engine, [_first], what="a.db")
    engine.dispose()
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_not_called_damage(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "no" / "a.db"))
    with pytest.raises(RunError, match="cannot be opened") as caught:
        migrate(engine, [_first], what="a.db")
    assert not isinstance(caught.value, RunCorrupt)
    engine.dispose()


def test_writes_of_many_threads_are_all_there_when_their_futures_are_done(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    migrate(engine, [_first], what="a.db")
    writer = Writer(engine)
    done = []

    def work(start: int) -> None:
        for number in range(start, start + 200):
            done.append(writer.submit(THINGS.insert(), {"id": number, "name": str(number)}))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 1000, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait(done)
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        assert other.execute("SELECT count(*) FROM things").fetchone() == (1000,)
    writer.close()
    engine.dispose()


def test_one_bad_write_does_not_spoil_the_writes_committed_with_it(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    migrate(engine, [_first], what="a.db")
    writer = Writer(engine)
    good = [writer.submit(THINGS.insert(), {"id": n, "name": "good"}) for n in range(20)]
    bad = writer.submit(THINGS.insert(), {"id": 3, "name": "twice"})
    more = [writer.submit(THINGS.insert(), {"id": n, "name": "good"}) for n in range(20, 40)]
    with pytest.raises(IntegrityError):
        bad.result()
    assert [future.result() for future in good + more] == [1] * 40
    writer.close()
    engine.dispose()


def test_statements_of_one_job_are_committed_together_or_not_at_all(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    migrate(engine, [_first], what="a.db")
    writer = Writer(engine)
    job = writer.submit_all(
        [
            (THINGS.insert(), {"id": 1, "name": "a"}),
            (THINGS.insert(), {"id": 1, "name": "the same again"}),
        ]
    )
    with pytest.raises(IntegrityError):
        job.result()
    with engine.connect() as connection:
        assert connection.execute(select(THINGS.c.id)).all() == []
    writer.close()
    engine.dispose()


def test_upsert_replaces_a_row_but_for_what_is_kept(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    migrate(engine, [_first], what="a.db")
    statement = upsert(engine, THINGS, keep=["first"])
    with engine.begin() as connection:
        connection.execute(statement, [{"id": 1, "name": "old", "first": "kept"}])
        connection.execute(statement, [{"id": 1, "name": "new", "first": "not taken"}])
        assert connection.execute(select(THINGS)).all() == [(1, "new", "kept")]
    engine.dispose()
