"""How figures, text from outside and unusual ids read on a page and in an address."""

from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from coreeval.viewer.rendering import (
    build_compare_url,
    build_run_url,
    build_sample_url,
    format_time,
    isolate_text,
    keep_web_url,
    make_environment,
    read_sample_id,
)
from tests.viewer.kit import PATIENCE_S, served

ODD_IDS = (
    "emotion/test/1", "a?b=c#d", "../../x", "./x", "a//b", "a/..", "?", "", "%2e%2e/x",
    "é %2F\\ \u202e", "x" * 300,
)  # fmt: skip


def test_what_is_not_known_is_a_dash_or_says_so() -> None:
    filters = make_environment().filters
    assert [filters[name](None) for name in ("number", "percent", "seconds", "usd")] == [
        *3 * ["\N{EN DASH}"], "unknown price",
    ]  # fmt: skip
    assert [filters[name](0.5) for name in ("number", "percent", "seconds", "usd")] == [
        "0", "50.0 %", "500 ms", "0.5000 USD",
    ]  # fmt: skip


def test_reasons_and_names_are_words() -> None:
    filters = make_environment().filters
    assert filters["reason"]("no_news for 'album', 'music'") == "no news for 'album', 'music'"
    assert filters["reason"]("self_harm: 'hurt'; mentions: @x") == (
        "self harm: 'hurt'; @names that differ from the original: @x"
    )
    assert filters["side"]("demo.small.20261101T080000Z") == "demo.small/20261101T080000Z"
    assert filters["side"]("release:demo.2026.47") == "release demo.2026.47"


def test_moments_read_well() -> None:
    assert [format_time(stamp) for stamp in ("2026-01-02T03:04:05Z", "")] == [
        "2026-01-02 03:04", "",
    ]  # fmt: skip


def test_markup_of_others_is_shown_as_they_wrote_it() -> None:
    said = str(isolate_text('<script>alert("1")</script> & <b onclick=x>'))
    assert said == (
        "<bdi>&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt; &amp; &lt;b onclick=x&gt;</bdi>"
    )


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u202e", "right-to-left override"),
        ("\u2066", "left-to-right isolate"),
        ("\u200b", "zero width space"),
        ("\x1b", "control character"),
        ("\ufeff", "zero width no-break space"),
    ],
)
def test_a_character_without_a_shape_is_marked(character: str, name: str) -> None:
    said = str(isolate_text(f"a{character}b"))
    assert character not in said
    assert f'title="{name}">U+{ord(character):04X}</span>b' in said


def test_orthography_is_no_trick() -> None:
    family, persian = "👩\u200d👧", "\u0645\u06cc\u200c\u062e\u0648\u0627"
    assert family in str(isolate_text(family))
    assert persian in str(isolate_text(persian))
    assert "U+200D" in str(isolate_text("pass\u200dword"))
    assert "line\nbreak\ttab" in str(isolate_text("line\nbreak\ttab"))


def test_only_addresses_of_the_web_become_links() -> None:
    assert keep_web_url("https://example.org/a") == "https://example.org/a"
    for bad in ("javascript:alert(1)", " https://x", "data:text/html,x", "//x", "file:///etc", ""):
        assert keep_web_url(bad) is None


def test_any_id_survives_the_way_through_an_address() -> None:
    async def told(request: Request) -> PlainTextResponse:
        return PlainTextResponse(read_sample_id(request) + "\n" + request.query_params["sort"])

    app = Starlette(routes=[Route("/run/{key}/sample/{id:path}", told)])
    with served(app) as base:
        for sample in ODD_IDS:
            address = build_sample_url("k", sample, "sort=-usd")
            assert not {".", ".."} & set(unquote(urlsplit(address).path).split("/"))
            with urlopen(base + address, timeout=PATIENCE_S) as page:
                assert page.read().decode() == f"{sample}\n-usd"


def test_addresses_are_encoded() -> None:
    assert build_run_url("a.b") == "/run/a.b"
    assert build_run_url("a.b", "samples", outcome="failed", cause="a & b") == (
        "/run/a.b/samples?outcome=failed&cause=a+%26+b"
    )
    assert build_compare_url("a.b", "c&d") == "/compare?a=a.b&b=c%26d"
