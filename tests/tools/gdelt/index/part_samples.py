"""Small stores, made of rows as the reader of files writes them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from coreeval.schema import Evidence
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.news_index import NewsIndex
from coreeval.tools.gdelt.index.pages import add_functions
from coreeval.tools.gdelt.index.store_catalog import StoreLayout, StoreStats
from coreeval.tools.gdelt.sync.segment_rows import ARTICLES
from coreeval.tools.gdelt.sync.store_ledger import FileRow, LedgerEntry, SegmentRow, open_ledger

SEEN = datetime(2026, 6, 10, 12, tzinfo=UTC)
TITLE = "Ministers agree to fund ten new ferries"
Row = dict[str, Any]


def row(url: str, title: str = TITLE, seen: datetime = SEEN, stated: datetime | None = None,
        names: Sequence[tuple[str, str]] = (), **changed: object) -> Row:  # fmt: skip
    return {
        "url": url, "title": title, "snippet": "", "crawled_at": int(seen.timestamp()),
        "stated_at": int(stated.timestamp()) if stated else None, "language": "en", "feed": "gkg",
        "file": 0, "line": 1, "words": None, "themes": [],
        "entities": [{"name": name, "type": kind, "at": 0, "n": 1} for name, kind in names],
    } | changed  # fmt: skip


def add_rows(store: Path, *rows: Row, files: Sequence[str] = ("a", "b")) -> None:
    """Write a new segment for each crawl day of the rows."""
    days = defaultdict(list)
    for one in rows:
        days[datetime.fromtimestamp(one["crawled_at"], tz=UTC).date().isoformat()].append(one)
    listed = {}
    for day, chosen in days.items():
        folder = store / "segments" / day
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{len(list(folder.iterdir())):08d}-00000000.parquet"
        pq.write_table(pa.Table.from_pylist(chosen, schema=ARTICLES), path)
        listed[path.relative_to(store).as_posix()] = day, len(chosen)
    _list(store, listed, files)


def _list(store: Path, listed: Mapping[str, tuple[str, int]], files: Sequence[str] = ()) -> None:
    segments = [SegmentRow(path, day, rows) for path, (day, rows) in listed.items()]
    with open_ledger(StoreLayout(store).ledger) as ledger:
        known = {file.name for file in ledger.files()}
        rows = [
            FileRow(
                id=number, name=name, feed="gkg", batch=None, size=0, md5="", state="read",
                rows=0, articles=0, read_at=0,
            )
            for number, name in enumerate(files) if name not in known
        ]  # fmt: skip
        ledger.commit(LedgerEntry(files=rows, segments=segments))


def add_signals(store: Path, day: str, **sources: int) -> None:
    """Write how many sources tell of a page, given as `site=sources` of `https://site.example/x`."""
    path = store / "signals" / day / "00000001-00000000.parquet"
    path.parent.mkdir(parents=True)
    urls = [f"https://{site}.example/x" for site in sources]
    pq.write_table(pa.table({"url": urls, "num_sources": list(sources.values())}), path)
    _list(store, {path.relative_to(store).as_posix(): (day, len(urls))})


def offered(store: Path, *rows: Row) -> tuple[dict[str, Evidence], StoreStats]:
    """Return what a store of these rows offers, by URL, and what it was made of."""
    add_rows(store, *rows)
    compact(store)
    shelf = NewsIndex(store)
    found = {one.url: one for one in held(shelf)}
    shelf.close()
    return found, shelf.stats()


def held(shelf: NewsIndex) -> tuple[Evidence, ...]:
    """Return all articles of a store."""
    return shelf.evidence(range(len(shelf.articles.published)))


def prior_of(store: Path, word: str) -> float:
    """Return what the only article with a word has in its score whatever is asked."""
    shelf = NewsIndex(store)
    (index,) = shelf.indexes
    term = index.terms.find(word)
    assert term is not None
    (item,) = index.words.of(term)
    shelf.close()
    return float(shelf.articles.prior[item >> 1])


@contextmanager
def functions() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database that has the functions that parts are made with."""
    with duckdb.connect() as database:
        add_functions(database)
        yield database
