"""What news text may do: nothing."""

import gzip
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.tools.gdelt.untrusted import (
    _ORDER,
    LONGEST_TITLE,
    _plain,
    clean,
    instruction_like,
)
from tests.hostile.texts import HOSTILE

SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "gdelt"
NO_ORDER = {  # tricks that no reader of one headline could tell from news
    "bribe", "threat", "link", "mention", "sql", "shell", "path", "coded", "reversed", "German",
    "Spanish", "French", "Russian", "Chinese", "Arabic", "spoof of a rule", "fake evidence id",
    "fake quote", "zero width", "direction", "unicode tags", "control signs", "terminal", "html",
    "markdown", "html comment", "newline flood", "emoji flood", "closing braces", "quote break",
}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("Tom &amp;amp; Jerry&#8217;s", "Tom & Jerry\u2019s"),
        ("<b>Bridge</b> opens<br/>today", "Bridge opens today"),
        ("Shares < 5 and > 3", "Shares < 5 and > 3"),
        ("Bridge \u202eneprow\u202c opens\u200b", "Bridge neprow opens"),
        ("a\x00b\x1b[2Jc\td\r\ne", "ab[2Jc d e"),
        (
            "family \U0001f468\u200d\U0001f469\u200d\U0001f467 day",
            "family \U0001f468\u200d\U0001f469\u200d\U0001f467 day",
        ),
        ("line\u2028break", "linebreak"),
        ("caf\u00e9 \u0645\u0631\u062d\u0628\u0627", "caf\u00e9 \u0645\u0631\u062d\u0628\u0627"),
    ],
)
def test_what_no_reader_sees_goes(raw: str, seen: str) -> None:
    assert clean(raw) == seen


def test_a_long_text_is_cut_at_a_word() -> None:
    cut = clean("word " * 500)
    assert len(cut) <= LONGEST_TITLE
    assert cut.endswith("word\u2026")
    assert len(clean("x" * 5000)) == LONGEST_TITLE


@given(st.text(max_size=400))
def test_whatever_comes_is_one_bounded_line_of_text(raw: str) -> None:
    text = clean(raw)
    assert len(text) <= LONGEST_TITLE
    assert not any(unicodedata.category(letter) == "Cc" for letter in text)
    assert "  " not in text and text == text.strip()


@pytest.mark.parametrize("trick", [name for name in HOSTILE if name not in NO_ORDER])
def test_an_order_is_flagged(trick: str) -> None:
    assert instruction_like(HOSTILE[trick])


def test_real_headlines_are_not_flagged() -> None:
    if not SHARED.exists():
        pytest.skip("the development data is not beside this checkout")
    with gzip.open(SHARED / "doc_api" / "articles_2025_climate_companies.jsonl.gz", "rt") as lines:
        titles = {json.loads(line)["title"] for line in lines}
    flagged = [title for title in titles if instruction_like(title)]
    assert len(titles) > 5000
    assert flagged == []


@given(st.from_regex(_ORDER))
def test_no_order_is_passed_over_for_want_of_its_words(text: str) -> None:
    assert instruction_like(text) == bool(_ORDER.search(_plain(text)))
