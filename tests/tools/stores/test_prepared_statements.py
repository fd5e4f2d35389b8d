"""Statements made once: they write and read what SQLAlchemy would."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    select,
)
from sqlalchemy.exc import IntegrityError

from coreeval.tools.stores.prepared_statements import (
    DeleteStatement,
    InsertStatement,
    LookupStatement,
    OnConflict,
)
from coreeval.tools.stores.sqlite import Row, open_engine

METADATA = MetaData()
THINGS = Table(
    "things",
    METADATA,
    Column("name", String, nullable=False),
    Column("id", Integer, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("told", JSON),
    Column("good", Boolean),
    Column("weight", Float),
    Column("body", LargeBinary),
    Column("first", String),
)
MARKS = Table("marks", METADATA, Column("id", Integer, primary_key=True))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    engine = open_engine(f"sqlite:///{path}")
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


def thing(number: int = 1, **changes: object) -> Row:
    row: Row = {
        "id": number,
        "part": 0,
        "name": "it's \u00e9",
        "told": {"a": [1, None, "\u00e9"]},
        "good": True,
        "weight": 0.1,
        "body": b"\0\xff",
        "first": "first",
    }
    return row | changes


def put(engine: Engine, statement: InsertStatement, *rows: Row) -> int:
    with engine.begin() as connection:
        return statement.run(connection, rows)


def rows_of(engine: Engine, table: Table = THINGS) -> list[Row]:
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(select(table)).mappings()]


@pytest.mark.parametrize("count", [1, 2, 50])
def test_rows_come_back_as_they_were_given(engine: Engine, count: int) -> None:
    given = [thing(number) for number in range(count)]
    assert put(engine, InsertStatement(engine, THINGS, twice="fails"), *given) == count
    assert rows_of(engine) == given


def test_what_is_not_known_is_null(engine: Engine) -> None:
    row = thing(good=None, weight=None, body=None, first=None)
    put(engine, InsertStatement(engine, THINGS, twice="fails"), row)
    assert rows_of(engine) == [row]


def test_the_file_has_what_sqlalchemy_would_have_written(engine: Engine, path: Path) -> None:
    put(engine, InsertStatement(engine, THINGS, twice="replaces"), thing(1))
    with engine.begin() as connection:
        connection.execute(THINGS.insert(), thing(2))
    with closing(sqlite3.connect(path)) as db:
        one, two = db.execute(
            "SELECT name, told, typeof(told), good, typeof(good), weight, body, first FROM things"
        )
    assert one == two


@pytest.mark.parametrize(
    ("twice", "left", "written"),
    [("stays", {"name": "old"}, 0), ("replaces", {"name": "new"}, 1)],
)
def test_what_becomes_of_a_row_that_is_there(
    engine: Engine, twice: OnConflict, left: Row, written: int
) -> None:
    statement = InsertStatement(engine, THINGS, twice=twice)
    assert put(engine, statement, thing(name="old")) == 1
    assert put(engine, statement, thing(name="new")) == written
    assert put(engine, statement, thing(part=1, name="another")) == 1
    assert rows_of(engine) == [thing(**left), thing(part=1, name="another")]


def test_a_row_that_may_not_be_there_twice_leaves_all_as_it_was(engine: Engine) -> None:
    statement = InsertStatement(engine, THINGS, twice="fails")
    put(engine, statement, thing(1, name="old"))
    with pytest.raises(IntegrityError):
        put(engine, statement, thing(2), thing(1, name="new"))
    assert rows_of(engine) == [thing(1, name="old")]


def test_a_row_that_replaces_another_leaves_the_columns_that_are_kept(engine: Engine) -> None:
    statement = InsertStatement(engine, THINGS, twice="replaces", keep=["first", "body"])
    put(engine, statement, thing(), thing(name="new", first="second", body=b"", weight=2.0))
    assert rows_of(engine) == [thing(name="new", weight=2.0)]


@pytest.mark.parametrize("twice", ["stays", "replaces"])
def test_a_table_of_keys_only(engine: Engine, twice: OnConflict) -> None:
    statement = InsertStatement(engine, MARKS, twice=twice)
    put(engine, statement, {"id": 1}, {"id": 1}, {"id": 2})
    assert rows_of(engine, MARKS) == [{"id": 1}, {"id": 2}]


def test_a_row_without_a_column_is_refused_and_one_too_many_is_not_seen(engine: Engine) -> None:
    statement = InsertStatement(engine, MARKS, twice="fails")
    put(engine, statement, {"id": 1, "more": 2})
    with pytest.raises(KeyError):
        put(engine, statement, {"more": 2})
    assert rows_of(engine, MARKS) == [{"id": 1}]


# -- looking up ---------------------------------------------------------------------------------


@pytest.fixture
def lookup(engine: Engine) -> Iterator[LookupStatement]:
    columns = THINGS.c.name, THINGS.c.body, THINGS.c.weight
    query = select(*columns).where(THINGS.c.id == bindparam("a"), THINGS.c.part == bindparam("b"))
    lookup = LookupStatement(engine, query)
    yield lookup
    lookup.close()


def test_a_row_is_found_by_values_in_the_order_of_their_places(
    engine: Engine, lookup: LookupStatement
) -> None:
    put(engine, InsertStatement(engine, THINGS, twice="fails"), thing(1, part=2, name="this"))
    found = lookup.one(1, 2)
    assert found == {"name": "this", "body": b"\0\xff", "weight": 0.1}
    assert lookup.one(2, 1) is None


def test_what_others_commit_is_seen_at_the_next_look(
    engine: Engine, lookup: LookupStatement, path: Path
) -> None:
    assert lookup.one(1, 0) is None
    put(engine, InsertStatement(engine, THINGS, twice="fails"), thing())
    assert lookup.one(1, 0) is not None
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE things SET name = 'by another process'")
        other.commit()
        found = lookup.one(1, 0)
        assert found is not None and found["name"] == "by another process"


def test_nothing_is_held_open_between_two_looks(lookup: LookupStatement, path: Path) -> None:
    lookup.one(1, 0)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=1)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("COMMIT")
        (busy, *_) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0


@pytest.mark.parametrize("gone", [[1], [1, 3], [4], [1, 2, 3]])
def test_rows_are_deleted_by_a_column(engine: Engine, gone: list[int]) -> None:
    statement = DeleteStatement(engine, THINGS.c.id)
    with engine.begin() as connection:
        InsertStatement(engine, THINGS, twice="fails").run(
            connection, [thing(number) for number in (1, 2, 3)]
        )
        deleted = statement.run(connection, [{"id": number} for number in gone])
        left = list(connection.scalars(select(THINGS.c.id).order_by(THINGS.c.id)))
    assert left == [number for number in (1, 2, 3) if number not in gone]
    assert deleted == 3 - len(left)
