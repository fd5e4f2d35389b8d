"""Calls for tests of the call store, and run files from before something was kept."""

import sqlite3
from dataclasses import replace

from coreeval.tools.stores.call_records import SHARED, CallRecord, call_key, call_request

INSTRUCTIONS = "You label texts. " * (SHARED // 10)
"""Long enough to be kept once for all requests."""


def request(text: str = "hello", draw: int = 0, *, system: str = "") -> str:
    instructions = [{"role": "system", "content": system}] if system else []
    return call_request(
        provider="openai",
        endpoint="http://127.0.0.1/v1",
        model="m",
        parameters={"temperature": 0.0},
        schema={"name": "x", "schema": {}},
        messages=[*instructions, {"role": "user", "content": text}],
        draw=draw,
    )


def record(
    text: str = "hello",
    answer: str = '{"a": "\u00e9\U0001f600"}',
    *,
    system: str = "",
    **changes: object,
) -> CallRecord:
    asked = request(text, system=system)
    made = CallRecord(
        key=call_key(asked),
        draw=0,
        role="extractor",
        request=asked,
        response=answer,
        valid=True,
        prompt_tokens=12,
        cached_tokens=4,
        completion_tokens=3,
        model_returned="m-2026",
        finish_reason="stop",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1,
        method="json_schema",
        tries="no answer within 1 s\nbusy",
        usd=0.25,
        logprobs='[{"token": "{", "logprob": -0.5, "top_logprobs": []}]',
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def as_before(database: sqlite3.Connection, version: int) -> None:
    """Take from a run.db what keeps its sums, and call it a file of an earlier version."""
    found = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in found:
        database.execute(f"DROP TRIGGER {name}")
    for table in ("listing", "sought", "call_sums", "step_sums", "verdict_sums"):
        database.execute(f"DROP TABLE {table}")
    database.execute("DROP INDEX calls_by_key")
    database.execute("ALTER TABLE results DROP COLUMN cause")
    database.execute("UPDATE schema_version SET version = ?", (version,))
