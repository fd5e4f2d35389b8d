"""Articles that came over a network, searched by the very code of the local store.

What came back is a small store of its own: the same dates, screen, stories and ranking hold.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from coreeval.schema import EntityQuery, Evidence, Window
from coreeval.tools.gdelt.parts.compact import compact
from coreeval.tools.gdelt.parts.shelf import Shelf
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.search.batch import search
from coreeval.tools.gdelt.store.layout import Layout
from coreeval.tools.gdelt.store.ledger import Entry, FileRow, opened
from coreeval.tools.gdelt.store.segments import write_articles, write_signals
from coreeval.tools.gdelt.store.tables import SIGNALS, articles_table

DAY_S = 86_400


class Found:
    """Some articles, ready to be searched.

    Args:
        shelf: The store that was made of them.
        origins: Where each article came from, in order.
    """

    def __init__(self, shelf: Shelf, origins: Sequence[str]) -> None:
        self._shelf = shelf
        self._origins = origins

    def ranked(
        self, queries: Sequence[EntityQuery], window: Window, k: int, worst: int
    ) -> dict[str, tuple[Evidence, ...]]:
        """Return up to `k` pieces of evidence for each query, best first.

        `worst` is the place in `PRECISIONS` of the least certain publication time.
        """
        best = search(self._shelf, queries, window, k, worst)
        return {
            query.id: tuple(map(self._traced, self._shelf.evidence(articles)))
            for query, articles in zip(queries, best, strict=True)
        }

    def _traced(self, item: Evidence) -> Evidence:
        """Name the rows of the source in place of those of the store."""
        lines = (int(row.rpartition(":")[2]) for row in item.origin.split("; "))
        return item.model_copy(update={"origin": "; ".join(self._origins[at - 1] for at in lines)})


@contextmanager
def shelved(
    articles: Sequence[Article], sites: Mapping[str, int] | None = None
) -> Iterator[Found | None]:
    """Make a store of articles for as long as the block lasts; None where none is usable.

    Args:
        articles: What came back; several about one page are joined.
        sites: How many sites tell of a page, by URL, where the source counted them.
    """
    with TemporaryDirectory(prefix="coreeval-") as folder:
        store = Path(folder) / "store"
        _write(store, articles, sites or {})
        made = compact(store)
        if not made.parts:
            yield None
            return
        shelf = Shelf(store)
        try:
            yield Found(shelf, [one.origin for one in articles])
        finally:
            shelf.close()


def _write(store: Path, articles: Sequence[Article], sites: Mapping[str, int]) -> None:
    layout = Layout(store)
    layout.prepare()
    rows = len(articles)
    file = FileRow(
        id=1, name="found", feed="gkg", batch=None, size=0, md5="",
        state="read", rows=rows, articles=rows, read_at=0,
    )  # fmt: skip
    entry = Entry(files=[file], segments=write_articles(store, [(1, _table(articles))]))
    entry.segments += write_signals(store, list(_signals(articles, sites)), lambda day: day)
    with opened(layout.ledger) as ledger:
        ledger.commit(entry)


def _table(articles: Sequence[Article]) -> object:
    return articles_table(
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
    """Yield how many sites tell of the pages of each crawl day, days counted since 1970."""
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
