"""What is read from a page, and which addresses and licences are refused."""

import gzip
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from coreeval.tools.articles.acceptance import shares_title
from coreeval.tools.articles.addresses import is_public_address, is_web_address
from coreeval.tools.articles.article_text import MOST_CHARACTERS, WHY_NO_TEXT, WhyNoText, cut_text
from coreeval.tools.articles.page import parse_time, read_page
from tests.support.news_site import GERMAN, article_page
from tests.tools.articles.kit import ARTICLES, read_rows

URL = "https://herald.example/x"
LINKED = (
    '<script type="application/ld+json">{"datePublished": "2026-10-04T23:30:00-05:00"}</script>'
)


@pytest.mark.parametrize(
    ("page", "stated"),
    [
        (article_page(date="", head=LINKED), "2026-10-05T04:30"),
        (article_page(date="2026-10-05"), "2026-10-05T00:00"),
        (article_page(date="Mon, 05 Oct 2026 08:00:00 +0200"), "2026-10-05T06:00"),
        (article_page(date="", body=("<time datetime='2026-10-03T10:00Z'>3 Oct</time>" * 2,)),
         "2026-10-03T10:00"),
        (article_page(date="soon", head=LINKED), "2026-10-05T04:30"),
        (article_page(date="0001-01-01"), ""),
    ],
)  # fmt: skip
def test_the_time_of_publication_is_read_from_metadata(page: str, stated: str) -> None:
    reading = read_page(page.encode(), URL)
    assert (f"{reading.stated_at:%Y-%m-%dT%H:%M}" if reading.stated_at else "") == stated


def test_a_date_in_the_text_is_an_estimate() -> None:
    page = article_page(date="", body=("<p class='date'>Published: 5 October 2026</p>", *GERMAN))
    reading = read_page(page.encode(), URL)
    assert reading.stated_at is None
    assert reading.estimated_at == datetime(2026, 10, 5, tzinfo=UTC)


def test_metadata_are_read_in_other_encodings() -> None:
    head = '<link rel="license" href="https://creativecommons.org/licenses/by/4.0/">'
    page = article_page("F\u00e4hre", GERMAN, head=head).replace("utf-8", "iso-8859-1")
    reading = read_page(page.encode("iso-8859-1"), URL)
    assert (reading.title, reading.language) == ("F\u00e4hre", "de")
    assert GERMAN[0] in reading.text
    assert reading.licence == "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.parametrize("time", ["", "soon", "2026-13-01", "0001-01-01T00:00+14:00", "9" * 500])
def test_what_is_no_time_is_none(time: str) -> None:
    assert parse_time(time) is None


@pytest.mark.parametrize(
    ("text", "title", "language", "same"),
    [
        ("The ferry returns to the harbour", "Ferry returns", "en", True),
        ("The council met on Monday", "Ferry returns to harbour after repairs", "en", False),
        ("Anything", "", "en", True),
        ("\u53f0\u98a8\u304c\u6771\u4eac\u306b", "\u6771\u4eac\u306b\u53f0\u98a8", "ja", True),
        ("\u7d4c\u6e08\u306e\u8a71", "\u6771\u4eac\u306b\u53f0\u98a8", "ja", False),
    ],
)  # fmt: skip
def test_a_text_shares_words_with_its_title(
    text: str, title: str, language: str, same: bool
) -> None:
    assert shares_title(text, title, language) is same


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("2001:4860:4860::8888", True), ("64:ff9b::808:808", True),
        ("127.0.0.1", False), ("10.1.2.3", False), ("192.168.0.1", False), ("100.64.0.1", False),
        ("169.254.169.254", False), ("0.0.0.0", False), ("224.0.0.1", False), ("::1", False),
        ("::", False), ("fe80::1%eth0", False), ("fc00::1", False), ("::ffff:10.0.0.1", False),
        ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False), ("not an address", False),
    ],
)  # fmt: skip
def test_only_public_addresses_are_allowed(address: str, public: bool) -> None:
    assert is_public_address(address) is public


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://herald.example/x", True), ("http://herald.example:8080", True),
        ("ftp://herald.example", False), ("https://me:secret@herald.example", False),
        ("https://", False), ("//herald.example/x", False), ("https://x:99999/", False),
        ("file:///etc/passwd", False), ("", False),
    ],
)  # fmt: skip
def test_only_web_addresses_without_a_password_are_allowed(url: str, good: bool) -> None:
    assert is_web_address(url) is good


def test_a_long_text_is_cut_at_a_line() -> None:
    text = "word " * 30 + "\n" + "x" * MOST_CHARACTERS
    assert cut_text(text) == "word " * 30
    assert len(cut_text("x" * (MOST_CHARACTERS + 1))) == MOST_CHARACTERS
    assert cut_text("short") == "short"


def test_every_reason_has_a_sentence() -> None:
    assert set(WHY_NO_TEXT) == set(get_args(WhyNoText))


def test_real_pages_give_their_known_texts() -> None:
    rows = read_rows(ARTICLES / "pages" / "known_texts.jsonl.gz")
    (row,) = (row for row in rows if "us_APNews_2024_09_03" in row["file"])
    reading = read_page(gzip.decompress((ARTICLES / row["file"]).read_bytes()), row["url"])
    assert row["text"][:150] in reading.text
    assert reading.stated_at == datetime.fromisoformat(row["published_at"])


def test_every_reason_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "knowledge.md").read_text("utf-8")
    section = page.partition("### Why there is no text\n")[2].partition("\n### ")[0]
    assert re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE) == [*WHY_NO_TEXT.items()]
