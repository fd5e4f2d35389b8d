"""What the tests of article texts have in common."""

import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest

from coreeval.config.knowledge import ArticlesConfig
from coreeval.schema import Evidence, Precision
from coreeval.tools.articles.page import PageReading, read_page
from coreeval.tools.articles.sources import ArticleTexts, Network, Refuses, open_articles
from coreeval.tools.gdelt.rows import evidence_id, host_of
from tests.support.news_site import TITLE

DAY = datetime(2026, 10, 5, 9, 0, tzinfo=UTC)
ARTICLES = Path(__file__).parents[3].parent / "shared" / "data" / "articles"


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of packed JSON lines of the development data; skip without it."""
    if not path.exists():
        pytest.skip("the development data is not beside this checkout")
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def evidence(
    url: str,
    title: str = TITLE,
    *,
    at: datetime = DAY,
    language: str = "en",
    precision: Precision = "crawl",
    snippet: str = "",
) -> Evidence:
    """Return a piece of evidence as a feed tells it."""
    return Evidence(
        id=evidence_id(url),
        url=url,
        domain=host_of(url),
        title=title,
        snippet=snippet,
        published_at=at,
        published_precision=precision,
        language=language,
        origin="test:1",
    )


class ReadsHere:
    """Reads pages in this process, which need not be started."""

    async def read(self, body: bytes, url: str) -> PageReading:
        """Read one page."""
        return read_page(body, url)

    async def close(self) -> None:
        """Do nothing."""


@asynccontextmanager
async def texts_of(
    caches: Path,
    network: Network | None = None,
    refuses: Refuses = lambda _: False,
    config: Mapping[str, object] = MappingProxyType({}),
    **more: object,
) -> AsyncIterator[ArticleTexts]:
    """Yield the texts of articles from the sources that a config names."""
    articles = ArticlesConfig.model_validate({**config, **more})
    async with open_articles(
        articles, "article", caches, network=network, refuses=refuses, readers=ReadsHere()
    ) as texts:
        yield texts
