"""Executes GoogleSQL on DuckDB, and tells what BigQuery would have read for it."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from tests.support.bigquery.tables import INTEGERS, PARTITIONED_BY, create, insert_gal, insert_gkg

_MACROS = (
    "CREATE SCHEMA net",
    "CREATE MACRO net.host(url) AS lower(regexp_extract(url, '^[^:]+://([^/:?#]+)', 1))",
    # The marks are gone at once, which is what all statements do with them.
    "CREATE MACRO nfkd(letters) AS strip_accents(letters)",
    "CREATE MACRO code_points_to_string(points) AS chr(points[1]::INTEGER)",
)
"""Google's functions that neither sqlglot nor DuckDB knows."""
Parameters = Mapping[str, Any]


class BadQuery(Exception):
    """The statement is none, or names what is missing; `reason` is Google's word for it."""

    def __init__(self, message: str, reason: str = "invalidQuery") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Answer:
    """What a statement comes to."""

    fields: list[dict[str, str]]
    rows: list[tuple[Any, ...]]


class Engine:
    """GDELT's tables, and the statements that are asked of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database = duckdb.connect()
        create(self._database)
        for macro in _MACROS:
            self._database.execute(macro)

    def close(self) -> None:
        """Free the tables."""
        self._database.close()

    def add(self, *, gkg: Iterable[str] = (), gal: Iterable[str] = ()) -> None:
        """Put rows into the tables."""
        with self._lock:
            insert_gkg(self._database, gkg)
            insert_gal(self._database, gal)

    def scanned(self, sql: str, parameters: Parameters) -> int:
        """Return the bytes of the columns that a statement names, in the partitions it reads.

        A bound that is no parameter and no constant prunes nothing, as with BigQuery.

        Raises:
            BadQuery: it cannot be parsed, or names an unknown table or column.
        """
        tree = _parsed(sql)
        tables = {table.name for table in tree.find_all(exp.Table) if table.db}
        total = 0
        with self._lock:
            for table in tables:
                if table not in PARTITIONED_BY:
                    raise BadQuery(f"Not found: Table gdelt-bq:gdeltv2.{table}", "notFound")
                total += self._bytes(tree, table, parameters)
        return total

    def _bytes(self, tree: exp.Expr, table: str, parameters: Parameters) -> int:
        named = {column.name for column in tree.find_all(exp.Column)}
        described = self._database.execute(f"DESCRIBE gdeltv2.{table}").fetchall()
        sizes = [
            "8" if name in INTEGERS | {"date"} else f'coalesce(strlen("{name}"), 0) + 2'
            for name, *_ in described
            if name in named and name != "_PARTITIONTIME"
        ]
        bounds, values = _bounds(tree, PARTITIONED_BY[table], parameters)
        found = self._database.execute(
            f"SELECT coalesce(sum({' + '.join(sizes) or '0'}), 0) FROM gdeltv2.{table} {bounds}",
            values,
        ).fetchone()
        return int(found[0]) if found else 0

    def run(self, sql: str, parameters: Parameters) -> Answer:
        """Execute a statement.

        Raises:
            BadQuery: it cannot be executed.
        """
        translated, asked = _translated(sql)
        values = {name: value for name, value in parameters.items() if name in asked}
        with self._lock:
            try:
                found = self._database.execute(translated, values)
                described = found.description or []
                return Answer([_field(name, str(kind)) for name, kind, *_ in described],
                              found.fetchall())  # fmt: skip
            except duckdb.Error as error:
                raise BadQuery(str(error)) from error


@lru_cache(maxsize=8)
def _parsed(sql: str) -> exp.Expr:
    try:
        tree = sqlglot.parse_one(sql, dialect="bigquery")
    except sqlglot.errors.ParseError as error:
        raise BadQuery(f"Syntax error: {error}") from error
    for table in tree.find_all(exp.Table):
        table.set("catalog", None)
    return tree


@lru_cache(maxsize=8)
def _translated(sql: str) -> tuple[str, frozenset[str]]:
    """Return the statement for DuckDB, and the names of its parameters.

    What sqlglot leaves as it is gets mended: offsets that start at 0, and functions of Google's.
    """
    tree = _parsed(sql).copy()
    for offset in [each for each in tree.find_all(exp.Unnest) if each.args.get("offset")]:
        name, select = offset.args["offset"].name, offset.find_ancestor(exp.Select)
        for column in list(select.find_all(exp.Column)) if select else []:
            if column.name == name and not column.table:
                from_0 = exp.paren(exp.Sub(this=column.copy(), expression="1"))
                chosen = isinstance(column.parent, exp.Select)
                column.replace(exp.alias_(from_0, name) if chosen else from_0)
    for call in list(tree.find_all(exp.Normalize)):
        call.replace(exp.func("nfkd", call.this))
    asked = frozenset(each.name for each in tree.find_all(exp.Parameter))
    return tree.sql(dialect="duckdb"), asked


def _bounds(tree: exp.Expr, column: str, parameters: Parameters) -> tuple[str, list[datetime]]:
    """Return the condition on partitions that is known before anything is read."""
    signs: dict[type[exp.Expr], str] = {exp.GTE: ">=", exp.GT: ">", exp.LTE: "<=", exp.LT: "<"}
    conditions, values = [], []
    for test in tree.find_all(*signs):
        left, right = test.this, test.expression
        if (
            isinstance(left, exp.Column)
            and left.name == column
            and isinstance(right, exp.Parameter)
        ):
            conditions.append(f'"{column}" {signs[type(test)]} ?')
            values.append(parameters[right.name])
    return ("WHERE " + " AND ".join(conditions) if conditions else "", values)


def _field(name: str, kind: str) -> dict[str, str]:
    mode = "REPEATED" if kind.endswith("[]") else "NULLABLE"
    types = {"BIGINT": "INTEGER", "INTEGER": "INTEGER", "DOUBLE": "FLOAT", "BOOLEAN": "BOOLEAN"}
    return {"name": name, "type": types.get(kind.removesuffix("[]"), "STRING"), "mode": mode}
