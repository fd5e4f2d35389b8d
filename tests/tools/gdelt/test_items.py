from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import KnowledgeError
from coreeval.schema import NamedEntity
from coreeval.tools.gdelt.files import find_files
from coreeval.tools.gdelt.items import offered_items
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.sources import joined, read_sources
from tests.tools.gdelt.writing import gkg_line, write

SEEN = datetime(2026, 6, 10, 12, tzinfo=UTC)
TITLE = "Ministers agree to fund ten new ferries"


def article(url: str, title: str = TITLE, stated: datetime | None = None,
            language: str = "en", seen: datetime = SEEN) -> Article:  # fmt: skip
    return Article(
        url=url, title=title, crawled_at=seen, stated_at=stated, language=language, origin="x:1"
    )


def test_the_ladder_of_precision() -> None:
    stated = datetime(2026, 6, 9, 7, tzinfo=UTC)
    items, _ = offered_items(
        {
            "exact": article("https://a.example/2026/06/01/x", stated=stated),
            "url": article("https://b.example/2026/06/10/x"),
            "twin": article("https://c.example/x"),
            "alone": article("https://d.example/x", title="Farmers plant more oats this year"),
        }
    )
    found = {item.id: (item.precision, item.published_at) for item in items}
    assert found == {
        "exact": ("exact", stated),
        "url": ("url", datetime(2026, 6, 10, tzinfo=UTC)),
        "twin": ("cluster", stated),
        "alone": ("crawl", SEEN),
    }
    stories = {item.id: (item.story, item.domains) for item in items}
    assert stories["exact"] == stories["url"] == stories["twin"] == ("exact", 3)
    assert stories["alone"] == ("alone", 1)


def test_a_page_is_not_dated_by_a_later_twin() -> None:
    later = datetime(2026, 6, 11, 7, tzinfo=UTC)
    items, _ = offered_items(
        {
            "a": article("https://a.example/x"),
            "b": article("https://b.example/x", stated=later, seen=later),
        }
    )
    assert [(item.id, item.precision) for item in items] == [("a", "crawl"), ("b", "exact")]


def test_an_old_page_crawled_late_is_old() -> None:
    (item,), _ = offered_items({"a": article("https://a.example/2019/03/01/x")})
    assert item.published_at.year == 2019


def test_what_is_not_offered_is_counted() -> None:
    items, dropped = offered_items(
        {
            "a": article("https://a.example/x"),
            "b": article("https://b.example/x", language="it"),
            "c": article("https://c.example/x", title="Protesta contro la violenza di Israele su"),
            "d": article("https://d.example/"),
            "e": article("https://e.example/x", title="Too short"),
        }
    )
    assert [item.id for item in items] == ["a"]
    assert items[0].domains == 3
    assert dropped == {"front_page": 1, "other_language": 1, "short": 1, "unknown_language": 1}


def test_two_rows_about_one_page_complete_each_other() -> None:
    name = NamedEntity(name="Ferry Board", type="organisation")
    plain = Article(url="https://a.example/x", title="Gkg", crawled_at=SEEN, entities=(name,),
                    origin="gkg:4")  # fmt: skip
    stated = datetime(2026, 6, 10, 9, tzinfo=UTC)
    told = Article(url="http://www.a.example/x", title="Gal", snippet="It is so.", crawled_at=SEEN,
                   stated_at=stated, origin="gal:2")  # fmt: skip
    both = joined(plain, told)
    assert both == joined(told, plain)
    assert (both.title, both.snippet, both.entities) == ("Gal", "It is so.", (name,))
    assert (both.stated_at, both.origin) == (stated, "gal:2; gkg:4")
    assert joined(told, told).origin == "gal:2"


def test_rows_are_counted_by_file_and_reason(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", gkg_line(), gkg_line(title=""), "x\ty")
    write(tmp_path / "b.csv.gz", gkg_line(url="https://www.news.example/ferries?utm_source=x"))
    (tmp_path / "c.zip").write_bytes(b"PK\x03\x04broken")
    write(tmp_path / "notes.txt", "hello")
    sources = read_sources(tmp_path, find_files(tmp_path))
    assert [(file.name, file.rows, file.articles, file.bad) for file in sources.files] == [
        ("a.csv", 3, 1, {"untitled": 1, "columns": 1}),
        ("b.csv.gz", 1, 1, {}),
    ]
    assert len(sources.articles) == 1
    assert sources.ignored.keys() == {"c.zip", "notes.txt"}
    assert sources.ignored["c.zip"].startswith("damaged")


def test_a_file_that_breaks_off_keeps_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    write(
        path, *(gkg_line(url=f"https://a.example/{at}", title=f"{at:0400d}") for at in range(3000))
    )
    path.write_bytes(path.read_bytes()[:-30])
    (file,) = read_sources(path, [path]).files
    assert file.bad == {"damaged": 1} and file.articles > 1000


def test_a_folder_without_articles_says_what_it_holds(tmp_path: Path) -> None:
    write(tmp_path / "events.csv", "1\t2\t3")
    with pytest.raises(KnowledgeError) as caught:
        read_sources(tmp_path, find_files(tmp_path))
    assert "events.csv (holds no articles)" in caught.value.hint
    assert "GKG 2.1" in caught.value.hint
