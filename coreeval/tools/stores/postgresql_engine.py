"""Stores in PostgreSQL through SQLAlchemy: the schema of each, and its writer's session."""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    ExceptionContext,
    Identity,
    Integer,
    MetaData,
    String,
    Text,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, IntegrityError, InterfaceError
from sqlalchemy.pool import QueuePool

from coreeval.errors import CoreEvalError, RunError
from coreeval.tools.stores.migrations import migrate, refuse_version
from coreeval.tools.stores.places import (
    marker_of,
    name_schema,
    write_marker,
)
from coreeval.tools.stores.postgresql import (
    PATIENCE_S,
    USE,
    Connector,
    StoreUnreachable,
    lock_key,
    store_in_use,
)
from coreeval.tools.stores.postgresql_address import read_server
from coreeval.tools.stores.postgresql_places import (
    Execute,
    claim_schema,
    create_record,
    find_version,
    name_owner,
)
from coreeval.tools.stores.postgresql_texts import dump_json, load_json

if TYPE_CHECKING:
    import psycopg

    from coreeval.tools.stores.sqlite import Schema

T = TypeVar("T")
ROW_NUMBER: Final = "rowid"
"""The column that numbers rows in the order of writing, which SQLite does itself."""
_SCHEMA_OPTION = "schema"
_OWNER_OPTION = "store"
"""The path of a store, and its name for users."""
_RETRY_S = 0.2
LEAVING_S: Final = 2.0
"""The most seconds until the server releases the lock of a closed connection."""
LockMode = Literal["none", "shared", "exclusive"]


def schema_of(engine: Engine) -> str:
    """Return the schema of an engine that `open_postgresql` opened."""
    return str(engine.url.query[_SCHEMA_OPTION])


def open_postgresql(path: Path, name: str, schema: "Schema", *, what: str) -> Engine:
    """Open the schema of a store; errors of its statements are explained.

    Args:
        path: The path by which the store is known.
        name: The name of its schema in the database.
        schema: Its tables; those of an older version are migrated to this one.
        what: The name of the store to show to users.

    Raises:
        ConfigError: `COREEVAL_STORE_URL` is missing or psycopg is not installed.
        RunCorrupt: the schema is missing, of another store, or no steps lead from its version.
        RunError: the database cannot be used.
    """
    engine = _connect_engine(path, Connector(read_server(), name, what=what))
    try:
        with engine.connect() as connection:
            found = _check_version(connection, name, schema, what)
        if found != schema.version:
            with engine.begin() as connection:
                connection.exec_driver_sql("LOCK TABLE schema_version IN EXCLUSIVE MODE")
                found = _check_version(connection, name, schema, what)
                migrate(connection, found, schema.version, schema.migrations)
    except CoreEvalError:
        engine.dispose()
        raise
    return engine


def _check_version(connection: Connection, name: str, schema: "Schema", what: str) -> int:
    """Return the version of a store's tables.

    Raises:
        RunCorrupt: the schema is missing, of another store, or no steps lead from its version.
    """
    where = str(connection.engine.url.database)
    found = find_version(_execute_in(connection), name, what=what, where=where)
    refuse_version(found, schema.version, schema.migrations, what=what, where=where)
    assert isinstance(found, int)
    return found


def create_postgresql_store(
    path: Path, *, what: str, version: int, create: Callable[[Connection], None]
) -> None:
    """Create the schema of a new store, and write its name into a file beside the path.

    Args:
        path: The path by which the store is known.
        what: The name of the store to show to users.
        version: The version of its tables.
        create: Creates them.

    Raises:
        ConfigError: `COREEVAL_STORE_URL` is missing or psycopg is not installed.
        RunError: the database cannot be used.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = name_schema(path)
    engine = _connect_engine(path, Connector(read_server(), schema, what=what))
    try:
        with engine.begin() as connection:
            _refuse_other_encoding(connection, what)
            connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
            connection.exec_driver_sql(f"COMMENT ON SCHEMA {schema} IS '{name_owner(what)}'")
            create(connection)
            connection.exec_driver_sql("CREATE TABLE schema_version (version INTEGER NOT NULL)")
            connection.execute(text("INSERT INTO schema_version VALUES (:n)"), {"n": version})
            create_record(_execute_in(connection), marker_of(path))
        try:
            write_marker(path, schema)
        except OSError as error:
            with engine.begin() as connection:
                connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
            if not isinstance(error, FileExistsError):  # otherwise another process has created one
                raise
    finally:
        engine.dispose()


def _connect_engine(path: Path, connector: Connector) -> Engine:
    # The address contains only what messages show: the connector creates the connections.
    shown = URL.create(
        "postgresql+psycopg",
        database=connector.where,
        query={_SCHEMA_OPTION: connector.schema},
    )
    engine = create_engine(
        shown,
        poolclass=QueuePool,
        pool_size=4,
        pool_timeout=60,
        pool_pre_ping=True,
        json_serializer=dump_json,
        json_deserializer=load_json,
    ).execution_options(**{_OWNER_OPTION: (path, connector.what)})

    def connect(
        _dialect: object, _record: object, _given: object, options: Mapping[str, Any]
    ) -> "psycopg.Connection[Any]":
        return connector.connect(options.get("context"))

    def explain(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if isinstance(error, IntegrityError) or context.is_pre_ping:
            return
        if isinstance(error, DatabaseError | InterfaceError):
            raise connector.explain(context.original_exception)

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "handle_error", explain)
    return engine


def claim_store(connection: Connection) -> None:
    """Check that the store of a connection may be changed; its writers wait meanwhile.

    Raises:
        RunStateError: the path that identifies it is in a copy of its folder.
    """
    path, what = connection.get_execution_options()[_OWNER_OPTION]
    claim_schema(_execute_in(connection), marker_of(path), what=what)


def _execute_in(connection: Connection) -> Execute:
    return lambda statement, values: connection.execute(text(statement), values)


def _refuse_other_encoding(connection: Connection, what: str) -> None:
    found = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if found != "UTF8":
        raise RunError(
            f"the database stores texts as {found}, but {what} needs UTF8",
            where=str(connection.engine.url.database),
            hint="create a database with: createdb --encoding=UTF8 --template=template0 NAME",
        )


def adapt_tables(metadata: MetaData, *, numbered: Collection[str] = ()) -> MetaData:
    """Return tables for PostgreSQL that store and order values like those for SQLite.

    Args:
        metadata: The tables for SQLite.
        numbered: The tables that get the column `ROW_NUMBER`, which is built into SQLite.
    """
    adapted = MetaData()
    for table in metadata.sorted_tables:
        copy = table.to_metadata(adapted)
        for column in copy.columns:
            if isinstance(column.type, String):
                column.type = Text(collation="C")
            elif type(column.type) is Integer:
                column.type = BigInteger()
        if table.name in numbered:
            copy.append_column(_row_number())
    return adapted


def _row_number() -> "Column[Any]":
    return Column(ROW_NUMBER, BigInteger, Identity(always=True), unique=True, nullable=False)


def create_tables(connection: Connection, tables: MetaData) -> None:
    """Create tables in the schema of a connection."""
    for table in tables.sorted_tables:
        table.create(connection, checkfirst=False)


class WriterSession:
    """The connection of a store's writer, which is replaced if it is lost.

    Only one process at a time has a write transaction on a store: so rows are numbered in the order
    in which others see them, sums are correct, and a check of the budget sees all earlier
    reservations.

    Args:
        engine: The database.
        lock: The lock on the store that is held during the session.
        on_lost: Called after a lost connection was replaced.
    """

    def __init__(
        self, engine: Engine, *, lock: LockMode = "none", on_lost: Callable[[], None] | None = None
    ) -> None:
        self._engine, self._lock, self._on_lost = engine, lock, on_lost
        schema = schema_of(engine)
        self._turn = f"SELECT pg_advisory_xact_lock({lock_key(schema, 'write')})"
        self._connection: Connection | None = None
        self._is_claimed = False
        self._was_lost = False

    def hold(self, lock: LockMode) -> None:
        """Acquire the lock on the store.

        Raises:
            RunLocked: another process holds it.
            RunError: the database cannot be used.
        """
        self._lock = lock
        take_lock(self._connect(), lock)

    def claim(self) -> None:
        """Check that this process may write to the store.

        Raises:
            RunStateError: the store is known here by a copy of its folder.
            RunError: the database cannot be used.
        """
        self.run(lambda _: None)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do work in one transaction; if the connection is lost, repeat it on a new one.

        The work must be idempotent: the first attempt may have been committed.

        Raises:
            StoreUnreachable: the database was unreachable for `PATIENCE_S`.
            RunLocked: another process has locked the store meanwhile.
            RunStateError: the store is known here by a copy of its folder.
        """
        end = None
        while True:
            try:
                connection = self._connect()
                with connection.begin():
                    connection.exec_driver_sql(self._turn)
                    if not self._is_claimed:
                        claim_store(connection)
                        self._is_claimed = True
                    return work(connection)
            except StoreUnreachable:
                self.close()
                self._was_lost = True
                end = end or time.monotonic() + PATIENCE_S
                if time.monotonic() >= end:
                    raise
                time.sleep(_RETRY_S)

    def close(self) -> None:
        """Close the connection, which releases the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
            if self._was_lost:
                take_lock(self._connection, self._lock, patience_s=PATIENCE_S)
                if self._on_lost:
                    self._on_lost()
                self._was_lost = False
        return self._connection


def take_lock(connection: Connection, lock: LockMode, *, patience_s: float = LEAVING_S) -> None:
    """Acquire a lock on the store of a connection, until the connection is closed.

    Args:
        connection: A connection to the store.
        lock: The lock.
        patience_s: The seconds to wait for it: the server may not have noticed yet that the
            previous holder's connection is gone.

    Raises:
        RunLocked: another process holds one that excludes it.
    """
    if lock == "none":
        return
    ending = "_shared" if lock == "shared" else ""
    query = f"SELECT pg_try_advisory_lock{ending}({lock_key(schema_of(connection.engine), USE)})"
    end = time.monotonic() + patience_s
    while True:
        with connection.begin():
            if connection.exec_driver_sql(query).scalar():
                return
        if time.monotonic() >= end:
            raise store_in_use(str(connection.engine.url.database))
        time.sleep(_RETRY_S)
