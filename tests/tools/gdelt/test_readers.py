from datetime import UTC, datetime
from pathlib import Path

from coreeval.tools.gdelt.rows import Article, RowDefect
from coreeval.tools.gdelt.sync.article_lists import read_artlist
from tests.support.plain_gal import read_gal
from tests.support.plain_gkg import read_gkg
from tests.tools.gdelt.file_samples import gal_line, gkg_line, listed, write, write_artlist


def test_a_gkg_row_becomes_an_article(tmp_path: Path) -> None:
    line = gkg_line(title="Korea&#x2019;s plan &amp; what follows", published="20260609231200")
    (row,) = read_gkg(write(tmp_path / "g.csv", line, end="\r\n"), "g.csv")
    assert isinstance(row, Article)
    assert row.title == "Korea\u2019s plan & what follows"
    assert row.crawled_at == datetime(2026, 6, 10, 3, 30, tzinfo=UTC)
    assert row.stated_at == datetime(2026, 6, 9, 23, 12, tzinfo=UTC)
    assert (row.language, row.origin) == ("en", "g.csv:1")


def test_gkg_names_are_typed_and_prominent(tmp_path: Path) -> None:
    line = gkg_line(
        persons="Ann Lee,12;Ann Lee,90;Far Away,4000;Twice Far,4000;Twice Far,5000",
        organisations="Ferry Board,33",
        locations="4#Oslo, Oslo, Norway#NO#NO12##59.9#10.7#-1#44;1#Norway#NO#NO##62#10#NO#2",
        all_names="Ann Lee,12;Coastal Act,70",
    )
    (row,) = read_gkg(write(tmp_path / "g.csv", line), "g.csv")
    assert isinstance(row, Article)
    assert [(entity.name, entity.type) for entity in row.entities] == [
        ("Ann Lee", "person"),
        ("Twice Far", "person"),
        ("Ferry Board", "organisation"),
        ("Oslo", "place"),
        ("Norway", "place"),
        ("Coastal Act", "other"),
    ]


def test_gkg_rows_that_are_no_articles_say_why(tmp_path: Path) -> None:
    lines = [
        gkg_line(title=""),
        gkg_line(collection="2"),
        gkg_line(url="BBC Monitoring"),
        gkg_line(date="never"),
        "a\tb",
        gkg_line(translation="srclc:ita;eng:GT-ITA 1.0"),
    ]
    rows = list(read_gkg(write(tmp_path / "g.csv", *lines), "g.csv"))
    reasons = [row.reason for row in rows if isinstance(row, RowDefect)]
    assert reasons == ["untitled", "collection", "no_url", "no_date", "columns"]
    assert [row.language for row in rows if isinstance(row, Article)] == ["it"]


def test_a_latin_1_byte_harms_one_row_only(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_bytes((gkg_line(title="Caf\u00e9") + "\n").encode("latin-1") + gkg_line().encode())
    first, second = read_gkg(path, "g.csv")
    assert isinstance(first, Article) and first.title == "Caf\ufffd"
    assert isinstance(second, Article) and second.title.startswith("Ministers")


def test_gal_rows_have_snippets_and_publication_times(tmp_path: Path) -> None:
    path = write(
        tmp_path / "g.json.gz",
        gal_line(
            "A &quot;new&quot; bridge", "https://a.example/1", "2026-06-10T10:00:00Z", "It  is."
        ),
        gal_line("", "https://a.example/2", "2026-06-10T10:00:00Z"),
        gal_line("A bridge", "nowhere", "2026-06-10T10:00:00Z"),
        gal_line("A bridge", "https://a.example/3", "soon"),
        "{broken",
        "[]",
    )
    first, *rest = read_gal(path, "g")
    assert isinstance(first, Article)
    assert (first.title, first.snippet) == ('A "new" bridge', "It is.")
    assert first.stated_at == datetime(2026, 6, 10, 10, tzinfo=UTC)
    assert [row.reason for row in rest if isinstance(row, RowDefect)] == [
        "untitled", "no_url", "no_date", "invalid_json", "invalid_json",
    ]  # fmt: skip


def test_article_lists_read_the_same_in_every_notation(tmp_path: Path) -> None:
    seen = "20260812T204500Z"
    row = listed("Gold , up 1 . 5 %", "https://a.example/1", seen)
    paths = [
        write_artlist(tmp_path / "a.json", row),
        write_artlist(tmp_path / "b.json", row, indent=4),
        write(tmp_path / "c.jsonl", '{"title": "Gold , up 1 . 5 %", "url": "https://a.example/1",'
              f' "date": "{seen}", "language": "English", "sourceCountry": null}}'),
        write(tmp_path / "d.csv", "url,title,seendate,language",
              f'https://a.example/1,"Gold , up 1 . 5 %",{seen},English'),
    ]  # fmt: skip
    read = [list(read_artlist(path, "x")) for path in paths]
    assert read[0] == read[1] == read[2] == read[3]
    (article,) = read[0]
    assert isinstance(article, Article)
    assert (article.title, article.stated_at) == ("Gold, up 1.5%", None)
    assert article.crawled_at == datetime(2026, 8, 12, 20, 45, tzinfo=UTC)


def test_invalid_json_of_the_api_is_read_where_it_can_be(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '{"articles": [{"url": "https://a.example/1", "title": '
                 '"Bob\\\'s \x01 big boat", "seendate": "20260812T204500Z"}, 7]}')  # fmt: skip
    first, second = read_artlist(path, "a")
    assert isinstance(first, Article) and "big boat" in first.title
    assert second == RowDefect("invalid_json")
    assert list(read_artlist(write(tmp_path / "b.json", '{"articles": [{"u'), "b")) == [
        RowDefect("invalid_json")
    ]
