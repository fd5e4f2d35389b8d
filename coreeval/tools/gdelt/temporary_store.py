"""Searches articles from a network with the local store's code.

The articles form a small store, with the same dating, screening, stories and ranking.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from coreeval.schema import EntityQuery, Evidence, Window
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.news_index import NewsIndex
from coreeval.tools.gdelt.index.ranking import search
from coreeval.tools.gdelt.index.store_catalog import StoreLayout
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.sync.intake import write_articles, write_signals
from coreeval.tools.gdelt.sync.segment_rows import SIGNALS, build_articles_table
from coreeval.tools.gdelt.sync.store_ledger import FileRow, LedgerEntry, open_ledger

DAY_S = 86_400


class TemporaryStore:
    """A searchable store of some articles.

    Args:
        shelf: The store of the articles.
        origins: The origin of each article, in order.
    """

    def __init__(self, index: NewsIndex, origins: Sequence[str]) -> None:
        self._shelf = index
        self._origins = origins

    def rank_evidence(
        self, queries: Sequence[EntityQuery], window: Window, k: int, worst: int
    ) -> dict[str, tuple[Evidence, ...]]:
        """Return up to `k` pieces of evidence for each query, best first.

        `worst` is the index in `PRECISIONS` of the least certain publication time to accept.
        """
        best = search(self._shelf, queries, window, k, worst)
        return {
            query.id: tuple(map(self._restore_origins, self._shelf.evidence(articles)))
            for query, articles in zip(queries, best, strict=True)
        }

    def _restore_origins(self, item: Evidence) -> Evidence:
        """Return evidence that names the rows of the source instead of the store's."""
        lines = (int(row.rpartition(":")[2]) for row in item.origin.split("; "))
        return item.model_copy(update={"origin": "; ".join(self._origins[at - 1] for at in lines)})


@contextmanager
def open_temporary_store(
    articles: Sequence[Article], sites: Mapping[str, int] | None = None
) -> Iterator[TemporaryStore | None]:
    """Open a temporary store of articles for the block; None if none of them is usable.

    Args:
        articles: The articles returned; several about one page are merged.
        sites: The number of sites that report on a page, by URL, if the source counted them.
    """
    with TemporaryDirectory(prefix="coreeval-") as folder:
        store = Path(folder) / "store"
        _write_store(store, articles, sites or {})
        made = compact(store)
        if not made.parts:
            yield None
            return
        index = NewsIndex(store)
        try:
            yield TemporaryStore(index, [one.origin for one in articles])
        finally:
            index.close()


def _write_store(store: Path, articles: Sequence[Article], sites: Mapping[str, int]) -> None:
    layout = StoreLayout(store)
    layout.prepare()
    rows = len(articles)
    file = FileRow(
        id=1, name="found", feed="gkg", batch=None, size=0, md5="",
        state="read", rows=rows, articles=rows, read_at=0,
    )  # fmt: skip
    entry = LedgerEntry(files=[file], segments=write_articles(store, [(1, _table(articles))]))
    entry.segments += write_signals(store, list(_signals(articles, sites)), lambda day: day)
    with open_ledger(layout.ledger) as ledger:
        ledger.commit(entry)


def _table(articles: Sequence[Article]) -> object:
    return build_articles_table(
        {
            "url": [one.url for one in articles],
            "title": [one.title for one in articles],
            "snippet": [one.snippet for one in articles],
            "crawled_at": [int(one.crawled_at.timestamp()) for one in articles],
            "stated_at": [
                int(one.stated_at.timestamp()) if one.stated_at else None for one in articles
            ],
            "language": [one.language for one in articles],
            "feed": ["gkg"] * len(articles),
            "line": list(range(1, len(articles) + 1)),
            "entities": [
                [{"name": name.name, "type": name.type, "at": 0, "n": 1} for name in one.entities]
                for one in articles
            ],
        }
    )


def _signals(articles: Sequence[Article], sites: Mapping[str, int]) -> Iterator[tuple[int, object]]:
    """Yield the sites per page of each crawl day, with days counted since 1970."""
    by_day: defaultdict[int, set[str]] = defaultdict(set)
    for one in articles:
        if one.url in sites:
            by_day[int(one.crawled_at.timestamp()) // DAY_S].add(one.url)
    for day, found in by_day.items():
        urls = sorted(found)
        columns = dict.fromkeys(SIGNALS.names, [None] * len(urls)) | {
            "url": urls,
            "num_sources": [sites[url] for url in urls],
        }
        yield day, SIGNALS.empty_table().from_pydict(columns, schema=SIGNALS)
