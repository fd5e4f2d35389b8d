"""Connections to the PostgreSQL database of the stores, and explanations of its errors.

This module needs psycopg but not SQLAlchemy, so that `status` may use it. No message contains a
password.
"""

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coreeval.errors import RunCorrupt, RunError, RunLocked
from coreeval.tools.stores.migrations import refuse_version
from coreeval.tools.stores.places import STORE_VERSIONS, URL_VARIABLE
from coreeval.tools.stores.postgresql_address import StoreServer, read_server
from coreeval.tools.stores.postgresql_places import claim_schema, find_version
from coreeval.tools.stores.postgresql_texts import adapt_values, keep_json_plain

if TYPE_CHECKING:
    import psycopg

USE: Final = "use"
"""The purpose of the lock that a process using a store holds."""
PATIENCE_S: Final = 30.0
"""The seconds that a store waits for a database to which it was connected before."""
_RETRY_S = 0.2
_TURN_S = 3
"""The seconds to wait for a lock on a table, longer than PostgreSQL needs to stop its autovacuum.

Readers that arrive meanwhile wait, too.
"""
_CONNECT_S = 10
_SETTINGS: Mapping[str, object] = {
    "application_name": "coreeval",
    "client_encoding": "utf8",
    "connect_timeout": _CONNECT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(PATIENCE_S * 1000),
}
"""Settings of connections; those in the address take precedence."""
_MOST_CHARS = 300
RESUME: Final = "then resume the run; answers are kept"


class StoreUnreachable(RunError):
    """The database cannot be reached now; it may be later."""


class Connector:
    """Connects to one schema; after the first connection, it waits for a lost database.

    Args:
        server: The database.
        schema: The schema of the tables.
        what: The name of the store to show to users.
        reading: Whether connections only read, and all reads in a transaction see the same state.
    """

    def __init__(
        self, server: StoreServer, schema: str, *, what: str, reading: bool = False
    ) -> None:
        self._server, self.schema, self.what, self._reading = server, schema, what, reading
        self._reached = False
        self.where = f"{server.place}, schema {schema}"

    def connect(self, context: Any = None) -> "psycopg.Connection[Any]":  # noqa: ANN401
        """Return a new connection.

        Args:
            context: How psycopg converts values; None for its default.

        Raises:
            StoreUnreachable: the database cannot be reached, for `PATIENCE_S` if it was reached
                before.
            RunError: it refuses the user.
        """
        import psycopg

        end = time.monotonic() + (PATIENCE_S if self._reached else 0.0)
        while True:
            try:
                connection = psycopg.connect(**self._parameters(), context=context)
            except psycopg.Error as error:
                told = self.explain(error)
                if not isinstance(told, StoreUnreachable) or time.monotonic() >= end:
                    raise told from None
                time.sleep(_RETRY_S)
            else:
                self._reached = True
                adapt_values(connection)
                return connection

    def _parameters(self) -> dict[str, Any]:
        chosen = {
            "search_path": self.schema,
            "synchronous_commit": "on",
            # sees what others have committed before
            "default_transaction_isolation": r"read\ committed",
        }
        if self._reading:
            chosen |= {
                "default_transaction_read_only": "on",
                "default_transaction_isolation": r"repeatable\ read",
            }
        given = dict(self._server.parameters)
        options = " ".join(f"-c {name}={value}" for name, value in chosen.items())
        given["options"] = f"{given.get('options', '')} {options}".strip()
        return {**_SETTINGS, **given}

    def explain(self, error: BaseException) -> RunError:
        """Convert a database's error to one that says what to do."""
        state = _state_of(error)
        said = " ".join(str(error).split())[:_MOST_CHARS]
        found = next((one for one in _MEANINGS if one.fits(state, said)), _other_meaning(state))
        return found.kind(
            found.message.format(what=self.what, said=said), where=self.where, hint=found.hint
        )


def _state_of(error: BaseException) -> str | None:
    """Return the code of an error; None without a connection, "" for psycopg's own errors."""
    import psycopg

    if state := getattr(error, "sqlstate", None):
        return str(state)
    return None if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else ""


@dataclass(frozen=True, kw_only=True)
class _Meaning:
    """The meaning of a database's error for the user."""

    states: Sequence[str] = ()
    """The codes of the error."""
    words: Sequence[str] = ()
    """Parts of its message; a refused connection has only a message."""
    kind: type[RunError] = RunError
    message: str
    hint: str

    def fits(self, state: str | None, said: str) -> bool:
        """Return whether an error has this meaning."""
        return state in self.states or (
            state is None and any(words in said for words in self.words)
        )


_MEANINGS: Final = (
    _Meaning(
        states=("53300",),
        words=("too many clients", "remaining connection slots", "too many connections"),
        kind=StoreUnreachable,
        message="PostgreSQL has no connection left for {what}: {said}",
        hint=f"raise max_connections or use fewer workers, {RESUME}",
    ),
    _Meaning(
        states=("28P01", "28000"),
        words=("authentication failed", "no password supplied", "no pg_hba.conf entry", 'role "'),
        message="PostgreSQL refused the user of {what}: {said}",
        hint=f"check the user and the password in {URL_VARIABLE}",
    ),
    _Meaning(
        states=("3D000",),
        words=("does not exist",),
        message="the database of {what} does not exist: {said}",
        hint=f"create it (createdb NAME), or set another database in {URL_VARIABLE}",
    ),
    _Meaning(
        states=("53100",),
        message="the disk of PostgreSQL is full, so {what} cannot be used: {said}",
        hint=f"free disk space on the server, {RESUME}",
    ),
    _Meaning(
        states=("25006",),
        message="{what} is read-only: {said}",
        hint=f"grant the user in {URL_VARIABLE} write access and use the primary server, not a "
        f"standby, {RESUME}",
    ),
    _Meaning(
        states=("42501",),
        message="the user lacks a permission for {what}: {said}",
        hint="grant the user CREATE on the database, or use the user that created the schema",
    ),
    _Meaning(
        states=("55P03",),
        kind=RunLocked,
        message="another transaction has locked {what}: {said}",
        hint=f"wait until it has ended, {RESUME}",
    ),
)


def _other_meaning(state: str | None) -> _Meaning:
    """Return the meaning of an error that is not in the table."""
    if state is None or state.startswith(("08", "57P")):
        hint = f"check that PostgreSQL is running and that {URL_VARIABLE} names it, {RESUME}"
        message = "{what} cannot be reached: {said}"
        return _Meaning(kind=StoreUnreachable, message=message, hint=hint)
    if state.startswith(("XX", "42", "22")):
        hint = "restore the schema from a backup"
        return _Meaning(kind=RunCorrupt, message="{what} is damaged: {said}", hint=hint)
    hint = f"check the database, {RESUME}"
    return _Meaning(message="{what} cannot be used: {said}", hint=hint)


def lock_key(schema: str, purpose: str) -> int:
    """Return the number of an advisory lock: 64 bits of a hash."""
    digest = hashlib.sha256(f"coreeval\0{schema}\0{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


# -- reading without SQLAlchemy -------------------------------------------------------------------


class NamedRow(tuple[Any, ...]):
    """A row by position and by name, like a row of the standard library's sqlite3."""

    names: Sequence[str]

    def keys(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - as that of a tuple
        return super().__getitem__(self.names.index(place) if isinstance(place, str) else place)


class SchemaReader:
    """A connection that takes the statements of sqlite3: `?` and `:name`, and rows by name."""

    def __init__(self, connection: "psycopg.Connection[Any]", connector: Connector) -> None:
        self._connection, self._connector = connection, connector

    def execute(
        self, statement: str, values: Sequence[object] | Mapping[str, object] = ()
    ) -> "psycopg.Cursor[NamedRow]":
        """Run a statement; the cursor has `fetchone`, `fetchall`, and yields rows."""
        import psycopg

        try:
            return self._connection.execute(_translate(statement), values or None)
        except psycopg.Error as error:
            raise self._connector.explain(error) from None

    def executemany(self, statement: str, values: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each of the values."""
        import psycopg

        try:
            with self._connection.cursor() as cursor:
                cursor.executemany(_translate(statement), values)
        except psycopg.Error as error:
            raise self._connector.explain(error) from None

    def execute_alone(self, statement: str) -> None:
        """Run a statement that needs tables for itself; wait `PATIENCE_S` for their readers.

        Raises:
            RunLocked: a transaction is still reading one of them.
        """
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.execute(statement)
            except RunLocked as error:
                if time.monotonic() >= end:
                    raise self._name_readers(error) from None
                time.sleep(_RETRY_S)
            else:
                return

    def _name_readers(self, error: RunLocked) -> RunLocked:
        """Return the error with the transactions that have locks on tables of the schema."""
        found = self.execute(_READERS.format(schema=self._connector.schema)).fetchall()
        names = ", ".join(f"{name} (process {pid})" for pid, name in found)
        what, where = self._connector.what, self._connector.where
        return RunLocked(
            f"{what} is being read by another transaction: {names}" if names else error.message,
            where=where,
            hint="wait until it has ended, or end it, then run the same command again",
        )


_READERS: Final = """
    SELECT DISTINCT pid, coalesce(nullif(application_name, ''), 'a client')
    FROM pg_locks JOIN pg_stat_activity USING (pid) JOIN pg_class c ON relation = c.oid
    WHERE granted AND pid <> pg_backend_pid() AND relnamespace = '{schema}'::regnamespace
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY pid
"""
_FORGET: Final = """
    SELECT format('ALTER TABLE %I ALTER %I TYPE %s %s', relname, a.attname, atttypid::regtype,
                  'COLLATE ' || nullif(attcollation, 0::oid)::regcollation)
    FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid
    JOIN pg_stats s ON (schemaname, tablename, s.attname) = ('{schema}', relname, a.attname)
    WHERE relnamespace = '{schema}'::regnamespace AND reltuples = 0
    AND atttypid IN ('text'::regtype, 'bytea'::regtype)
"""
"""The statements that delete the statistics of empty tables, which quote former rows.

ANALYZE replaces the statistics of a table only if it has rows; a change of type deletes them, even
one to the same type.
"""


@cache
def _translate(statement: str) -> bytes:
    plain = statement.replace(" NOT INDEXED", "").replace(" IMMEDIATE", "").replace("?", "%s")
    return re.sub(r"(?<![:\w]):([a-z_]+)", r"%(\1)s", plain).encode()


@contextmanager
def read_schema(schema: str, *, what: str) -> Iterator[SchemaReader]:
    """Open a store for reading inside the block; JSON is returned as text.

    Raises:
        ConfigError: `COREEVAL_STORE_URL` is missing.
        RunCorrupt: the schema is missing, of another store, or of another version.
        RunError: the database cannot be used.
    """
    with _open_schema(Connector(read_server(), schema, what=what, reading=True)) as reader:
        yield reader


@contextmanager
def change_schema(schema: str, marker: Path, *, what: str) -> Iterator[SchemaReader]:
    """Open a store for changes inside the block; no other process may be using it.

    If the block succeeds, its tables are rewritten without the rows that were deleted, and so are
    the planner's statistics, which quote rows. This needs tables that nobody reads, so nothing is
    changed while a transaction does.

    Args:
        schema: The schema.
        marker: The file that names it.
        what: The name of the store to show to users.

    Raises:
        ConfigError: `COREEVAL_STORE_URL` is missing.
        RunLocked: another process uses it, or another transaction is reading it.
        RunStateError: the file is a copy of another one.
        RunError: the database cannot be used.
    """
    connector = Connector(read_server(), schema, what=what)
    with _open_schema(connector) as database:
        lock = f"SELECT pg_try_advisory_lock({lock_key(schema, USE)})"
        if database.execute(lock).fetchall() != [(True,)]:
            raise store_in_use(connector.where)
        claim_schema(database.execute, marker, what=what)
        found = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = ?", [schema])
        tables = [table for (table,) in found.fetchall()]
        database.execute(f"SET lock_timeout = '{_TURN_S}s'")
        database.execute_alone(f"DO 'BEGIN LOCK TABLE {', '.join(tables)}; END'")
        yield database
        for table in tables:
            database.execute_alone(f"VACUUM (FULL, ANALYZE) {table}")
        for (forget,) in database.execute(_FORGET.format(schema=schema)).fetchall():
            database.execute_alone(forget)


@contextmanager
def _open_schema(connector: Connector) -> Iterator[SchemaReader]:
    connection = connector.connect()
    connection.autocommit = True
    connection.row_factory = _name_rows
    keep_json_plain(connection)
    try:
        database, what = SchemaReader(connection, connector), connector.what
        found = find_version(database.execute, connector.schema, what=what, where=connector.where)
        refuse_version(found, STORE_VERSIONS[what], what=what, where=connector.where)
        yield database
    finally:
        connection.close()


def store_in_use(where: str) -> RunLocked:
    """Return the error for a store that another process uses."""
    return RunLocked(
        "another process is using this store", where=where, hint="wait until it has ended"
    )


def _name_rows(cursor: "psycopg.Cursor[Any]") -> Any:  # noqa: ANN401 - psycopg's RowMaker
    names = [column.name for column in cursor.description or ()]
    return type("Row", (NamedRow,), {"names": names})
