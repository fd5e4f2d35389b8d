"""The tables of store.db that the intake writes; what is searched adds its own."""

from collections.abc import Sequence

from sqlalchemy import Column, Connection, Index, Integer, MetaData, String, Table, Text

from coreeval.tools.stores.sqlite import Migration

metadata = MetaData()

files = Table(
    "files",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("feed", String, nullable=False),
    Column("batch", Integer, nullable=True),
    Column("size", Integer, nullable=False),
    Column("md5", String(32), nullable=False),
    Column("state", String, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("articles", Integer, nullable=False),
    Column("bad", Text, nullable=False),
    Column("read_at", Integer, nullable=False),
)
"""Files that were read; `bad` is JSON, rows that were none by reason; times in epoch seconds."""
segments = Table(
    "segments",
    metadata,
    Column("path", String, primary_key=True),
    Column("day", String(10), nullable=False),
    Column("rows", Integer, nullable=False),
)
"""Parquet files under segments/ and signals/; `day` is the day of the crawl."""
holds = Table(
    "holds",
    metadata,
    Column("file", Integer, primary_key=True),
    Column("segment", String, primary_key=True),
)
"""Which segments have rows of which file."""
batches = Table(
    "batches",
    metadata,
    Column("feed", String, primary_key=True),
    Column("batch", Integer, primary_key=True),
    Column("state", String, nullable=False),
    Column("checked_at", Integer, nullable=False),
)
"""Quarter hours of a feed: `read`, in `part` (a file that is no copy of GDELT's), or `missing`."""
asked = Table(
    "asked",
    metadata,
    Column("feed", String, primary_key=True),
    Column("first", Integer, primary_key=True),
    Column("last", Integer, primary_key=True),
)
"""Stretches of batches, both ends included, that should be there."""
ignored = Table(
    "ignored",
    metadata,
    Column("name", String, primary_key=True),
    Column("reason", Text, nullable=False),
)
"""Files in a folder that were left out, and why."""
Index("files_by_md5", files.c.md5)


def _first(connection: Connection) -> None:
    metadata.create_all(connection)


MIGRATIONS: Sequence[Migration] = (_first,)
