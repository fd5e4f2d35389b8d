"""The readers on real GDELT rows; counts were taken from the files by other means."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.local import LocalKnowledge, open_local

SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "gdelt"
DEMO = Path(__file__).parents[3] / "examples" / "demo" / "news"
ALL = Window(start=datetime(2015, 1, 1, tzinfo=UTC), end=datetime(2026, 11, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKnowledge]:
    if not SHARED.exists():
        pytest.skip("the development data is not beside this checkout")
    with open_local(SHARED, tmp_path_factory.mktemp("cache"), min_precision="crawl") as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "rows", "bad"),
    [
        ("gkg/20260610033000.gkg.rows1-35.csv.gz", 35, {}),
        ("gkg/gkg_20150218_20200318.sample100.csv.gz", 100, {"untitled": 48, "collection": 2}),
        ("gkg/20150218224500.translation.gkg.sample50.csv.gz", 50, {"untitled": 50}),
        ("gkg/20160101020000.gkg.sample10.csv", 10, {"untitled": 10}),
        ("gkg/20200327193000-0.gkg.1row.tsv", 1, {}),
        ("doc_api/gdelt-gold-artlist.json", 8, {}),
        ("doc_api/live_artlist_20260905.json", 1, {}),
        ("doc_api/vizhinjam_2024.json", 4, {}),
        ("doc_api/articles_20250606_venezuela.csv.gz", 250, {}),
        ("doc_api/artlist_250_2023_oil.json.gz", 250, {"untitled": 2}),
        ("doc_api/articles_2025_climate_companies.jsonl.gz", 8986, {"untitled": 4}),
    ],
)
def test_rows_by_file(real: LocalKnowledge, name: str, rows: int, bad: dict[str, int]) -> None:
    (file,) = (file for file in real.stats().files if file.name == name)
    assert (file.rows, file.bad) == (rows, bad)


def test_other_files_are_ignored_by_name(real: LocalKnowledge) -> None:
    ignored = real.stats().ignored
    assert len(ignored) == 14
    assert "doc_api/observed_errors.jsonl" in ignored
    assert set(ignored.values()) == {"contains no news"}


def test_every_row_is_accounted_for(real: LocalKnowledge) -> None:
    stats = real.stats()
    lost = sum(stats.bad.values()) + stats.duplicates + sum(stats.dropped.values())
    assert stats.rows == 9695 == lost + stats.articles


async def test_twins_come_together(real: LocalKnowledge) -> None:
    query = EntityQuery(id="q", text="Ben & Jerry's")
    first, second, *_ = (await real.fetch([query], ALL, 10)).by_query["q"]
    assert first.cluster == second.cluster != ""
    assert first.domain != second.domain
    assert "Ben & Jerry's" in first.title
    assert first.published_precision == "url"


async def test_entities_of_gkg_are_found(real: LocalKnowledge) -> None:
    query = EntityQuery(id="q", text="Xavier Becerra")
    found = (await real.fetch([query], ALL, 20)).by_query["q"]
    assert len(found) >= 3
    assert {item.published_at.date().isoformat() for item in found} <= {"2026-06-09", "2026-06-10"}
    assert "Xavier Becerra" in {name.name for name in real.names(ALL) if name.type == "person"}


async def test_demo_news(tmp_path: Path) -> None:
    if not any(DEMO.glob("*")):
        pytest.skip("there is no demo news in this checkout")
    with open_local(DEMO, tmp_path) as demo:
        stats = demo.stats()
        assert {file.kind for file in stats.files} == {"gkg", "gal", "artlist"}
        assert not stats.bad and not stats.ignored
        assert (demo.require(ALL).articles or 0) > 100
        answer = await demo.fetch([EntityQuery(id="q", text="Google")], ALL, 5)
        assert len(answer.by_query["q"]) == 5
