"""The tables of run.db, and the migrations that make them."""

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    text,
)

from coreeval.tools.stores.sql import Migration

metadata = MetaData()

samples = Table(
    "samples",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("split", String, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("label", Integer, nullable=False),
    Column("label_text", String, nullable=False),
)
results = Table(
    "results",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("outcome", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("rung", String, nullable=False),
    Column("semantic_status", String, nullable=False),
    Column("semantic", JSON),
    Column("updated", JSON),
    Column("original_label", String, nullable=False),
    Column("ended_at", String, nullable=False),
    Column("freshness", JSON),
    Column("kept_from", String),
)
facts = Table(
    "facts",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("ord", Integer, primary_key=True),
    Column("field", String, nullable=False),
    Column("before", JSON),
    Column("after", JSON, nullable=False),
    Column("evidence_id", String, nullable=False),
    Column("quote", Text, nullable=False),
)
evidence = Table(
    "evidence",
    metadata,
    Column("id", String, primary_key=True),
    Column("body", JSON, nullable=False),
)
kept_evidence = Table(
    "kept_evidence",
    metadata,
    Column("id", String, primary_key=True),
    Column("body", JSON, nullable=False),
    Column("snippet_sha256", String, nullable=False),
)
steps = Table(
    "steps",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("node", String, primary_key=True),
    Column("started_at", String, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("error", Text, nullable=False),
    Column("detail", JSON, nullable=False),
)
verdicts = Table(
    "verdicts",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("node", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("passed", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
)
calls = Table(
    "calls",
    metadata,
    Column("sample_id", String, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("node", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("role", String, nullable=False),
    Column("model", String, nullable=False),
    Column("draw", Integer, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False, server_default="0"),
    Column("completion_tokens", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("method", String, nullable=False, server_default=""),
    Column("tries", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("usd", Float, nullable=True),
)
bad_rows = Table(
    "bad_rows",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("file", String, nullable=False),
    Column("line", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("text", Text, nullable=False),
)
predictions = Table(
    "predictions",
    metadata,
    Column("target", String, primary_key=True),
    Column("source", String, primary_key=True),
    Column("template", Integer, primary_key=True),
    Column("sample_id", String, primary_key=True),
    Column("answer", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("version", String, nullable=False),
    sqlite_with_rowid=False,  # it is large, and mostly key
)
stages = Table(
    "stages",
    metadata,
    Column("name", String, primary_key=True),
    Column("ended_at", String, nullable=False),
    Column("detail", JSON, nullable=False),
)
heartbeat = Table(
    "heartbeat",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("pid", Integer, nullable=False),
    Column("host", String, nullable=False),
    Column("at", String, nullable=False),
    Column("in_flight", JSON, nullable=False),
    Column("pulse", JSON),
)
fetches = Table(
    "fetches",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("at", String, nullable=False),
    Column("backend", String, nullable=False),
    Column("queries", Integer, nullable=False),
    Column("found", Integer, nullable=False),
    Column("bytes_billed", Integer, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("notes", JSON, nullable=False),
)
train_items = Table(
    "train_items",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("split", String, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("label", Integer, nullable=False),
    Column("label_text", String, nullable=False),
    Column("status", String, nullable=False),
    Column("semantic", JSON),
    Column("reason", Text, nullable=False),
)
Index("results_by_outcome", results.c.outcome)


def _first(connection: Connection) -> None:
    metadata.create_all(connection)


_ADDED = {
    "cached_tokens": "INTEGER NOT NULL DEFAULT 0",
    "method": "VARCHAR NOT NULL DEFAULT ''",
    "tries": "TEXT NOT NULL DEFAULT ''",
    "error": "TEXT NOT NULL DEFAULT ''",
    "usd": "FLOAT",
}


def _add_to_calls(connection: Connection) -> None:
    """Add what is known of a call to a file of version 1."""
    _add(connection, "calls", _ADDED)


def _add_freshness(connection: Connection) -> None:
    """Add how new a sample's evidence is to a file of version 2: not known of what is there."""
    _add(connection, "results", {"freshness": "JSON"})


def _add(connection: Connection, table: str, columns: Mapping[str, str]) -> None:
    """Add columns to a table that lacks them; a new file is created with them."""
    there = {column["name"] for column in inspect(connection).get_columns(table)}
    for name, form in columns.items():
        if name not in there:
            connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {name} {form}"))


def _add_fetches(connection: Connection) -> None:
    """Add what was asked of remote news sources; a new file is created with it."""
    fetches.create(connection, checkfirst=True)


_OLD_ANSWERS = """
    INSERT INTO predictions
    SELECT
        target, arm, CASE WHEN target LIKE 'offline:%' THEN 0 ELSE 1 END, sample_id, answer,
        CASE
            WHEN valid THEN 'answered'
            WHEN reason LIKE '%the last one: refusal' OR reason LIKE '% declined: %' THEN 'refused'
            WHEN reason LIKE '%the last one: truncated' THEN 'truncated'
            ELSE 'unparsed'
        END,
        reason, ''
    FROM old_predictions
"""


def _tell_templates_apart(connection: Connection) -> None:
    """Make room for answers to further templates: of those there, models had seen the first."""
    there = {column["name"] for column in inspect(connection).get_columns("predictions")}
    if "template" in there:
        return
    connection.execute(text("ALTER TABLE predictions RENAME TO old_predictions"))
    predictions.create(connection)
    connection.execute(text(_OLD_ANSWERS))
    connection.execute(text("DROP TABLE old_predictions"))


def _add_train_items(connection: Connection) -> None:
    """Add the drawn items of the train split; a new file is created with them."""
    train_items.create(connection, checkfirst=True)


def _add_kept(connection: Connection) -> None:
    """Make room for samples that were taken from a release; a new file is created with it."""
    _add(connection, "results", {"kept_from": "VARCHAR"})
    kept_evidence.create(connection, checkfirst=True)


def _add_pulse(connection: Connection) -> None:
    """Make room for what a heartbeat knows of the run; a new file is created with it."""
    _add(connection, "heartbeat", {"pulse": "JSON"})


MIGRATIONS: Sequence[Migration] = (
    _first,
    _add_to_calls,
    _add_freshness,
    _add_fetches,
    _tell_templates_apart,
    _add_train_items,
    _add_kept,
    _add_pulse,
)
