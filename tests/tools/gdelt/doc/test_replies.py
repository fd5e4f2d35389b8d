"""What the service says is understood, in every form in which it was seen to say it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.config.knowledge import DocConfig
from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.doc.doc_source import open_doc
from coreeval.tools.gdelt.doc.fetch import to_articles
from coreeval.tools.gdelt.doc.replies import (
    ArticleList,
    DocAnswer,
    EmptyAnswer,
    HttpReply,
    NoReply,
    RateLimitAnswer,
    Rejection,
    ServiceFailure,
    build_url,
    open_wire,
    read_reply,
)
from coreeval.tools.http import MOST_BODY_BYTES, parse_retry_after
from tests.support.doc_server import NOTICE, DocServer, Fault, always
from tests.support.proxy import Proxy
from tests.tools.gdelt.doc.kit import asked, need_recorded, query, row, said

REFUSALS = (
    "The specified phrase is too short.",
    "Your search contained a keyword that was too short.",
    "Your query was too short or too long.",
    "One or more of your keywords were too short, too long or too common: (locationcc:br)",
    "Queries containing OR'd terms must be surrounded by ().",
    "Boolean OR's may only appear inside of a () clause.",
    "Parentheses may only be used around OR'd statements.",
    "One or more of your parenthetical clauses had an error in it.",
    "One or more of your keywords contained an illegal character. To use a dash in a word, place it"
    ' in quotes like "f-16".',
    "Timespan is too short.",
    "Invalid query start date.",
    "Invalid/Unsupported Country.",
    "Your query contained an invalid location search (x)",
)
BROKEN = (
    "",
    "   \n",
    "<html><body>502 Bad Gateway</body></html>",
    "<!DOCTYPE html><title>GDELT</title>",
    '{"articles": [{"url": "https://a.example/1", "tit',
    '{"timeline": []}',
    "5",
    '"a string"',
    "lower case words",
    "Long " + "words " * 60,
)


def test_all_recorded_errors_are_understood() -> None:
    folder = need_recorded()
    lines = (folder / "observed_errors.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 16
    for record in records:
        answer = read_reply(said(record["body"], record["http_status"] or 200))
        if record["body"] == "{}":
            assert answer == EmptyAnswer()
        elif record["body"].startswith("Please limit"):
            assert isinstance(answer, RateLimitAnswer)
        else:
            assert answer == Rejection(record["body"])


@pytest.mark.parametrize("name", ["rate_limited.txt", "rate_limited_429_20260905.txt"])
@pytest.mark.parametrize("status", [200, 429, 503])
def test_a_recorded_notice_is_throttling_whatever_the_status(name: str, status: int) -> None:
    body = (need_recorded() / name).read_bytes()
    assert isinstance(read_reply(HttpReply(status=status, body=body)), RateLimitAnswer)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("keyword_error.txt", Rejection),
        ("query_rejected_200_20260905.txt", Rejection),
        ("gdelt-gold-artlist.json", ArticleList),
        ("live_artlist_20260905.json", ArticleList),
        ("vizhinjam_2024.json", ArticleList),
        ("gdelt-gold.json", ServiceFailure),
    ],
)
def test_recorded_bodies(name: str, kind: type[DocAnswer]) -> None:
    assert isinstance(
        read_reply(HttpReply(status=200, body=(need_recorded() / name).read_bytes())), kind
    )


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_in_any_case(text: str) -> None:
    assert read_reply(said(text)) == Rejection(text)
    assert isinstance(read_reply(said(text.lower())), Rejection)


def test_a_short_sentence_not_seen_before_is_a_refusal() -> None:
    assert read_reply(said("Your moon is in the wrong house.")) == Rejection(
        "Your moon is in the wrong house."
    )


@pytest.mark.parametrize("body", BROKEN)
def test_what_makes_no_sense_is_a_failure_and_never_no_news(body: str) -> None:
    assert isinstance(read_reply(said(body)), ServiceFailure)


@pytest.mark.parametrize("status", [403, 404, 500, 502, 503, 504])
def test_an_error_status_is_a_failure(status: int) -> None:
    assert read_reply(said("Bad Gateway", status)) == ServiceFailure(f"status {status}")


def test_an_empty_list_is_no_news() -> None:
    assert read_reply(said("{}")) == read_reply(said('\ufeff {"articles": []}')) == EmptyAnswer()


def test_the_notice_in_a_title_is_news() -> None:
    title = "Please limit requests to one every 5 seconds, says GDELT"
    assert isinstance(read_reply(said(json.dumps({"articles": [row(title)]}))), ArticleList)


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        (rb"It\'s a \x title", r"It\'s a \x title"),
        (rb"C:\\x and \u00e9 \uD", "C:\\x and é \\uD"),
        (b"two\x01words\tand one", "two\x01words\tand one"),
        (b"Caf\xe9 owners meet", "Caf\ufffd owners meet"),
        (rb"a \"quoted\" word", 'a "quoted" word'),
    ],
)
def test_bad_escapes_control_characters_and_latin_1_harm_no_list(raw: bytes, title: str) -> None:
    answer = read_reply(HttpReply(status=200, body=b'{"articles": [{"title": "' + raw + b'"}]}'))
    assert answer == ArticleList(({"title": title},))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("30", 30.0),
        ("-5", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("Sat, 21 Nov 2026 12:01:00 GMT", 60.0),
        ("Sat, 21 Nov 2020 12:01:00 GMT", 0.0),
    ],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert parse_retry_after(header, now=datetime(2026, 11, 21, 12, tzinfo=UTC)) == seconds


def test_articles_are_repaired_and_rows_without_a_place_in_time_are_left_out() -> None:
    rows = (
        dict(row("Gold rises to two - month high as 1. 5 % cut nears", "https://a.example/1")),
        dict(row("No address", "none")),
        dict(row("No date", "https://a.example/2", seen="soon")),
        {"url": 5, "title": None},
    )
    (article,) = to_articles(rows, "doc x")
    assert article.title == "Gold rises to two-month high as 1.5% cut nears"
    assert (article.language, article.origin) == ("en", "doc x:1")


PARAMETERS = {"query": '"AT & T" C# 100% "x+y"', "mode": "artlist"}


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("AT&T", '"AT & T"'),
        ("C# language", '"C# language"'),
        ('Dwayne "The Rock" Johnson', '"Dwayne The Rock Johnson"'),
        ("100% Müller", '"100% Müller"'),
    ],
)
async def test_signs_of_names_arrive(name: str, term: str, tmp_path: Path) -> None:
    server = DocServer([row(f"Shares of {name} rise again today")])
    found = await asked(server, tmp_path, query(name))
    assert found.by_query["q"][0].title == f"Shares of {name} rise again today"
    (sent,) = server.asked
    assert sent["query"] == f"sourcelang:english {term}"
    assert (sent["mode"], sent["format"], sent["sort"]) == ("artlist", "json", "datedesc")
    assert (sent["startdatetime"], sent["enddatetime"]) == ("20260601000000", "20260629000000")
    assert sent["maxrecords"] == "250"
    assert server.agents[0].startswith("coreeval ")


@settings(deadline=None, max_examples=30)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_arrives_whole(text: str) -> None:
    server = DocServer([])

    async def send() -> None:
        async with server.running(), open_wire(server.url) as wire:
            await wire.get({"query": text, "format": "json"}, 5)

    asyncio.run(send())
    assert server.asked == [{"query": text, "format": "json"}]


def test_a_gateway_keeps_its_own_parameters() -> None:
    url = build_url("http://gateway.example/doc?key=a%26b", PARAMETERS)
    assert str(url).startswith(
        "http://gateway.example/doc?key=a%26b&query=%22AT%20%26%20T%22%20C%23"
    )


@asynccontextmanager
async def replying(fault: Fault) -> AsyncIterator[DocServer]:
    async with DocServer([], always(fault)).running() as server:
        yield server


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault(hang=True), "no answer within"),
        (Fault(drop=True), "Server"),
    ],
)
async def test_no_reply_is_told(fault: Fault, told: str) -> None:
    async with replying(fault) as server, open_wire(server.url) as wire:
        with pytest.raises(NoReply, match=told):
            await wire.get(PARAMETERS, 0.2)


async def test_nobody_there_is_told() -> None:
    async with DocServer([]).running() as server:
        gone = server.url
    async with open_wire(gone) as wire:
        with pytest.raises(NoReply, match="Cannot connect"):
            await wire.get(PARAMETERS, 5)


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/json"])
async def test_the_reply_is_taken_as_it_is(kind: str) -> None:
    fault = Fault(body=NOTICE, content_type=kind, retry_after="7")
    async with replying(fault) as server, open_wire(server.url) as wire:
        reply = await wire.get(PARAMETERS, 5)
    assert (reply.status, reply.body.decode(), reply.retry_after) == (200, NOTICE, "7")


async def test_an_endless_answer_is_cut_off() -> None:
    async with (
        replying(Fault(body="x" * (MOST_BODY_BYTES + 1))) as server,
        open_wire(server.url) as wire,
    ):
        with pytest.raises(NoReply, match="more than 8 MiB"):
            await wire.get(PARAMETERS, 5)


async def test_requests_take_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Proxy(login="me:secret").running() as proxy, DocServer([]).running() as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        async with open_wire(server.url) as wire:
            assert (await wire.get(PARAMETERS, 5)).status == 200
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with open_wire(server.url) as wire:
            assert (await wire.get(PARAMETERS, 5)).status == 200
    (request,) = proxy.asked
    assert request.startswith(f"GET {server.url}?query=%22AT%20%26%20T%22%20C%23")


async def test_a_refusing_proxy_is_told_of_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Proxy(login="you:other").running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        async with open_wire("https://news.example/doc") as wire:
            with pytest.raises(NoReply, match="the proxy answered HTTP 407") as caught:
                await wire.get(PARAMETERS, 5)
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize("place", ["socks5://*127.0.0.1:1080", "http://*a..b", "*h:99999"])
def test_a_proxy_that_cannot_be_spoken_to_is_an_error_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", place.replace("*", "me:secret@"))
    with pytest.raises(KnowledgeError, match="the environment names a proxy that DOC") as caught:
        open_doc(DocConfig(), tmp_path)
    assert "secret" not in str(caught.value)
