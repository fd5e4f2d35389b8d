"""The migrations that make run.db, and bring an older one up."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, inspect, text

from coreeval.tools.stores.run_tables import (
    fetches,
    kept_evidence,
    metadata,
    predictions,
    train_items,
)
from coreeval.tools.stores.run_triggers import create_sums
from coreeval.tools.stores.sqlite import Migration


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


def _keep_sums(connection: Connection) -> None:
    """Let the file keep a list of its samples, and sums of calls, steps and verdicts."""
    _add(connection, "results", {"cause": "VARCHAR NOT NULL DEFAULT ''"})
    create_sums(connection)


def _add_clusters(connection: Connection) -> None:
    """Make room for what samples have in common; of those there it is not known."""
    for table in ("samples", "train_items"):
        _add(connection, table, {"cluster": "VARCHAR NOT NULL DEFAULT ''"})


MIGRATIONS: Sequence[Migration] = (
    _first,
    _add_to_calls,
    _add_freshness,
    _add_fetches,
    _tell_templates_apart,
    _add_train_items,
    _add_kept,
    _add_pulse,
    _keep_sums,
    _add_clusters,
)
