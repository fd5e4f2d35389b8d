"""Finds samples with a text: by a trigram index if the run has one, otherwise text by text."""

from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, column, func, select, table, text, union_all
from sqlalchemy.sql.expression import CompoundSelect

from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.foreign_schema import SEARCH_INDEX
from coreeval.tools.stores.run_triggers import PENDING, UNINDEXED, can_index
from coreeval.tools.stores.sqlite import is_postgresql

MOST_SEARCH_CHARS = 500
"""The most characters of a search text; SQLite takes patterns of at most 50,000 bytes."""
TRIGRAM = 3
"""The fewest characters of a search text for which the index is used."""
RARE = 5
"""If more than one in this many samples may have the text, all samples are searched."""
_index = table(SEARCH_INDEX, column("rowid"), column(SEARCH_INDEX))
_unindexed = table(UNINDEXED, column("seq"))


def select_samples_with(part: str, engine: Engine) -> Select[tuple[int]] | CompoundSelect[int]:
    """Return the query for the numbers of the samples with a text; A to Z match in either case.

    The index only preselects samples, whose texts are then read, so the result is the same with and
    without it. Samples that have not ended or have just ended are not in it, and are all read.

    Args:
        part: A part of an id, of a text in any arm, or of a reason; the first `MOST_SEARCH_CHARS`
            characters count.
        engine: The run's database.
    """
    part = part[:MOST_SEARCH_CHARS]
    found = select(t.sought.c.seq).where(_has_part(part, engine))
    if len(part) < TRIGRAM or "\0" in part or not _has_index(engine):
        return found
    ended = select(_index.c.rowid).where(_index.c[SEARCH_INDEX].match(_write_query(part)))
    if not _is_rare(ended, engine):
        return found
    pending = select(t.listing.c.seq).where(t.listing.c.outcome == PENDING)
    others = select(_unindexed.c.seq).union(pending)
    return union_all(*(found.where(t.sought.c.seq.in_(among)) for among in (ended, others)))


def _has_part(part: str, engine: Engine) -> ColumnElement[bool]:
    words = t.sought.c.text
    if is_postgresql(engine):
        return words.icontains(part, autoescape=True)
    if "\0" in part:  # a LIKE pattern would end there
        return func.instr(func.lower(words), func.lower(part)) > 0
    return words.contains(part, autoescape=True)


def _has_index(engine: Engine) -> bool:
    if is_postgresql(engine) or not can_index():
        return False
    named = text("SELECT count(*) FROM sqlite_master WHERE name = :name")
    with engine.connect() as connection:
        return bool(connection.scalar(named, {"name": SEARCH_INDEX}))


def _is_rare(ended: Select[Any], engine: Engine) -> bool:
    """Return whether reading the samples found one by one is faster than reading all."""
    most = select(func.coalesce(func.max(t.sought.c.seq), 0) // RARE).scalar_subquery()
    some = select(func.count()).select_from(ended.limit(most + 1).subquery())
    with engine.connect() as connection:
        return bool(connection.scalar(select(some.scalar_subquery() <= most)))


def _write_query(part: str) -> str:
    """Return the FTS5 query for all trigrams of a text; it has no phrases without positions."""
    starts = range(len(part) - TRIGRAM + 1)
    trigrams = dict.fromkeys(part[start : start + TRIGRAM] for start in starts)
    return " AND ".join('"' + each.replace('"', '""') + '"' for each in trigrams)
