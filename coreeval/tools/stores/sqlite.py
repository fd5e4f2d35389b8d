"""Opens the database of a store and creates its tables.

All statements go through SQLAlchemy Core. The PostgreSQL part is in `postgresql_engine`.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    ExceptionContext,
    Integer,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError
from sqlalchemy.pool import QueuePool

from coreeval.errors import CoreEvalError, RunCorrupt, RunError
from coreeval.tools.stores.foreign_schema import (
    READ_ONLY,
    KnownSchema,
    limit_values,
    normalise_statement,
    refuse_foreign_schema,
)
from coreeval.tools.stores.heartbeat import (
    BUSY,
    COPYING,
    OPENING,
    REPAIR,
    RESUME,
    may_change,
    reading_uri,
    refuse_side_files,
)
from coreeval.tools.stores.migrations import Migrations, migrate, refuse_version
from coreeval.tools.stores.places import find_schema

Row = dict[str, Any]
_VERSION_TABLE = "CREATE TABLE schema_version (version INTEGER NOT NULL)"
WIDE_INTEGER = Integer().with_variant(BigInteger(), "postgresql")
"""An integer of 64 bits, as in SQLite."""
BUSY_MS = 10_000
"""The milliseconds that a connection waits for another one's lock."""
CACHE_KIB = 256
"""The cache of each of a run's half dozen connections, in KiB; SQLite's default of 2,000 fills up
within a minute, and the system's own cache is as fast (benchmarks/trivial_nodes.py)."""


def open_engine(url: str, *, checked: bool = False, flushing: bool = True) -> Engine:
    """Open a database; SQLite gets WAL and a busy timeout.

    Args:
        url: The database's address.
        checked: Whether rows have their own checksums. If so, text that is not UTF-8 is still read,
            so that only its row counts as damaged.
        flushing: Whether to flush each commit to the disk; not needed if a `Writer` does that.
    """
    engine = create_engine(url, poolclass=QueuePool, pool_size=4, pool_timeout=60)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "do_connect", _connect_safely)
        event.listen(engine, "connect", _tune_sqlite)
        if not flushing:
            event.listen(engine, "connect", _leave_flushing)
        if checked:
            event.listen(engine, "connect", _read_any_text)
    return engine


def _connect_safely(
    _dialect: object, _record: object, given: Sequence[object], _options: object
) -> sqlite3.Connection | None:
    """Return a read-only connection if the place is not writable, otherwise None.

    Raises:
        RunCorrupt: SQLite would use something outside the file; see `refuse_side_files`.
    """
    path = Path(str(given[0]))
    refuse_side_files(path)
    if not path.exists() or may_change(path):
        return None
    return sqlite3.connect(reading_uri(path), uri=True, check_same_thread=False)


def _read_any_text(connection: sqlite3.Connection, _record: object) -> None:
    connection.text_factory = lambda text: text.decode(errors="replace")


def _tune_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    limit_values(connection)
    settings = ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_MS}")
    for setting in (*settings, f"cache_size=-{CACHE_KIB}"):
        connection.execute(f"PRAGMA {setting}")


def _leave_flushing(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


@dataclass(frozen=True)
class Schema:
    """The tables of a database; each change is a new version, with a step from the previous one."""

    version: int
    create: Callable[[Connection], None]
    """Creates the tables of a new file."""
    create_postgresql: Callable[[Connection], None] | None = None
    """Creates those of a new schema in PostgreSQL; None if the store is always a file."""
    migrations: Migrations = field(default_factory=dict)
    """The steps from each released version to the next; none yet."""
    also: Sequence[str] = ()
    """Statements that a file may have been created with besides: those of other code, of older
    versions, or of machines with another SQLite."""

    @cached_property
    def known(self) -> KnownSchema:
        """All statements that a file may have been created with."""
        engine = create_engine("sqlite://")
        with engine.begin() as connection:
            self.create(connection)
            query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
            own = list(connection.exec_driver_sql(query).scalars())
        engine.dispose()
        return KnownSchema(
            statements=frozenset(map(normalise_statement, (*own, _VERSION_TABLE, *self.also)))
        )


def open_store(path: Path, schema: Schema, *, what: str, checked: bool = False) -> Engine:
    """Open a store in its file, which is created if needed, or in its PostgreSQL schema.

    Args:
        path: The file.
        schema: Its tables.
        what: The name to show to users.
        checked: As in `open_engine`.

    Raises:
        ConfigError: it is in PostgreSQL, and `COREEVAL_STORE_URL` is missing.
        RunCorrupt: it is damaged, of another version, or missing from the database.
        RunError: it cannot be opened.
    """
    if name := find_schema(path):
        from coreeval.tools.stores.postgresql_engine import open_postgresql

        return open_postgresql(path, name, schema, what=what)
    engine = open_engine(
        str(URL.create("sqlite", database=str(path))), checked=checked, flushing=False
    )
    prepare_database(engine, schema, what=what)
    explain_errors(engine, what=what)
    return engine


def create_store(path: Path, schema: Schema, *, what: str) -> None:
    """Create a store in PostgreSQL; see `create_postgresql_store`.

    Raises:
        ConfigError: `COREEVAL_STORE_URL` is missing or psycopg is not installed.
        RunError: the database cannot be used.
    """
    from coreeval.tools.stores.postgresql_engine import create_postgresql_store

    assert schema.create_postgresql
    create_postgresql_store(
        path, what=what, version=schema.version, create=schema.create_postgresql
    )


def prepare_database(engine: Engine, schema: Schema, *, what: str, repair: str = REPAIR) -> None:
    """Create the tables of a new database, or migrate those of an older version to this one.

    Args:
        engine: The database.
        schema: Its tables.
        what: The name to show to users.
        repair: Advice for users if it is damaged.

    Raises:
        RunCorrupt: the file is not a database, is damaged, or no steps lead from its version.
        RunError: it cannot be opened.
    """
    try:
        _prepare(engine, schema, what, repair)
    except CoreEvalError:
        engine.dispose()  # the caller does not get the store, so it cannot close it
        raise


def _prepare(engine: Engine, schema: Schema, what: str, repair: str) -> None:
    try:
        with engine.begin() as connection:
            _create_once(connection, schema, what, repair)
    except OperationalError as error:
        raise RunError(
            f"{what} cannot be opened: {error.orig}",
            where=str(engine.url.database),
            hint=_opening_hint(Path(str(engine.url.database)), str(error.orig)),
        ) from None
    except DatabaseError as error:
        raise RunCorrupt(
            f"{what} is damaged: {error.orig}",
            where=str(engine.url.database),
            hint=repair,
        ) from None


def _opening_hint(path: Path, problem: str) -> str:
    """Return advice for users about a database that cannot be opened."""
    if "locked" in problem:
        return BUSY
    return COPYING if path.exists() and not may_change(path) else OPENING


def _create_once(connection: Connection, schema: Schema, what: str, repair: str) -> None:
    where = str(connection.engine.url.database)
    execute, path = connection.exec_driver_sql, Path(where)
    refuse_foreign_schema(execute, path, READ_ONLY, hint=repair)
    version = _version(connection, what, repair)
    if not version:
        _refuse_foreign(connection, what)
    elif version != schema.version:
        refuse_version(version, schema.version, schema.migrations, what=what, where=where)
    refuse_foreign_schema(execute, path, schema.known, hint=repair)
    if version == schema.version:
        return
    if version:
        _refuse_readonly(connection, what, where)
    _begin(connection)
    version = _version(connection, what, repair)  # another process may have created them
    if version:
        migrate(connection, version, schema.version, schema.migrations)
        return
    schema.create(connection)
    connection.execute(text("DELETE FROM schema_version"))
    connection.execute(text("INSERT INTO schema_version VALUES (:n)"), {"n": schema.version})


def _refuse_readonly(connection: Connection, what: str, where: str) -> None:
    """Refuse a database of an older version in a place where it cannot be changed.

    Raises:
        RunError: this process may not write the file.
    """
    if connection.dialect.name == "sqlite" and not may_change(Path(where)):
        raise RunError(
            f"{what} was written by an older CoreEval and must be upgraded, but it is read-only "
            "here",
            where=where,
            hint="copy its folder, with the files that end in -wal and -shm, to a place where you "
            "may write",
        )


def _refuse_foreign(connection: Connection, what: str) -> None:
    """Refuse a database of another program: our tables and triggers do not belong in it.

    Raises:
        RunCorrupt: it has tables, but none with our version.
    """
    tables = set(inspect(connection).get_table_names())
    if tables and "schema_version" not in tables:
        raise RunCorrupt(
            f"this is not {what} but a database of another program; nothing was written to it",
            where=str(connection.engine.url.database),
            hint="move it away, or restore the right file from a copy",
        )


def _version(connection: Connection, what: str, repair: str) -> int:
    """Return the schema's version; 0 for a file that was only created.

    Raises:
        RunCorrupt: the version is not a number.
    """
    if not inspect(connection).has_table("schema_version"):
        return 0
    found = connection.execute(text("SELECT max(version) FROM schema_version")).scalar()
    if not isinstance(found, int | None):
        raise RunCorrupt(
            f"the schema version of {what} is not a number",
            where=str(connection.engine.url.database),
            hint=repair,
        )
    return found or 0


def _begin(connection: Connection) -> None:
    """Start a transaction explicitly, since SQLite's driver excludes table creation from it."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    connection.execute(text(_VERSION_TABLE.replace("TABLE", "TABLE IF NOT EXISTS")))


def explain_errors(
    engine: Engine, *, what: str, resume: str = RESUME, repair: str = REPAIR
) -> None:
    """Make every statement raise our own errors if the database file causes them.

    A damaged file raises `RunCorrupt`; one that cannot be used now (a full disk, a lock) raises
    `RunError`. A violated constraint is not converted: it is a bug or up to the caller. `resume`
    and `repair` say what to do about each error.
    """

    def explain(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if not isinstance(error, DatabaseError) or isinstance(error, IntegrityError):
            return
        where = str(engine.url.database)
        if isinstance(error, OperationalError):
            raise RunError(f"{what} cannot be used: {error.orig}", where=where, hint=resume)
        raise RunCorrupt(f"{what} is damaged: {error.orig}", where=where, hint=repair)

    event.listen(engine, "handle_error", explain)


def is_postgresql(engine: Engine | Connection) -> bool:
    """Return whether a database is PostgreSQL."""
    return engine.dialect.name == "postgresql"
