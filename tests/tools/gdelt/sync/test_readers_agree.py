"""The columnar readers and the plain ones read the same from the same files."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coreeval.tools.gdelt.page_text import without_unseen
from coreeval.tools.gdelt.rows import Article, Rows, find_files
from coreeval.tools.gdelt.sync import gkg
from coreeval.tools.gdelt.sync.article_lists import read_artlist
from coreeval.tools.gdelt.sync.file_reader import Offer, Reading, read
from coreeval.tools.gdelt.sync.segment_rows import clean_page_text
from tests.support.plain_gal import read_gal
from tests.support.plain_gkg import read_gkg
from tests.tools.gdelt.file_samples import gal_line, gkg_line, write

SHARED = Path(__file__).parents[4].parent / "shared" / "data" / "gdelt"
PLAIN: dict[str, Callable[[Path, str], Rows]] = {
    "gkg": read_gkg,
    "gkg_translated": read_gkg,
    "gal": read_gal,
    "artlist": read_artlist,
}
PIECES = st.text(st.sampled_from(' ,;#\u00e9\u0130\u03a3AbT1290"&<>'), max_size=8)
NAMES = st.builds(
    lambda *parts: ";".join(parts),
    *[st.builds("{}{}{}".format, PIECES, st.sampled_from([",", "", ",,"]), st.sampled_from(
        ["12", "1499", "1500", "90000", "-3", "", "x", "0012", "123456789"]))] * 4,
)  # fmt: skip
PLACES = st.lists(
    st.builds(
        "{}#{}#NO#{}".format,
        st.sampled_from(["1", "4", ""]),
        PIECES,
        st.sampled_from(["NO12##59.9#10.7#-1#44", "NO#2", "44", "x", "", "#"]),
    ),
    max_size=3,
).map(";".join)


def told(article: Article) -> dict[str, Any]:
    """Return what a segment has of an article: the plain readers leave hidden characters in."""
    return {
        "url": article.url,
        "title": without_unseen(article.title),
        "snippet": without_unseen(article.snippet),
        "crawled_at": int(article.crawled_at.timestamp()),
        "stated_at": int(article.stated_at.timestamp()) if article.stated_at else None,
        "language": article.language,
        "entities": [(each.name, each.type) for each in article.entities],
        "line": int(article.origin.rpartition(":")[2]),
    }


def columnar(reading: Reading) -> list[dict[str, Any]]:
    rows = [row for table in reading.articles for row in table.to_pylist()]
    for row in rows:
        row["entities"] = [(each["name"], each["type"]) for each in row["entities"]]
    kept = ("url", "title", "snippet", "crawled_at", "stated_at", "language", "entities", "line")
    return [{name: row[name] for name in kept} for row in rows]


def assert_same(path: Path) -> int:
    """Assert that both readers tell the same of a file; return how many articles it has."""
    reading = read(Offer(path=path, name="f"), set())
    if reading.feed not in PLAIN:
        return 0
    plain = list(PLAIN[reading.feed](path, "f"))
    assert columnar(reading) == [told(row) for row in plain if isinstance(row, Article)]
    bad = Counter(row.reason for row in plain if not isinstance(row, Article))
    assert {str(key): value for key, value in reading.tally.bad.items() if value} == bad
    assert reading.tally.rows == len(plain)
    return reading.tally.articles


def test_on_real_files() -> None:
    if not SHARED.exists():
        pytest.skip("the development data is not beside this checkout")
    assert sum(assert_same(path) for path in find_files(SHARED)) == 9579


def lines_of(path: Path, lines: Iterable[str]) -> Path:
    return write(path, gkg_line(), *(line.replace("\n", " ").replace("\r", "") for line in lines))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.builds(
            gkg_line,
            title=st.sampled_from(["", " ", "A  b", "x &amp;amp; y", '5"" pipe', "Caf\u00e9s"]),
            url=st.sampled_from(
                ["https://a.example/1", "https:///x", "BBC", "http://[bad/", "//h/x", "http://www./a",
                 "https://user@www.b.example:80/?q=/", " https://c.example/\u00e9", "a/b//c"]
            ),
            date=st.sampled_from(["20260610033000", "20261399000000", "", "2026"]),
            published=st.sampled_from(["", "20260609231200", "20260000000000"]),
            collection=st.sampled_from(["1", "2", ""]),
            persons=NAMES,
            organisations=NAMES,
            locations=PLACES,
            all_names=NAMES,
            translation=st.sampled_from(["", "srclc:fra;eng:x", "srclc:xyz"]),
        ),
        max_size=6,
    )
)  # fmt: skip
def test_on_odd_rows_of_gkg(tmp_path: Path, rows: list[str]) -> None:
    assert_same(lines_of(tmp_path / "g.csv", [*rows, "", "\t" * 26, "a\tb"]))


def test_on_odd_rows_of_gal(tmp_path: Path) -> None:
    when = "2026-06-10T10:00:00Z"
    rows = [
        gal_line("A &quot;new&quot; bridge", "https://a.example/1", when, "It  is."),
        gal_line(" ", "https://a.example/2", when),
        gal_line("A bridge", "nowhere", when),
        gal_line("A bridge", "https://a.example/3", "soon"),
        gal_line("A bridge", "https://a.example/4", when, lang=""),
        gal_line("A bridge", "https://a.example/5", "2026-06-10T10:00:00+02:00", lang="FRENCH"),
        json.dumps({"title": 3, "url": "https://a.example/6", "date": when, "lang": "en"}),
        "{broken", "[]", "", "  ",
    ]  # fmt: skip
    assert assert_same(write(tmp_path / "g.json.gz", *rows)) == 3


def test_bad_bytes_harm_one_title_and_one_name(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    bad = gkg_line(title="Caf\u00e9 opens in June", persons="Zo\u00eb Lee,3").encode("latin-1")
    path.write_bytes(bad + b"\n" + gkg_line().encode())
    assert assert_same(path) == 2
    first, _ = columnar(read(Offer(path=path, name="f"), set()))
    assert (first["title"], first["entities"]) == (
        "Caf\ufffd opens in June",
        [("Zo\ufffd Lee", "person")],
    )


def test_what_plain_readers_leave_in_is_taken_out(tmp_path: Path) -> None:
    title = "Safe \u202etxet\u202c and\u200b \U000e0041 quiet\x07"
    path = write(
        tmp_path / "g.csv", gkg_line(title=title, persons="An\u200bn Lee,3", published="1")
    )
    (row,) = columnar(read(Offer(path=path, name="f"), set()))
    assert row["title"] == "Safe txet and quiet"
    assert row["entities"] == [("Ann Lee", "person")]
    assert row["stated_at"] is None
    assert row["crawled_at"] == datetime(2026, 6, 10, 3, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("plain", "plain"),
        ("a\u00a0b", "a b"),
        (" a  b ", "a b"),
        ("&#x202e;hidden", "hidden"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("\u0627\u061c\u0628", "\u0627\u0628"),
        ("\u200d\u200d", "\u200d\u200d"),
        ("x" * 30, "x" * 9 + "\u2026"),
    ],
)
def test_cleaned(raw: str, clean: str) -> None:
    assert clean_page_text(raw, 10 if raw.startswith("xx") else 100) == clean


def test_a_translated_file_is_known_by_its_ids(tmp_path: Path) -> None:
    line = gkg_line(translation="srclc:ita;eng:GT-ITA 1.0").replace("000-1", "000-T1", 1)
    reading = read(Offer(path=write(tmp_path / "g.csv", line), name="f"), set())
    (row,) = reading.articles[0].to_pylist()
    assert (row["feed"], row["language"]) == ("gkg_translated", "it")


def test_long_rows_are_made_into_tables_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [gkg_line(url=f"https://a.example/{n}", persons="Ann Lee,3" * 900) for n in range(300)]
    path = write(tmp_path / "g.csv", *rows)
    (whole,) = read(Offer(path=path, name="f"), set()).articles
    monkeypatch.setattr(gkg, "CHUNK_BYTES", 1 << 20)
    tables = read(Offer(path=path, name="f"), set()).articles
    assert len(tables) > 1
    assert pa.concat_tables(tables).equals(whole.combine_chunks())


def test_counts_offsets_themes_and_words(tmp_path: Path) -> None:
    columns = gkg_line(persons="Ann Lee,70;Ann Lee,12;Bo Ek,9000").split("\t")
    columns[7], columns[15] = "TAX;WATER;;TAX;", "1,2,3,4,5,6,812"
    path = write(tmp_path / "g.csv", "\t".join(columns))
    (row,) = read(Offer(path=path, name="f"), set()).articles[0].to_pylist()
    assert row["entities"] == [{"name": "Ann Lee", "type": "person", "at": 12, "n": 2}]
    assert (row["themes"], row["words"], row["feed"]) == (["TAX", "WATER"], 812, "gkg")
