"""SQL and Python must have one meaning: queries are normalised by one, the store by the other."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.local import open_folder
from coreeval.tools.gdelt.page_text import without_outlet
from coreeval.tools.gdelt.rows import date_in_url, evidence_id, host_of, is_front_page
from coreeval.tools.gdelt.words import looks_english, plain_words
from tests.tools.gdelt.index.part_samples import SEEN, add_rows, functions, offered, prior_of, row

STATED = datetime(2026, 6, 9, 7, tzinfo=UTC)


def test_the_ladder_of_precision(tmp_path: Path) -> None:
    found, _ = offered(
        tmp_path,
        row("https://a.example/2026/06/01/x", stated=STATED),
        row("https://b.example/2026/06/10/x"),
        row("https://c.example/x"),
        row("https://d.example/x", title="Farmers plant more oats this year"),
    )
    assert {one.domain: (one.published_precision, one.published_at) for one in found.values()} == {
        "a.example": ("exact", STATED),
        "b.example": ("url", datetime(2026, 6, 10, tzinfo=UTC)),
        "c.example": ("cluster", STATED),
        "d.example": ("crawl", SEEN),
    }
    stories = {one.domain: one.cluster for one in found.values()}
    assert stories.pop("d.example") == ""
    (story,) = set(stories.values())
    assert story in {one.id for one in found.values()}


def test_a_page_is_not_dated_by_a_later_twin(tmp_path: Path) -> None:
    later = datetime(2026, 6, 11, 7, tzinfo=UTC)
    found, _ = offered(
        tmp_path, row("https://a.example/x"), row("https://b.example/x", stated=later, seen=later)
    )
    assert [one.published_precision for one in found.values()] == ["crawl", "exact"]


def test_an_old_page_crawled_late_is_old(tmp_path: Path) -> None:
    (found,), _ = offered(tmp_path, row("https://a.example/2019/03/01/x"))
    assert "2019" in found


def test_what_is_not_offered_is_counted_and_still_tells_a_story(tmp_path: Path) -> None:
    found, stats = offered(
        tmp_path,
        row("https://a.example/x"),
        row("https://a.example/x", title="Another title of the very same page"),
        row("https://b.example/x", language="it"),
        row("https://c.example/x", title="Protesta contro la violenza di Israele su"),
        row("https://d.example/"),
        row("https://e.example/x", title="Too short"),
        row("https://f.example/x", language="und"),
    )
    assert list(found) == ["https://a.example/x"]
    assert stats.dropped == {
        "front_page": 1, "no_language": 1, "other_language": 1, "short": 1, "unknown_language": 1,
    }  # fmt: skip
    assert (stats.articles, stats.duplicates) == (1, 1)


def test_copies_that_are_not_offered_make_a_story_notable(tmp_path: Path) -> None:
    add_rows(
        tmp_path,
        row("https://a.example/x"),
        row("https://b.example/x", language="it"),
        row("https://d.example/"),
        row("https://f.example/x", title="Farmers plant more oats this year"),
    )
    compact(tmp_path)
    assert prior_of(tmp_path, "ferry") > prior_of(tmp_path, "oat")


def test_two_rows_about_one_page_complete_each_other(tmp_path: Path) -> None:
    plain = row("https://a.example/x", title="The title that GKG gives is this",
                names=[("Ferry Board", "organisation")], file=0, line=4)  # fmt: skip
    told = row("http://www.a.example/x?utm_source=y", title="The title that GAL gives is that",
               snippet="It is so.", stated=STATED, file=1, line=2)  # fmt: skip
    for number, rows in enumerate([(plain, told), (told, plain), (told, told, plain)]):
        (tmp_path / str(number)).mkdir()
        (one,) = offered(tmp_path / str(number), *rows)[0].values()
        assert (one.title, one.snippet) == ("The title that GAL gives is that", "It is so.")
        assert [entity.name for entity in one.entities] == ["Ferry Board"]
        assert (one.published_at, one.origin) == (STATED, "b:2; a:4")


def test_a_row_that_adds_nothing_is_no_origin(tmp_path: Path) -> None:
    (one,) = offered(tmp_path, row("https://a.example/x"), row("https://a.example/x", line=9))[
        0
    ].values()
    assert one.origin == "a:1"


SHARED = Path(__file__).parents[4].parent / "shared" / "data" / "gdelt"
CRAWLED = datetime(2026, 6, 10, 12, tzinfo=UTC)
ODD = (
    "\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u00e9\u00c9\u015a\u00f8\u00df\u0130\u0301\u02bc\ufb01"
    "\uff21\uff06\u2122\u00a0\u6771\u0419\u0e01_&.'-| "
)
TEXTS = st.text(
    st.one_of(
        st.sampled_from("aAbsSUKle1 " + ODD),
        st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
    ),
    max_size=40,
)
URLS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["https://", "http://www.", "HTTPS://amp.", "https://m.www2.", ""]),
    st.sampled_from(["a.example", "A.Example:443", "b.example.", "x", "[", "u@c.example"]),
    st.sampled_from(["", "/", "/amp/x", "/x/amp", "/2026/05/30/x/", "/index.php",
                     "/a//b", "/x-2026-05-30.html"]),
    st.sampled_from(["", "?utm_source=a&id=1", "#top", "?", "/?p=1", "?b=1&a=%20", "\u00e9"]),
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with functions() as opened:
        yield opened


def assert_alike(database: duckdb.DuckDBPyConnection, texts: Sequence[str]) -> None:
    """Assert that SQL and Python make the same of each text."""
    query = """SELECT text, split_words(text), headline(text), may_be_english(text)
               FROM (SELECT unnest(?::VARCHAR[]) AS text)"""
    for text, *sql in database.execute(query, [[*texts]]).fetchall():
        assert sql == [plain_words(text), without_outlet(text), looks_english(text)]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(TEXTS, min_size=10, max_size=10))
@example(
    [
        "Gutiérrez\u2019s Café 'Śx 's's U.S.A. S & P AT&T",
        "A title - Town Herald | La News",
        "rock 'n' roll dogs' it's \u2018s\u2019 K\u015a's",
    ]
)
def test_words_of_any_text(database: duckdb.DuckDBPyConnection, texts: Sequence[str]) -> None:
    assert_alike(database, texts)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(URLS, min_size=10, max_size=10))
def test_addresses_of_any_shape(database: duckdb.DuckDBPyConnection, urls: Sequence[str]) -> None:
    query = """SELECT url, printf('%016x', page_of(url)), site_of(url), names_a_site(url),
                      day_named(url, $2)
               FROM (SELECT unnest($1::VARCHAR[]) AS url)"""
    with_host = [url for url in urls if host_of(url)]
    for url, *sql in database.execute(query, [with_host, int(CRAWLED.timestamp())]).fetchall():
        day = date_in_url(url, CRAWLED)
        python = evidence_id(url), host_of(url), is_front_page(url), day and int(day.timestamp())
        assert sql == [*python]


def test_every_character_beside_letters(database: duckdb.DuckDBPyConnection) -> None:
    texts = [
        text
        for code in [*range(1, 0xD800), *range(0xE000, 0x10000), *range(0x1F300, 0x1F700)]
        for text in (f"a{chr(code)}b x'{chr(code)} {chr(code)}'s U.{chr(code)}.S",)
    ]
    query = "SELECT text, split_words(text) FROM (SELECT unnest(?::VARCHAR[]) AS text)"
    for text, words in database.execute(query, [texts]).fetchall():
        assert words == plain_words(text)


def test_real_texts(database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("the development data is not beside this checkout")
    segments = open_folder(SHARED, tmp_path) / "segments" / "**" / "*.parquet"
    titles = duckdb.read_parquet(str(segments)).project("title").order("title").fetchall()
    assert len(titles) > 1000
    assert_alike(database, [title for (title,) in titles])
