"""`coreeval gdelt text`, and what `coreeval takedown` does to texts that are kept."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.kit import Shell
from tests.cli.test_docs import documented
from tests.support.news_site import BODY, TITLE, article_page
from tests.tools.articles.test_ccnews import record

URL = "https://herald.example/2026/ferry"


@pytest.fixture
def shop(shell: Shell) -> Shell:
    """A shell beside a file of texts and an archive, which name a captain."""
    row = {"url": URL, "title": TITLE, "text": "\n".join(BODY), "published_at": "2026-10-05"}
    shell.write("texts.jsonl", json.dumps(row) + "\n")
    named = (*BODY, "Ola Tveitli has been its captain for eleven years.")
    page = record("https://herald.example/2026/captain", article_page(body=named))
    (shell.folder / "a.warc.gz").write_bytes(page)
    return shell


def test_a_text_is_shown_with_its_source(shop: Shell) -> None:
    said = shop("gdelt", "text", URL, "https://x.example/y", "--from", "texts.jsonl", "--json")
    assert said.code == 0
    assert set(said.document) == documented("coreeval gdelt text")
    text, none = said.document["texts"]
    assert (text["source"], text["depth"], text["url"]) == ("file", "article", URL)
    assert text["text"].endswith("\u2026") and len(text["text"]) <= 300
    assert (none["reason"], none["url"]) == ("not_found", "https://x.example/y")
    shown = shop("gdelt", "text", URL, "https://x.example/y", "--from", "texts.jsonl", "--full").out
    assert f"2026-10-05 (file)  {TITLE}\n" in shown
    assert BODY[-1] in shown
    assert "no file contains the article" in shown


def test_a_text_that_is_not_the_article_has_a_reason(shop: Shell) -> None:
    more = ("--title", "Council elects a mayor in the capital", "--published", "2026-10-05")
    shown = shop("gdelt", "text", URL, "--from", "texts.jsonl", *more).out
    assert "does not share enough words with its title" in shown
    shown = shop("gdelt", "text", URL, "--from", "texts.jsonl", "--published", "2026-01-01").out
    assert "the date of the page differs from the date in the feed (2026-10-05)" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((URL,), "no source of texts"),
        ((URL, "--fetch"), "fetch: true needs contact"),
        ((URL, "--fetch", "--contact", "me"), "your contact address"),
        (("ftp://x.example/y", "--from", "texts.jsonl"), "not the address of a web page"),
        ((URL, "--from", "absent.jsonl"), "cannot read"),
        ((URL, "--from", "texts.jsonl", "--published", "soon"), "is not a date"),
    ],
)
def test_what_is_wrong_is_one_message(
    arguments: tuple[str, ...], message: str, shop: Shell
) -> None:
    said = shop("gdelt", "text", *arguments)
    assert said.code == 2
    assert message in said.err


def test_takedown_deletes_kept_texts_and_keeps_them_away(shop: Shell) -> None:
    ask = ("gdelt", "text", "https://herald.example/2026/captain", "--from", "a.warc.gz", "--json")
    (text,) = shop(*ask).document["texts"]
    assert text["source"] == "ccnews"
    told = shop("takedown", "Ola Tveitli", "--dry-run", "--json").document
    (place,) = told["places"]
    assert (place["kind"], place["count"]) == ("article texts", 1)
    done = shop("takedown", "Ola Tveitli", "--yes", "--json").document
    assert done["places"] == told["places"]
    assert _texts_kept(shop.folder / ".coreeval" / "cache" / "articles") == 0
    (again,) = shop(*ask).document["texts"]
    assert again["reason"] == "taken_down"


def _texts_kept(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "cache.db")) as database:
        (count,) = database.execute("SELECT count(*) FROM Cache").fetchone()
    return int(count)
