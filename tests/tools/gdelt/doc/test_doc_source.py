"""The same articles are ranked as the local store ranks them."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.schema import EntityQuery, Evidence, Precision, Window
from coreeval.tools.gdelt.local import open_local
from tests.support.doc_server import DocServer, listed, recorded, refusing
from tests.tools.gdelt.doc.kit import Row, need_recorded, opened

AUTUMN = Window(start=datetime(2025, 8, 1, tzinfo=UTC), end=datetime(2025, 11, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def articles() -> list[Row]:
    """Return all articles that were recorded."""
    return [*recorded(need_recorded())]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the stores of articles."""
    return tmp_path_factory.mktemp("stores")


async def both(
    rows: list[Row], asked: EntityQuery, k: int, kept: Path, folder: Path, precision: Precision
) -> tuple[list[Evidence], list[Evidence]]:
    """Ask the service and the local store about the same articles, those of what is asked."""
    news = kept / f"{asked.text}.json"
    if not news.exists():
        news.write_text(json.dumps({"articles": [listed(row) for row in rows]}))
    with open_local(news, kept, min_precision=precision) as store:
        local = await store.fetch([asked], AUTUMN, k)
    async with DocServer(rows).running() as server:
        source = opened(server, folder, min_precision=precision)
        remote = await source.fetch([asked], AUTUMN, k)
    return [*remote.by_query[asked.id]], [*local.by_query[asked.id]]


@pytest.mark.parametrize("precision", ["crawl", "cluster", "url"])
@pytest.mark.parametrize("name", ["Bill Gates", "ExxonMobil", "Nestle"])
async def test_recorded_news_comes_in_the_order_of_the_local_store(
    name: str, precision: Precision, articles: list[Row], kept: Path, tmp_path: Path
) -> None:
    rows = [row for row in articles if name in str(row["title"])]
    rows = [row for row in rows if row["language"] == "English"][:240]
    asked = EntityQuery(id="q", text=name)
    remote, local = await both(rows, asked, 1000, kept, tmp_path, precision)
    assert remote
    unlike = {"origin": ""}
    assert [item.model_copy(update=unlike) for item in remote] == [
        item.model_copy(update=unlike) for item in local
    ]


async def test_topics_of_recorded_news_are_weighed_as_in_the_local_store(
    articles: list[Row], kept: Path, tmp_path: Path
) -> None:
    rows = [row for row in articles if "renewable" in str(row["title"]).lower()]
    asked = EntityQuery(id="q", text="renewable energy", rung="concept")
    remote, local = await both(rows, asked, 5, kept, tmp_path, "crawl")
    assert len(remote) == 5 and {item.id for item in remote} == {item.id for item in local}


async def test_recorded_news_is_found_through_throttling(
    articles: list[Row], tmp_path: Path
) -> None:
    server = DocServer(articles, refusing(2))
    queries = [EntityQuery(id=name, text=name) for name in ("Bill Gates", "Shell", "C#", "Xyzzy")]
    async with server.running():
        found = await opened(server, tmp_path).fetch(queries, AUTUMN, 8)
    assert {id: len(items) for id, items in found.by_query.items()} == {
        "Bill Gates": 8, "Shell": 8, "C#": 0, "Xyzzy": 0,
    }  # fmt: skip
    assert found.reasons == {"C#": "rejected", "Xyzzy": "no_news"}
    assert all("Shell" in item.title for item in found.by_query["Shell"])
    assert not server.complaints
