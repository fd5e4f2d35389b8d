"""SQL and Python must have one meaning: queries are normalised by one, the store by the other."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from coreeval.tools.gdelt.dates import date_in_url
from coreeval.tools.gdelt.folder import open_folder
from coreeval.tools.gdelt.language import looks_english
from coreeval.tools.gdelt.titles import without_outlet
from coreeval.tools.gdelt.urls import evidence_id, host_of, is_front_page
from coreeval.tools.gdelt.words import plain_words
from tests.tools.gdelt.parts.making import functions

SHARED = Path(__file__).parents[4].parent / "shared" / "data" / "gdelt"
SEEN = datetime(2026, 6, 10, 12, tzinfo=UTC)
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
    for url, *sql in database.execute(query, [with_host, int(SEEN.timestamp())]).fetchall():
        day = date_in_url(url, SEEN)
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
