"""Statements compiled to SQL once, since SQLAlchemy's work per execution dominates a write's time.

SQLAlchemy still generates the SQL and its placeholders, for SQLite and PostgreSQL.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sqlalchemy import Column, Connection, Dialect, Engine, Float, Table, bindparam, delete
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.expression import Select

from coreeval.tools.stores.postgresql import StoreUnreachable
from coreeval.tools.stores.sqlite import Row

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.types import TypeEngine


OnConflict = Literal["fails", "stays", "replaces"]
Binder = Callable[[Any], Any]
"""A function that converts a value for the database's driver."""


class InsertStatement:
    """An insert into a table, run with rows that have all its columns.

    Args:
        engine: The database whose SQL dialect is used.
        table: The table to insert into.
        twice: What to do with a row whose primary key exists: it `fails`, the old one `stays`, or
            the new one `replaces` it.
        keep: The columns that a replacing row does not change.
    """

    joins_rows: ClassVar[bool] = True

    def __init__(
        self, engine: Engine, table: Table, *, twice: OnConflict, keep: Sequence[str] = ()
    ) -> None:
        self._sql, self._columns = _compile_insert(engine.url.drivername, table, twice, (*keep,))

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Insert rows; return the number of rows written."""
        values = [
            tuple(bind(row[name]) if bind else row[name] for name, bind in self._columns)
            for row in rows
        ]
        one_or_many = values if len(values) > 1 else values[0]
        return max(connection.exec_driver_sql(self._sql, one_or_many).rowcount, 0)


class DeleteStatement:
    """A delete of the rows with a value in a column, given by the column's name.

    Args:
        engine: The database whose SQL dialect is used.
        column: The column.
    """

    joins_rows: ClassVar[bool] = True

    def __init__(self, engine: Engine, column: "Column[Any]") -> None:
        self._name = column.name
        where = column == bindparam("value")
        dialect = _positional(engine.url.drivername)
        self._sql = str(delete(column.table).where(where).compile(dialect=dialect))

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Delete rows; return the number of rows deleted."""
        values = [(row[self._name],) for row in rows]
        one_or_many = values if len(values) > 1 else values[0]
        return max(connection.exec_driver_sql(self._sql, one_or_many).rowcount, 0)


class LookupStatement:
    """A select of one row by values, in the order of its placeholders.

    It has its own connection, which sees other commits and has no open transaction between two
    calls.

    Args:
        engine: The database.
        statement: The select.
        as_stored: Whether values are returned as stored, so that a checksum over them finds every
            flipped bit; otherwise they are converted by the types of their columns.
    """

    def __init__(
        self, engine: Engine, statement: "Select[Any]", *, as_stored: bool = False
    ) -> None:
        compiled = statement.compile(dialect=_positional(engine.url.drivername))
        assert isinstance(compiled, SQLCompiler)
        self._sql = str(compiled)
        self._columns = [
            (column.name, None if as_stored else _find_reader(column.type, engine.dialect))
            for column in statement.selected_columns
        ]
        self._engine = engine
        self._connection = self._connect()
        self._trouble = engine.dialect.loaded_dbapi.Error
        self._lock = threading.Lock()

    def _connect(self) -> Connection:
        return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def one(self, *values: object) -> Row | None:
        """Return the row, or None."""
        with self._lock:
            try:
                found = self._fetch(values)
            except self._trouble:
                found = self._fetch_again(values)
        if found is None:
            return None
        return {
            name: read(value) if read else value
            for (name, read), value in zip(self._columns, found, strict=True)
        }

    def _fetch(self, values: Sequence[object]) -> Sequence[Any] | None:
        with closing(self._connection.connection.cursor()) as cursor:
            cursor.execute(self._sql, values)
            found: Sequence[Any] | None = cursor.fetchone()
            return found

    def _fetch_again(self, values: Sequence[object]) -> Sequence[Any] | None:
        """Query through SQLAlchemy, which explains errors; replace a lost connection."""
        try:
            return self._connection.exec_driver_sql(self._sql, values).fetchone()
        except StoreUnreachable:
            self._connection.invalidate()
            self._connection.close()
            self._connection = self._connect()
            return self._connection.exec_driver_sql(self._sql, values).fetchone()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _find_reader(kind: "TypeEngine[Any]", dialect: Dialect) -> Binder | None:
    """Return the function that converts a driver's value for a column; None if none is needed."""
    if isinstance(kind, Float):  # drivers return floats, but psycopg's dialect adds a conversion
        return None
    return kind.dialect_impl(dialect).result_processor(dialect, None)


@cache
def _compile_insert(
    driver: str, table: Table, twice: OnConflict, keep: tuple[str, ...]
) -> tuple[str, list[tuple[str, Binder | None]]]:
    """Return an insert as SQL, and its columns in order; cached per process, for all databases."""
    dialect = _positional(driver)
    compiled = _insert(dialect, table, twice, keep).compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    types = {name: table.c[name].type.dialect_impl(dialect) for name in _column_order(compiled)}
    return str(compiled), [(name, one.bind_processor(dialect)) for name, one in types.items()]


def _positional(driver: str) -> Dialect:
    """Return a dialect whose statements have positional placeholders."""
    url = URL.create(driver)
    kind: Callable[..., Dialect] = url.get_dialect()
    if url.get_backend_name() != "postgresql":
        return kind()
    return kind(paramstyle="format")


def _insert(dialect: Dialect, table: Table, twice: OnConflict, keep: Sequence[str]) -> Insert:
    names = [column.name for column in table.c]
    statement = _dialect_insert(dialect, table).values({name: None for name in names})
    keys = [column.name for column in table.primary_key]
    changes = {n: statement.excluded[n] for n in names if n not in {*keys, *keep}}
    if twice == "fails":
        return statement
    if twice == "stays" or not changes:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=changes)


def _dialect_insert(dialect: Dialect, table: Table) -> "sqlite.Insert | postgresql.Insert":
    if dialect.name != "postgresql":
        return sqlite.insert(table)
    from sqlalchemy.dialects.postgresql import insert

    return insert(table)


def _column_order(compiled: SQLCompiler) -> Sequence[str]:
    return compiled.positiontup or list(compiled.params)
