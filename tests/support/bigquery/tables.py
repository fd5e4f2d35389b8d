"""GDELT's two tables as BigQuery has them, filled from rows as GDELT's files have them."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime

import duckdb

GKG_COLUMNS = [
    "GKGRECORDID", "DATE", "SourceCollectionIdentifier", "SourceCommonName", "DocumentIdentifier",
    "Counts", "V2Counts", "Themes", "V2Themes", "Locations", "V2Locations", "Persons", "V2Persons",
    "Organizations", "V2Organizations", "V2Tone", "Dates", "GCAM", "SharingImage", "RelatedImages",
    "SocialImageEmbeds", "SocialVideoEmbeds", "Quotations", "AllNames", "Amounts",
    "TranslationInfo", "Extras",
]  # fmt: skip
"""The columns in the order of the files, named as in BigQuery."""
INTEGERS = {"DATE", "SourceCollectionIdentifier"}
GAL_COLUMNS = ["date", "url", "domain", "outletName", "title", "desc", "lang", "author", "image"]
PARTITIONED_BY = {"gkg_partitioned": "_PARTITIONTIME", "gal": "date"}


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make both tables, empty."""
    gkg = [f'"{name}" {"BIGINT" if name in INTEGERS else "VARCHAR"}' for name in GKG_COLUMNS]
    gal = [f'"{name}" {"TIMESTAMP" if name == "date" else "VARCHAR"}' for name in GAL_COLUMNS]
    connection.execute("CREATE SCHEMA gdeltv2")
    connection.execute(
        f"CREATE TABLE gdeltv2.gkg_partitioned ({', '.join(gkg)}, _PARTITIONTIME TIMESTAMP)"
    )
    connection.execute(f"CREATE TABLE gdeltv2.gal ({', '.join(gal)})")


def insert_gkg(connection: duckdb.DuckDBPyConnection, lines: Iterable[str]) -> None:
    """Add rows of 27 columns; each goes to the partition of its batch's day."""
    rows = [line.split("\t") for line in lines]
    values = [
        [
            None if not value and name not in INTEGERS else value
            for name, value in zip(GKG_COLUMNS, row, strict=True)
        ]
        + [datetime.strptime(row[1][:8], "%Y%m%d")]
        for row in rows
    ]
    if values:
        marks = ", ".join("?" * len(values[0]))
        connection.executemany(f"INSERT INTO gdeltv2.gkg_partitioned VALUES ({marks})", values)


def insert_gal(connection: duckdb.DuckDBPyConnection, lines: Iterable[str]) -> None:
    """Add objects of an Article List."""
    values = []
    for line in lines:
        row = json.loads(line)
        at = datetime.fromisoformat(row["date"]).astimezone(UTC).replace(tzinfo=None)
        values.append([at, *(row.get(name) for name in GAL_COLUMNS[1:])])
    if values:
        marks = ", ".join("?" * len(GAL_COLUMNS))
        connection.executemany(f"INSERT INTO gdeltv2.gal VALUES ({marks})", values)
