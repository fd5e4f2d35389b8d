"""What the service says is understood, in every form in which it was seen to say it."""

import json
from datetime import UTC, datetime

import pytest

from coreeval.tools.gdelt.doc.answers import (
    Answer,
    Failed,
    Listed,
    Nothing,
    Rejected,
    Throttled,
    read,
    retry_after_s,
)
from coreeval.tools.gdelt.doc.articles import articles
from coreeval.tools.gdelt.doc.wire import Reply
from tests.tools.gdelt.doc.kit import need_recorded, row, said

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
        answer = read(said(record["body"], record["http_status"] or 200))
        if record["body"] == "{}":
            assert answer == Nothing()
        elif record["body"].startswith("Please limit"):
            assert isinstance(answer, Throttled)
        else:
            assert answer == Rejected(record["body"])


@pytest.mark.parametrize("name", ["rate_limited.txt", "rate_limited_429_20260905.txt"])
@pytest.mark.parametrize("status", [200, 429, 503])
def test_a_recorded_notice_is_throttling_whatever_the_status(name: str, status: int) -> None:
    body = (need_recorded() / name).read_bytes()
    assert isinstance(read(Reply(status=status, body=body)), Throttled)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("keyword_error.txt", Rejected),
        ("query_rejected_200_20260905.txt", Rejected),
        ("gdelt-gold-artlist.json", Listed),
        ("live_artlist_20260905.json", Listed),
        ("vizhinjam_2024.json", Listed),
        ("gdelt-gold.json", Failed),
    ],
)
def test_recorded_bodies(name: str, kind: type[Answer]) -> None:
    assert isinstance(read(Reply(status=200, body=(need_recorded() / name).read_bytes())), kind)


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_in_any_case(text: str) -> None:
    assert read(said(text)) == Rejected(text)
    assert isinstance(read(said(text.lower())), Rejected)


def test_a_short_sentence_not_seen_before_is_a_refusal() -> None:
    assert read(said("Your moon is in the wrong house.")) == Rejected(
        "Your moon is in the wrong house."
    )


@pytest.mark.parametrize("body", BROKEN)
def test_what_makes_no_sense_is_a_failure_and_never_no_news(body: str) -> None:
    assert isinstance(read(said(body)), Failed)


@pytest.mark.parametrize("status", [403, 404, 500, 502, 503, 504])
def test_an_error_status_is_a_failure(status: int) -> None:
    assert read(said("Bad Gateway", status)) == Failed(f"status {status}")


def test_an_empty_list_is_no_news() -> None:
    assert read(said("{}")) == read(said('\ufeff {"articles": []}')) == Nothing()


def test_the_notice_in_a_title_is_news() -> None:
    title = "Please limit requests to one every 5 seconds, says GDELT"
    assert isinstance(read(said(json.dumps({"articles": [row(title)]}))), Listed)


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
    answer = read(Reply(status=200, body=b'{"articles": [{"title": "' + raw + b'"}]}'))
    assert answer == Listed(({"title": title},))


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
    assert retry_after_s(header, datetime(2026, 11, 21, 12, tzinfo=UTC)) == seconds


def test_articles_are_repaired_and_rows_without_a_place_in_time_are_left_out() -> None:
    rows = (
        dict(row("Gold rises to two - month high as 1. 5 % cut nears", "https://a.example/1")),
        dict(row("No address", "none")),
        dict(row("No date", "https://a.example/2", seen="soon")),
        {"url": 5, "title": None},
    )
    (article,) = articles(rows, "doc x")
    assert article.title == "Gold rises to two-month high as 1.5% cut nears"
    assert (article.language, article.origin) == ("en", "doc x:1")
