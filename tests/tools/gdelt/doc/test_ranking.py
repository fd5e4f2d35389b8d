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


async def both(
    rows: list[Row], asked: EntityQuery, k: int, folder: Path, precision: Precision
) -> tuple[list[Evidence], list[Evidence]]:
    """Ask the service and the local store about the same articles."""
    (folder / "news.json").write_text(json.dumps({"articles": [listed(row) for row in rows]}))
    with open_local(folder / "news.json", folder / "cache", min_precision=precision) as store:
        local = await store.fetch([asked], AUTUMN, k)
    async with DocServer(rows).running() as server:
        source = opened(server, folder, min_precision=precision)
        remote = await source.fetch([asked], AUTUMN, k)
    return [*remote.by_query[asked.id]], [*local.by_query[asked.id]]


@pytest.mark.parametrize("precision", ["crawl", "cluster", "url"])
@pytest.mark.parametrize("name", ["Bill Gates", "ExxonMobil", "Nestle"])
async def test_recorded_news_comes_in_the_order_of_the_local_store(
    name: str, precision: Precision, tmp_path: Path
) -> None:
    rows = [row for row in recorded(need_recorded()) if name in str(row["title"])]
    rows = [row for row in rows if row["language"] == "English"][:240]
    asked = EntityQuery(id="q", text=name)
    remote, local = await both(rows, asked, 1000, tmp_path, precision)
    assert remote
    unlike = {"origin": ""}
    assert [item.model_copy(update=unlike) for item in remote] == [
        item.model_copy(update=unlike) for item in local
    ]


async def test_topics_of_recorded_news_are_weighed_as_in_the_local_store(tmp_path: Path) -> None:
    rows = [row for row in recorded(need_recorded()) if "renewable" in str(row["title"]).lower()]
    asked = EntityQuery(id="q", text="renewable energy", rung="concept")
    remote, local = await both(rows, asked, 5, tmp_path, "crawl")
    assert len(remote) == 5 and {item.id for item in remote} == {item.id for item in local}


async def test_recorded_news_is_found_through_throttling(tmp_path: Path) -> None:
    server = DocServer(recorded(need_recorded()), refusing(2))
    queries = [EntityQuery(id=name, text=name) for name in ("Bill Gates", "Shell", "C#", "Xyzzy")]
    async with server.running():
        found = await opened(server, tmp_path).fetch(queries, AUTUMN, 8)
    assert {id: len(items) for id, items in found.by_query.items()} == {
        "Bill Gates": 8, "Shell": 8, "C#": 0, "Xyzzy": 0,
    }  # fmt: skip
    assert found.reasons == {"C#": "rejected", "Xyzzy": "no_news"}
    assert all("Shell" in item.title for item in found.by_query["Shell"])
    assert not server.complaints
