"""The tables of calls.db and the steps that brought them about."""

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    text,
)

from coreeval.tools.stores.old_checksums import renew
from coreeval.tools.stores.sqlite import Migration

metadata = MetaData()
calls = Table(
    "calls",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("draw", Integer, nullable=False),
    Column("role", String(64), nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("response", LargeBinary, nullable=False),
    Column("valid", Boolean, nullable=False),
    Column("error", Text, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("model_returned", Text, nullable=False),
    Column("finish_reason", Text, nullable=False),
    Column("started_at", String(40), nullable=False),
    Column("seconds", Float, nullable=False),
    Column("checksum", String(64), nullable=False),
    Column("paid_by", Text, nullable=False, server_default=""),
    Column("method", String(32), nullable=False, server_default=""),
    Column("tries", Text, nullable=False, server_default=""),
    Column("usd", Float, nullable=True),
    Column("logprobs", LargeBinary, nullable=True),
)
texts = Table(
    "texts",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
"""Long parts that requests share, such as a role's instructions."""
reservations = Table(
    "reservations",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("payer", Text, nullable=False),
    Column("key", String(64), nullable=False),
    Column("usd", Float, nullable=False),
)
"""The worst case of each request that was sent and not accounted for."""
abilities = Table(
    "abilities",
    metadata,
    Column("endpoint", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("value", Text, nullable=False),
)
"""What was found out about models."""
_BY_PAYER = Index("calls_by_payer", calls.c.paid_by, calls.c.usd)
"""Holds all that the sum of a run is made of: the rows are large, and are left alone."""
_ADDED = {
    "paid_by": "TEXT NOT NULL DEFAULT ''",
    "method": "VARCHAR(32) NOT NULL DEFAULT ''",
    "tries": "TEXT NOT NULL DEFAULT ''",
    "usd": "FLOAT",
    "logprobs": "BLOB",
}


def _create(connection: Connection) -> None:
    metadata.create_all(connection)


def _add(*names: str) -> Migration:
    """Return a step that adds columns; a new file is created with them."""

    def step(connection: Connection) -> None:
        there = {column["name"] for column in inspect(connection).get_columns("calls")}
        for name in names:
            if name not in there:
                connection.execute(text(f"ALTER TABLE calls ADD COLUMN {name} {_ADDED[name]}"))

    return step


def _index_anew(connection: Connection) -> None:
    """Put what calls cost into the index of those who paid; a new file is created with it."""
    connection.execute(text("DROP INDEX IF EXISTS calls_by_payer"))
    _BY_PAYER.create(connection)


MIGRATIONS: tuple[Migration, ...] = (
    _create,
    _add("paid_by"),
    _add("method", "tries", "usd"),
    _create,
    renew,
    _index_anew,
    _add("logprobs"),
)
