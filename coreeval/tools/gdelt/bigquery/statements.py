"""The statements that are sent, and the check that none goes without its bounds.

One statement answers all queries of a run for one table, so what it costs depends on the window
alone. Its bounds are parameters: BigQuery reads only the days between them, and a sub-query in
their place would make it read every day there is (research: gdelt §3).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from coreeval.config.remote_news import Feed
from coreeval.schema import Window
from coreeval.tools.gdelt.bigquery.asks import Ask, Form
from coreeval.tools.gdelt.bigquery.sql import GAL_PAGES, GKG_PAGES, SEARCH

TABLES: dict[Feed, str] = {
    "gkg": "gdelt-bq.gdeltv2.gkg_partitioned",
    "gal": "gdelt-bq.gdeltv2.gal",
}
PARTITIONED_BY = {TABLES["gkg"]: "_PARTITIONTIME", TABLES["gal"]: "date"}
"""The tables that may be read, each with the column whose bounds decide what is read of it."""
LATE = timedelta(days=1)
"""How long after the window a page may be crawled that was published inside it; a batch of late
evening may also be in the next day's partition."""
ROWS = 60
"""Pages returned for each thing that is asked for, at most: twins and what the screen drops leave
about the 20 that a replacer is shown (research: pilot §2)."""
MOST_ROWS = 30_000
"""Pages returned for all of them together."""
FEWEST_ROWS = 10
COPIES = 3
"""Pages returned with one and the same title: two sites are offered, a third may be screened."""
_TABLE = re.compile(r"`([^`]*\.[^`]*)`")


class Unbounded(ValueError):
    """A statement that would read a whole table; it is never sent."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement and the values of its parameters."""

    feed: Feed
    sql: str
    start: datetime
    """Lower bound of the partitions, a midnight of UTC."""
    end: datetime
    """Upper bound, excluded."""
    window: Window
    asks: tuple[Ask, ...]
    forms: tuple[Form, ...]
    urls: tuple[str, ...] = ()
    """Pages that are wanted besides what is found."""

    @property
    def tables(self) -> frozenset[str]:
        """The tables that it names."""
        return frozenset(_TABLE.findall(self.sql))

    @property
    def rows(self) -> int:
        """Pages returned for each thing that is asked for, at most."""
        return max(FEWEST_ROWS, min(ROWS, MOST_ROWS // max(len(self.asks), 1)))


def statement(
    feed: Feed,
    window: Window,
    asked: Sequence[Ask],
    forms: Sequence[Form],
    urls: Sequence[str] = (),
) -> Statement:
    """Return the statement that asks one table for everything.

    Raises:
        Unbounded: it would read a whole table.
    """
    start, end = _partitions(feed, window)
    made = Statement(
        feed=feed,
        sql=SEARCH.replace("$pages", {"gkg": GKG_PAGES, "gal": GAL_PAGES}[feed].strip()),
        start=start,
        end=end,
        window=window,
        asks=tuple(asked),
        forms=tuple(forms),
        urls=tuple(urls),
    )
    check_bounds(made)
    return made


def _partitions(feed: Feed, window: Window) -> tuple[datetime, datetime]:
    """Return the days to be read; an article list is filed by when an article was published."""
    first, last = (_midnight(at) for at in (window.start, window.end - timedelta(microseconds=1)))
    after = last + timedelta(days=1)
    return (first, after) if feed == "gal" else (first, after + LATE)


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def check_bounds(statement: Statement) -> None:
    """Refuse a statement that reads more than some days of the known tables.

    Raises:
        Unbounded: it names another table, or one with more or less than both bounds behind it.
    """
    for table in _TABLE.findall(statement.sql):
        if table not in PARTITIONED_BY:
            raise Unbounded(f"{table} is no table that may be read")
    bounded = sum(
        len(re.findall(_bounds(table, column), statement.sql))
        for table, column in PARTITIONED_BY.items()
    )
    outside = _TABLE.sub("", statement.sql)
    if bounded != len(_TABLE.findall(statement.sql)) or not bounded or "gdelt" in outside:
        raise Unbounded("a table is read without bounds on its partitions")
    if not statement.start < statement.end:
        raise Unbounded(f"the bounds {statement.start} and {statement.end} hold no day")


def _bounds(table: str, column: str) -> str:
    return (
        rf"FROM `{re.escape(table)}`\s+"
        rf"WHERE {column} >= @first_day AND {column} < @end_day\s+\)"
    )
