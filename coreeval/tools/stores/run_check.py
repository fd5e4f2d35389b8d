"""Checks whether CoreEval can have written the rows of run.db.

A run may be from somebody else. Checking every row before each command would take longer than most
commands, so the rows are checked after a command has failed: an invalid row is then the cause, and
if all are valid, it is a bug in CoreEval.
"""

import json
import math
from collections.abc import Callable, Iterator
from datetime import datetime
from string import ascii_uppercase
from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import JSON, Boolean, Column, Connection, Engine, Float, Integer, Table
from typing_extensions import TypedDict

from coreeval.errors import RunCorrupt
from coreeval.schema import (
    AnswerKind,
    Evidence,
    Extraction,
    Freshness,
    Outcome,
    Plan,
    Policy,
    Rung,
    SemanticStatus,
    TrainStatus,
    Triple,
)
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.heartbeat import REPAIR
from coreeval.tools.stores.sqlite import is_postgresql

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""The errors that an invalid value can cause."""
_CHUNK = 2000
_MOST_CHARS = 200
"""The most characters of a problem, which may quote a value."""


class _Note(TypedDict, total=False):
    """The parts of a step's note that are read later."""

    evidence: dict[str, Rung]
    asked: list[dict[str, Any]]
    extraction: Extraction | None
    policy: Policy
    plan: Plan | None


class _Targets(TypedDict):
    targets: list[str]


class _ProcessNote(TypedDict):
    stage: str
    roles: list[dict[str, Any]]
    waits: list[dict[str, Any]]
    spend: NotRequired[dict[str, Any] | None]


_TEXTS = TypeAdapter[Any](dict[str, str])
_TEXTS_OR_NONE = TypeAdapter[Any](dict[str, str] | None)
_NOTE = TypeAdapter[Any](_Note)
_MAPPING = TypeAdapter[Any](dict[str, Any])
_STAGES: dict[str, TypeAdapter[Any]] = {
    "assemble": TypeAdapter(dict[str, int]),
    "evaluate": TypeAdapter(_Targets),
    "pcr": TypeAdapter(_Targets),
    "numleak": TypeAdapter(_Targets),
}
_SHAPES: dict[Column[Any], TypeAdapter[Any]] = {
    t.samples.c.fields: _TEXTS,
    t.train_items.c.fields: _TEXTS,
    t.train_items.c.semantic: _TEXTS_OR_NONE,
    t.train_items.c.status: TypeAdapter(TrainStatus),
    t.results.c.semantic: _TEXTS_OR_NONE,
    t.results.c.updated: _TEXTS_OR_NONE,
    t.results.c.freshness: TypeAdapter(Freshness | None),
    t.results.c.outcome: TypeAdapter(Outcome),
    t.results.c.rung: TypeAdapter(Rung),
    t.results.c.semantic_status: TypeAdapter(SemanticStatus),
    t.facts.c.before: TypeAdapter(Triple | None),
    t.facts.c.after: TypeAdapter(Triple),
    t.evidence.c.body: TypeAdapter(Evidence),
    t.kept_evidence.c.body: TypeAdapter(Evidence),
    t.steps.c.detail: _MAPPING,
    t.predictions.c.kind: TypeAdapter(AnswerKind),
    t.stages.c.detail: _MAPPING,
    t.heartbeat.c.in_flight: TypeAdapter(dict[str, dict[str, str]]),
    t.heartbeat.c.pulse: TypeAdapter(_ProcessNote | None),
    t.fetches.c.notes: TypeAdapter(list[str]),
    t.listing.c.outcome: TypeAdapter(Outcome | Literal["pending"]),
}
"""The types of the values inside columns, beyond the column's own type."""
_MOMENTS = (t.results.c.ended_at, t.steps.c.started_at, t.stages.c.ended_at, t.heartbeat.c.at)
_OWN = ", ".join(f"'{name}'" for name in (*ascii_uppercase, "unit", "tolerance", "program"))
"""Fields that only some samples of a benchmark have: options by letter, and details of answers."""
_ALL_KEYS = (
    "(SELECT group_concat(key) FROM (SELECT key FROM json_each({}) AS each ORDER BY key) AS k)"
)
_KEYS = _ALL_KEYS.replace(" ORDER BY", f" WHERE key NOT IN ({_OWN}) ORDER BY")
_IN_POSTGRESQL = {
    "group_concat(key)": "string_agg(key, ',')",
    "json_each(s.detail, '$.evidence') e": "json_each(s.detail -> 'evidence') e",
}
"""Terms with other names in PostgreSQL."""
_OWN_KEYS, _FIRST_KEYS = (
    _KEYS.format(fields)
    for fields in ("s.fields", "(SELECT fields FROM samples ORDER BY seq LIMIT 1)")
)
_IDS = "(SELECT id FROM samples UNION ALL SELECT id FROM train_items)"
_ODD_REFERENCES = {
    "a sample whose fields differ from those of the first sample": f"""
        SELECT s.id FROM samples s WHERE {_OWN_KEYS} IS DISTINCT FROM {_FIRST_KEYS} LIMIT 1
    """,
    "two samples with the same label and different label names": """
        SELECT min(id) FROM samples GROUP BY label HAVING count(DISTINCT label_text) > 1 LIMIT 1
    """,
    "two samples with different labels and the same label name": """
        SELECT min(id) FROM samples GROUP BY label_text HAVING count(DISTINCT label) > 1 LIMIT 1
    """,
    "a result without a sample": """
        SELECT sample_id FROM results WHERE sample_id NOT IN (SELECT id FROM samples) LIMIT 1
    """,
    "an accepted sample without a text": """
        SELECT sample_id FROM results
        WHERE outcome = 'accepted' AND coalesce(CAST(updated AS TEXT), 'null') = 'null' LIMIT 1
    """,
    "a reworded sample without a text": """
        SELECT sample_id FROM results
        WHERE semantic_status = 'reworded'
        AND coalesce(CAST(semantic AS TEXT), 'null') = 'null' LIMIT 1
    """,
    **{
        f"a text whose fields differ from those of its sample ({arm})": f"""
            SELECT s.id FROM samples s JOIN results r ON r.sample_id = s.id
            WHERE coalesce(CAST(r.{arm} AS TEXT), 'null') <> 'null'
            AND {_ALL_KEYS.format("s.fields")} IS DISTINCT FROM {_ALL_KEYS.format(f"r.{arm}")}
            LIMIT 1
        """
        for arm in ("semantic", "updated")
    },
    "a fact without a result": """
        SELECT sample_id FROM facts WHERE sample_id NOT IN (SELECT sample_id FROM results) LIMIT 1
    """,
    "a fact without its evidence": """
        SELECT f.sample_id FROM facts f JOIN results r ON r.sample_id = f.sample_id
        WHERE NOT EXISTS (
            SELECT 1 FROM kept_evidence k WHERE k.id = f.evidence_id AND r.kept_from IS NOT NULL
        ) AND NOT EXISTS (
            SELECT 1 FROM evidence e WHERE e.id = f.evidence_id AND r.kept_from IS NULL
        ) LIMIT 1
    """,
    "a step with missing news": """
        SELECT s.sample_id FROM steps s, json_each(s.detail, '$.evidence') e
        WHERE s.node = 'retrieve' AND e.key NOT IN (SELECT id FROM evidence) LIMIT 1
    """,
    "a row of steps without a sample": f"""
        SELECT sample_id FROM steps WHERE sample_id NOT IN {_IDS}
        AND substr(sample_id, 1, {len(t.TARGET_SUBJECT)}) <> '{t.TARGET_SUBJECT}' LIMIT 1
    """,
    **{
        f"a row of {name} without a sample": f"""
            SELECT sample_id FROM {name} WHERE sample_id NOT IN {_IDS} LIMIT 1
        """
        for name in ("verdicts", "predictions")  # calls are kept if a sample is removed
    },
    "a list with missing samples": """
        SELECT l.sample FROM listing l LEFT JOIN samples s ON s.seq = l.seq AND s.id = l.sample
        WHERE s.id IS NULL LIMIT 1
    """,
    "a sample that is in no list": """
        SELECT id FROM samples WHERE seq NOT IN (SELECT seq FROM listing) LIMIT 1
    """,
}
"""Defects that no single row shows, each with a query for the id of the first affected sample."""


def explain_fault(engine: Engine, error: BaseException | None) -> None:
    """Report an error of a reader of run.db as damage if the file has an invalid row.

    Raises:
        RunCorrupt: the file has an invalid row.
    """
    if isinstance(error, RunCorrupt):
        error.where = error.where or str(engine.url.database)
    if isinstance(error, FAULTS) and (odd := find_odd_row(engine)):
        raise odd_row_error(engine, odd) from error


def odd_row_error(engine: Engine, odd: str) -> RunCorrupt:
    """Return the error to show for an invalid row."""
    return RunCorrupt(
        f"run.db contains data that CoreEval does not write: {odd}",
        where=str(engine.url.database),
        hint=REPAIR,
    )


def find_odd_row(engine: Engine) -> str:
    """Return the defect of the first row that CoreEval cannot have written; "" if there is none.

    Raises:
        RunError: the file cannot be read.
    """
    with engine.connect() as connection:
        for table in t.metadata.sorted_tables:
            for row in _rows(connection, table):
                if why := _find_problem(table, row):
                    key = ", ".join(str(row[column.name]) for column in table.primary_key)
                    return f"{table.name} of {key[:_MOST_CHARS]!r}: {why[:_MOST_CHARS]}"
        for what, query in _ODD_REFERENCES.items():
            for (found,) in connection.exec_driver_sql(_translate(query, engine)):
                return f"{what}: {str(found)[:_MOST_CHARS]!r}"
    return ""


def find_odd_detail(stage: str, detail: object) -> str:
    """Return the defect of the detail that a stage stored; "" if there is none."""
    return _try(lambda: _STAGES.get(stage, _MAPPING).validate_json(json.dumps(detail)))


def _rows(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table with the values as stored."""
    there = is_postgresql(connection.engine)
    names = ", ".join(
        _as_stored(column) if there else f'"{column.name}"' for column in table.columns
    )
    found = connection.execution_options(yield_per=_CHUNK).exec_driver_sql(
        f"SELECT {names} FROM {table.name}"
    )
    return (dict(row) for row in found.mappings())


def _as_stored(column: Column[Any]) -> str:
    """Return an expression for a column's value in SQLite: JSON as text."""
    name = f'"{column.name}"'
    return f"CAST({name} AS TEXT) AS {name}" if isinstance(column.type, JSON) else name


def _translate(query: str, engine: Engine) -> str:
    if is_postgresql(engine):
        for ours, theirs in _IN_POSTGRESQL.items():
            query = query.replace(ours, theirs)
    return query


def _find_problem(table: Table, row: dict[str, Any]) -> str:
    for column in table.columns:
        if why := _try(lambda at=column: _check_cell(at, row[at.name])):  # type: ignore[misc]
            return f"{column.name}: {why}"
    return _try(lambda: _check_row(table, row))


def _try(check: Callable[[], object]) -> str:
    """Return the reason that a check fails, or "" if it passes."""
    try:
        check()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return ": ".join([".".join(map(str, first["loc"])), first["msg"]]).removeprefix(": ")
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _check_cell(column: Column[Any], value: Any) -> None:  # noqa: ANN401 - whatever SQLite has
    """Reject a value that is not valid for its column.

    Raises:
        ValueError: the value is not valid.
    """
    if value is None and column.nullable:
        return
    kinds: tuple[type, ...] = _kinds(column)
    if type(value) not in kinds:
        raise ValueError(f"{type(value).__name__} instead of {kinds[0].__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    shape = _SHAPES.get(column)
    if shape and isinstance(column.type, JSON):
        shape.validate_json(value, strict=True)
    elif shape:
        shape.validate_python(value)
    if column in _MOMENTS:
        datetime.fromisoformat(value)


def _kinds(column: Column[Any]) -> tuple[type, ...]:
    if isinstance(column.type, Boolean):
        return (int, bool)
    if isinstance(column.type, Integer):
        return (int,)
    return (float, int) if isinstance(column.type, Float) else (str,)


def _check_row(table: Table, row: dict[str, Any]) -> None:
    """Reject a row whose values contradict each other.

    Raises:
        ValueError: they contradict each other.
    """
    if table in (t.evidence, t.kept_evidence):
        found = Evidence.model_validate_json(row["body"])
        _require_zone(found.published_at)
        if found.id != row["id"]:
            raise ValueError(f"its body contains the evidence {found.id!r}")
    elif table is t.results and row["freshness"] not in (None, "null"):
        _require_zone(Freshness.model_validate_json(row["freshness"]).earliest)
    elif table is t.predictions:
        _check_prediction(row)
    elif table is t.stages:
        _STAGES.get(row["name"], _MAPPING).validate_json(row["detail"])
    elif table is t.steps:
        _NOTE.validate_json(row["detail"])


def _check_prediction(row: dict[str, Any]) -> None:
    if (row["kind"] == "answered") != bool(row["answer"]):
        raise ValueError("a prediction has an answer if and only if it is answered")
    if (row["right"] is None) != (row["score"] is None):
        raise ValueError("a graded prediction is right or wrong, and has a score")
    if row["score"] is not None and not 0 <= row["score"] <= 1:
        raise ValueError("a score must be from 0 to 1")


def _require_zone(moment: datetime) -> None:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
