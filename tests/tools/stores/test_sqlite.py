import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    delete,
    event,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.stores import batch_writer
from coreeval.tools.stores.batch_writer import LINGER_S, BatchWriter, Write
from coreeval.tools.stores.prepared_statements import InsertStatement
from coreeval.tools.stores.sqlite import Row, Schema, open_engine, prepare_database

METADATA = MetaData()
THINGS = Table(
    "things",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("first", String),
)


def _create(connection: Connection) -> None:
    METADATA.create_all(connection)
    connection.execute(text("INSERT INTO things (id, name) VALUES (0, 'made with the tables')"))


FIRST = Schema(version=1, create=METADATA.create_all)
SECOND = Schema(version=2, create=_create)


def _url(path: Path) -> str:
    return f"sqlite:///{path}"


def _versions(path: Path) -> list[int]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [row[0] for row in connection.execute("SELECT version FROM schema_version")]


def test_tables_are_made_once(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    for _ in range(3):
        prepare_database(engine, SECOND, what="a.db")
    with engine.connect() as connection:
        assert connection.execute(select(THINGS.c.name)).scalars().all() == ["made with the tables"]
    engine.dispose()
    assert _versions(tmp_path / "a.db") == [2]


@pytest.mark.parametrize(
    ("there", "known", "to_do"),
    [
        (SECOND, FIRST, "install a newer CoreEval"),
        (FIRST, SECOND, "a pre-release version of CoreEval created it"),
    ],
)
def test_a_store_of_another_version_is_refused_and_left_alone(
    tmp_path: Path, there: Schema, known: Schema, to_do: str
) -> None:
    engine = open_engine(_url(tmp_path / "a.db"))
    prepare_database(engine, there, what="a.db")
    expected = f"version {there.version}; this version of CoreEval supports only {known.version}"
    with pytest.raises(RunCorrupt, match=expected) as caught:
        prepare_database(engine, known, what="a.db")
    engine.dispose()
    assert to_do in caught.value.hint
    assert _versions(tmp_path / "a.db") == [there.version]


def test_a_file_that_is_no_database_is_said_so_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"these are no database pages " * 200)
    before = path.read_bytes()
    engine = open_engine(_url(path))
    with pytest.raises(RunCorrupt, match=r"a\.db is damaged"):
        prepare_database(engine, FIRST, what="a.db")
    engine.dispose()
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_not_called_damage(tmp_path: Path) -> None:
    engine = open_engine(_url(tmp_path / "no" / "a.db"))
    with pytest.raises(RunError, match="cannot be opened") as caught:
        prepare_database(engine, FIRST, what="a.db")
    assert not isinstance(caught.value, RunCorrupt)
    engine.dispose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    engine = open_engine(_url(path))
    prepare_database(engine, FIRST, what="a.db")
    yield engine
    engine.dispose()


@pytest.fixture
def writer(engine: Engine) -> Iterator[BatchWriter]:
    writer = BatchWriter(engine)
    yield writer
    writer.close()


def _put(*numbers: int) -> list[Write]:
    return [(THINGS.insert(), [{"id": number, "name": "a"}]) for number in numbers]


def _ids(path: Path) -> list[int]:
    """Return what another process would see."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        return [number for (number,) in other.execute("SELECT id FROM things ORDER BY id")]


def test_writes_of_many_threads_are_all_there_when_their_futures_are_done(
    writer: BatchWriter, path: Path
) -> None:
    done = list[Future[int]]()

    def work(start: int) -> None:
        for number in range(start, start + 200):
            done.append(writer.submit(_put(number), waited_for=bool(number % 3)))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 1000, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [future.result(10) for future in done] == [1] * 1000
    assert _ids(path) == list(range(1000))


def test_one_bad_write_does_not_spoil_the_writes_committed_with_it(
    writer: BatchWriter, path: Path
) -> None:
    good = [writer.submit(_put(number)) for number in range(20)]
    bad = writer.submit(_put(3))
    more = [writer.submit(_put(number)) for number in range(20, 40)]
    with pytest.raises(IntegrityError):
        bad.result()
    assert [future.result() for future in good + more] == [1] * 40
    assert _ids(path) == list(range(40))


def test_statements_of_one_job_are_committed_together_or_not_at_all(
    writer: BatchWriter, path: Path
) -> None:
    with pytest.raises(IntegrityError):
        writer.submit(_put(1, 2, 1)).result()
    assert _ids(path) == []
    assert writer.submit(_put(1, 2)).result() == 2
    assert _ids(path) == [1, 2]


def test_a_job_may_mix_statements_with_rows_without_any_and_without_need_of_them(
    writer: BatchWriter, engine: Engine, path: Path
) -> None:
    writer.submit(_put(1, 2)).result()
    rows: list[Row] = [{"id": n, "name": "b", "first": None} for n in (3, 4)]
    prepared = InsertStatement(engine, THINGS, twice="fails")
    writes: list[Write] = [
        (delete(THINGS).where(THINGS.c.id == 1), None),
        (THINGS.insert(), []),
        (prepared, []),
        (prepared, rows),
    ]
    assert writer.submit(writes).result() == 3
    assert _ids(path) == [2, 3, 4]


def test_what_nobody_waits_for_is_committed_soon_and_at_the_end(engine: Engine, path: Path) -> None:
    writer = BatchWriter(engine)
    writer.submit(_put(1), waited_for=False).result(100 * LINGER_S)
    assert _ids(path) == [1]
    writer.submit(_put(2), waited_for=False)
    writer.close()
    assert _ids(path) == [1, 2]


def test_what_nobody_waits_for_is_never_committed_after_what_follows_it(
    writer: BatchWriter, path: Path
) -> None:
    for number in range(0, 60, 3):
        writer.submit(_put(number), waited_for=False)
        writer.submit(_put(number + 1), waited_for=False)
        writer.submit(_put(number + 2)).result()
        assert _ids(path) == list(range(number + 3))


def test_what_was_handed_in_is_written_though_whoever_waited_has_gone(
    writer: BatchWriter, path: Path
) -> None:
    future = writer.submit(_put(1))
    assert not future.cancel()
    assert future.result() == 1
    assert _ids(path) == [1]


# -- what a power cut leaves ----------------------------------------------------------------------


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fill with the files that are flushed, the disk doing it all the same."""
    done, flush = list[str](), os.fsync

    def noted(file: IO[bytes]) -> None:
        flush(file)
        done.append(file.name)

    monkeypatch.setattr(os, "fsync", noted)
    return done


def test_what_must_last_is_flushed_before_its_future_is_done(
    writer: BatchWriter, path: Path, flushes: list[str]
) -> None:
    writer.submit(_put(1)).result()
    assert not flushes
    writer.submit(_put(2), lasting=True).result()
    assert flushes == [f"{path}-wal"]


def test_all_else_is_flushed_soon_after_once_and_at_the_end(
    engine: Engine, flushes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_writer, "FLUSH_S", 0.05)
    writer = BatchWriter(engine)
    for number in range(3):
        writer.submit(_put(number)).result()
    deadline = time.monotonic() + 20
    while not flushes and time.monotonic() < deadline:
        time.sleep(0.01)
    assert flushes
    monkeypatch.setattr(batch_writer, "FLUSH_S", 60)
    before = len(flushes)
    writer.submit(_put(9)).result()
    writer.close()
    assert len(flushes) > before


def test_what_rows_rest_on_is_flushed_before_them(
    engine: Engine, path: Path, tmp_path: Path, flushes: list[str]
) -> None:
    other = tmp_path / "other.db"
    writer = BatchWriter(engine, rests_on=other)
    writer.submit(_put(1), lasting=True).result()
    assert flushes == [f"{path}-wal"], "what SQLite has moved on is there already"
    Path(f"{other}-wal").touch()
    writer.submit(_put(2), lasting=True).result()
    assert flushes[1:] == [f"{other}-wal", f"{path}-wal"]
    writer.close()


def test_a_disk_that_does_not_take_it_is_told_to_who_waits_and_to_all_after(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_file: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = BatchWriter(engine)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(RunError, match="writing to the disk failed") as caught:
            writer.submit(_put(1), lasting=True).result()
        assert str(engine.url.database) in str(caught.value.where)
        with pytest.raises(RunError):
            writer.submit(_put(2)).result()
    with pytest.raises(RunError, match="writing to the disk failed"):
        writer.close()


@pytest.mark.parametrize(("flushing", "synchronous"), [(True, 2), (False, 1)])
def test_sqlite_flushes_each_commit_only_where_nobody_else_does(
    path: Path, *, flushing: bool, synchronous: int
) -> None:
    engine = open_engine(_url(path), flushing=flushing)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == synchronous
    engine.dispose()


def test_a_file_that_another_process_holds_is_no_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    engine = open_engine(_url(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("BEGIN EXCLUSIVE")
        event.listen(engine, "connect", lambda dbapi, _: dbapi.execute("PRAGMA busy_timeout=1"))
        with pytest.raises(RunError, match="locked") as caught:
            prepare_database(engine, FIRST, what="a.db")
    assert "another process" in caught.value.hint
