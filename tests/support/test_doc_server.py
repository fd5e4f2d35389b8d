"""The server refuses what DOC 2.0 was seen to refuse, in its words, and finds what it should."""

import json
import urllib.request
from urllib.parse import urlencode

import pytest

from tests.support.doc_rules import complaint
from tests.support.doc_server import DocServer, recorded
from tests.tools.gdelt.doc.kit import need_recorded, row

SPAN = {"startdatetime": "20260601000000", "enddatetime": "20260701000000"}
REFUSED = {
    "oil a": "keyword that was too short",
    "AI": "keyword that was too short",
    '"AI"': "phrase is too short",
    '"Iran"': "phrase is too short",
    '("ITC" OR "ITC Limited")': "phrase is too short",
    "oil OR gas": "surrounded by ()",
    "(oil)": "only be used around",
    "(OpenAI)": "only be used around",
    "(oil OR gas": "parenthetical clauses",
    "((oil OR gas) OR coal)": "parenthetical clauses",
    "(oil gas)": "parenthetical clauses",
    "D-Wave": "illegal character",
    "AT&T": "illegal character",
    '"open': "illegal character",
    "locationcc:br": "too common: (locationcc:br)",
    "and": "too common: (and)",
    "x" * 250: "too short or too long",
    "": "too short or too long",
}
ACCEPTED = (
    "Iran",
    '"climate change"',
    '"D-Wave" sourcelang:english',
    '(gold OR bullion) (fed OR inflation OR "interest rate" OR dollar) sourcelang:eng',
    '(near20:"united states china" OR "US-China")',
)


@pytest.mark.parametrize(("query", "told"), REFUSED.items())
def test_refusals(query: str, told: str) -> None:
    assert told in (complaint({"query": query, **SPAN}) or "")


@pytest.mark.parametrize("query", ACCEPTED)
def test_accepted_queries(query: str) -> None:
    assert complaint({"query": query, **SPAN}) is None


@pytest.mark.parametrize(
    ("span", "told"),
    [
        ({"startdatetime": "20160101000000"}, "Invalid query start date."),
        ({"startdatetime": "soon"}, "Invalid query start date."),
        ({"enddatetime": "20260601000500"}, "Timespan is too short."),
    ],
)
def test_spans(span: dict[str, str], told: str) -> None:
    assert complaint({"query": "Iran", **SPAN, **span}) == told


def test_every_recorded_refusal_of_a_doc_query_is_among_them() -> None:
    lines = (need_recorded() / "observed_errors.jsonl").read_text(encoding="utf-8").splitlines()
    seen = [json.loads(line) for line in lines]
    ours = {complaint({"query": query, **SPAN}) for query in REFUSED}
    ours |= {"Timespan is too short.", "Invalid query start date."}
    others = {"Invalid/Unsupported Country.", "{}"}
    bodies = {one["body"] for one in seen if one["api"] == "doc"}
    assert {body for body in bodies if not body.startswith("Please limit")} <= ours | others


def test_an_unencoded_query_is_cut_as_the_service_cuts_it() -> None:
    with DocServer([row("AT&T buys a rival company")]).in_thread() as server:
        with urllib.request.urlopen(f"{server.url}?query=%22AT&T%22&mode=artlist") as response:
            assert response.read().startswith(b"<!DOCTYPE")
        sent = {"query": '"AT & T"', "mode": "artlist", "format": "json", **SPAN}
        with urllib.request.urlopen(f"{server.url}?{urlencode(sent)}") as response:
            assert json.load(response)["articles"][0]["title"] == "AT&T buys a rival company"
    assert server.asked[0]["query"] == '"AT'


def test_recorded_lists_are_read_whatever_their_notation() -> None:
    assert len(recorded(need_recorded())) == 9499
