"""The tables of calls.db."""

from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from coreeval.tools.stores.places import STORE_VERSIONS
from coreeval.tools.stores.sqlite import WIDE_INTEGER, Schema

metadata = MetaData()
calls = Table(
    "calls",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("draw", WIDE_INTEGER, nullable=False),
    Column("role", String(64), nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("response", LargeBinary, nullable=False),
    Column("valid", Boolean, nullable=False),
    Column("error", Text, nullable=False),
    Column("prompt_tokens", WIDE_INTEGER, nullable=False),
    Column("cached_tokens", WIDE_INTEGER, nullable=False),
    Column("completion_tokens", WIDE_INTEGER, nullable=False),
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
"""Long texts that requests share, such as a role's instructions."""
reservations = Table(
    "reservations",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("payer", Text, nullable=False),
    Column("key", String(64), nullable=False),
    Column("usd", Float, nullable=False),
    Column("made_at", String(40), nullable=False),
)
"""The most that each request may cost that was sent and not settled."""
batches = Table(
    "batches",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("payer", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("key_env", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("provider_id", Text, nullable=False, server_default=""),
    Column("status", Text, nullable=False, server_default=""),
    Column("problem", Text, nullable=False, server_default=""),
    Column("total", WIDE_INTEGER, nullable=False),
    Column("succeeded", WIDE_INTEGER, nullable=False, server_default="0"),
    Column("failed", WIDE_INTEGER, nullable=False, server_default="0"),
    Column("most_usd", Float, nullable=True),
    Column("usd", Float, nullable=True),
    Column("live_usd", Float, nullable=True),
    Column("files", Text, nullable=False, server_default=""),
    Column("folder", Text, nullable=False, server_default=""),
    Column("unreadable_at", String(40), nullable=False, server_default=""),
    Column("made_at", String(40), nullable=False),
    Column("asked_at", String(40), nullable=False, server_default=""),
    Column("sent_at", String(40), nullable=False, server_default=""),
    Column("cancelled_at", String(40), nullable=False, server_default=""),
    Column("ended_at", String(40), nullable=False, server_default=""),
)
"""The batches of questions that were sent to providers."""
batch_requests = Table(
    "batch_requests",
    metadata,
    Column("payer", Text, primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("batch", String(32), nullable=False),
    Column("process", String(32), nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("key_env", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("size", WIDE_INTEGER, nullable=False),
    Column("max_tokens", WIDE_INTEGER, nullable=False),
    Column("method", String(32), nullable=False),
    Column("plain_limit", Boolean, nullable=False),
    Column("tries", Text, nullable=False),
    Column("reservation", String(32), nullable=False),
    Column("most_usd", Float, nullable=True),
    Column("answer", LargeBinary, nullable=True),
    Column("usd", Float, nullable=True),
)
"""The questions that wait for a batch or whose answers are not stored as calls yet."""
abilities = Table(
    "abilities",
    metadata,
    Column("endpoint", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("value", Text, nullable=False),
)
"""What is known about models."""
Index("requests_by_batch", batch_requests.c.batch)
Index("calls_by_payer", calls.c.paid_by, calls.c.usd)
"""Contains all columns that a run's sum needs, so that the large rows are not read."""


def _create_postgresql(connection: Connection) -> None:
    from coreeval.tools.stores.postgresql_engine import ROW_NUMBER, adapt_tables, create_tables

    tables = adapt_tables(metadata, numbered=[calls.name])
    rows = tables.tables[calls.name]
    rows.indexes.clear()
    Index("calls_by_payer", rows.c.paid_by, rows.c[ROW_NUMBER], postgresql_include=[rows.c.usd])
    create_tables(connection, tables)


CALL_SCHEMA: Final = Schema(
    version=STORE_VERSIONS["the call store"],
    create=metadata.create_all,
    create_postgresql=_create_postgresql,
)
"""The schema of calls.db."""
