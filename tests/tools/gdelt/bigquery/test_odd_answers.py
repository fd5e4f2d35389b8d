"""Answers that are not of Google's form refuse a request; odd rows are left out and counted."""

import copy

import pytest

from coreeval.tools.gdelt.bigquery.request import OddRow, count_sites, to_article
from tests.support.bigquery.server import BigQueryServer
from tests.tools.gdelt.bigquery.conftest import Opener
from tests.tools.gdelt.bigquery.news import GKG, JUNE, named

NAME = "Mary Smith"
BYTES = "totalBytesProcessed"
BILLED = "totalBytesBilled"

ANSWERS = [
    ("dry_run", ["statistics", "query"], {BYTES: "9" * 5000}),
    ("dry_run", ["statistics", "query"], {BYTES: "9" * 4000}),
    ("dry_run", ["statistics", "query"], {BYTES: "abc"}),
    ("dry_run", ["statistics", "query"], {BYTES: "-1"}),
    ("dry_run", ["statistics", "query"], [1]),
    ("dry_run", ["statistics"], [1, 2]),
    ("dry_run", [], [1, 2]),
    ("dry_run", [], None),
    ("insert", ["statistics", "query"], {BILLED: "abc"}),
    ("insert", ["statistics", "query"], {BILLED: "-99999999999999"}),
    ("insert", ["status"], "DONE"),
    ("insert", ["status"], {"state": "DONE", "errorResult": "oops"}),
    ("insert", ["status"], {"state": "DONE", "errorResult": ["x"], "errors": ["y"]}),
    ("insert", ["configuration"], [1]),
    ("results", ["schema"], [1]),
    ("results", ["rows"], ["x"]),
    ("results", ["rows"], [{"f": []}]),
    ("results", ["rows"], [[[]]]),
    ("results", ["totalRows"], "x"),
]


@pytest.mark.parametrize(("step", "path", "value"), ANSWERS)
async def test_an_odd_answer_is_a_refusal_and_counts_in_full(
    server: BigQueryServer, opened: Opener, step: str, path: list[str], value: object
) -> None:
    def alter(asked: str, answer: object) -> object:
        if asked != step:
            return answer
        altered = {"answer": copy.deepcopy(answer)}
        inside = altered
        for key in ["answer", *path][:-1]:
            inside = inside[key]  # type: ignore[assignment]
        inside[["answer", *path][-1]] = value
        return altered["answer"]

    server.alter = alter
    server.engine.add(gkg=GKG)
    found = await opened(feeds=["gkg"]).fetch(named(NAME), JUNE, 5)
    assert found.reasons == {NAME: "unavailable"}
    assert any("BigQuery did not answer" in note for note in found.notes)
    assert found.bytes_billed == server.billed


ODD_CELLS = [
    ("sites", "many"),
    ("sites", "9" * 5000),
    ("sites", None),
    ("names", [{"v": "9,Bob"}]),
]


@pytest.mark.parametrize(("column", "value"), ODD_CELLS)
async def test_an_odd_row_is_left_out_and_counted(
    server: BigQueryServer, opened: Opener, column: str, value: object
) -> None:
    def alter(asked: str, answer: dict[str, object]) -> object:
        if asked != "results":
            return answer
        altered = copy.deepcopy(answer)
        fields = altered["schema"]["fields"]  # type: ignore[index]
        at = [field["name"] for field in fields].index(column)
        if column == "sites":
            fields[at]["type"] = "STRING"
        altered["rows"][0]["f"][at]["v"] = value  # type: ignore[index]
        return altered

    server.alter = alter
    server.engine.add(gkg=GKG)
    found = await opened(feeds=["gkg"], min_precision="crawl").fetch(named(NAME), JUNE, 5)
    assert any("skipped 1 of " in note for note in found.notes)
    assert len(found.by_query[NAME]) == 1


def test_a_row_without_its_columns_is_odd() -> None:
    with pytest.raises(OddRow):
        to_article("gkg", {"url": "http://a.example/1"})
    with pytest.raises(OddRow):
        count_sites({})


@pytest.mark.parametrize("column", ["url", "title", "description", "record"])
def test_half_a_character_makes_a_row_odd(column: str) -> None:
    row: dict[str, object] = {
        "url": "http://a.example/1", "title": "News", "description": "", "crawled": 20260610033000,
        "stated": None, "names": ["1,Bob"], "record": "r", "sites": 1,
    }  # fmt: skip
    article = to_article("gkg", row)
    assert article and article.entities[0].name == "Bob" and count_sites(row) == 1
    with pytest.raises(OddRow):
        to_article("gkg", row | {column: "half \ud800 one"})
