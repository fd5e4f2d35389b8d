"""Two runs or releases side by side, without a browser."""

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coreeval.releases.release import hash_texts
from coreeval.runs.manifest import read_manifest
from coreeval.tools.stores.run_queries import ComparedSample
from coreeval.tools.text import unescape
from coreeval.tools.workspace import Workspace
from coreeval.viewer.app import create_app
from coreeval.viewer.comparison import DifferenceFilter, SampleDifference, find_differences
from coreeval.viewer.rendering import build_compare_url
from tests.releases.kit import Made, make_run
from tests.viewer.kit import Finished

TAKEN = ["emotion/test/1", "emotion/test/2"]
"""Samples whose evidence names the person that the second release leaves out."""
HERE = "http://127.0.0.1:7317"


def words_of(html: str) -> str:
    """Return what a page says, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def pairs_of(html: str) -> dict[str, str]:
    """Return what is said of each sample that differs, by its id."""
    found = re.findall(r'<article class="panel pair".*?</article>', html, re.S)
    return {re.findall(r"<h3[^>]*><bdi>(.*?)</bdi>", each)[0]: each for each in found}


# -- which samples differ -------------------------------------------------------------------------


def stands(sample: str, outcome: str = "accepted", text: str | None = "a") -> ComparedSample:
    return (sample, "joy", outcome, json.dumps({"text": text}) if text else None, None)


def test_what_differs_is_told_in_the_order_of_the_later_side() -> None:
    before = [stands("gone"), stands("same"), stands("moved"), stands("worded")]
    after = [stands("worded", text="b"), stands("new"), stands("moved", "failed", None)]
    found = find_differences(before, [*after, stands("same")])
    assert found.differences == (
        SampleDifference("worded", "accepted", "accepted", ("updated",)),
        SampleDifference("new", "not there", "accepted", ()),
        SampleDifference("moved", "accepted", "failed", ("outcome", "updated")),
        SampleDifference("gone", "accepted", "not there", ()),
    )
    assert found.shared == 3
    assert [(one.before, one.after, one.samples) for one in found.moves] == [
        ("not there", "accepted", 1),
        ("accepted", "failed", 1),
        ("accepted", "not there", 1),
    ]
    assert found.kinds == {"outcome": 1, "updated": 2, "semantic": 0, "label": 0}
    chosen = found.select(DifferenceFilter(kind="updated", text="MOV"))
    assert [one.sample for one in chosen] == ["moved"]


def test_a_text_is_the_same_in_any_order_of_its_fields_and_as_its_digest() -> None:
    fields = {"sentence1": "\u00e9", "sentence2": "b"}
    turned = json.dumps(dict(reversed(fields.items())))
    for other in (turned, hash_texts(fields)):
        row = ("x", "joy", "accepted", json.dumps(fields), None)
        assert not find_differences([row], [("x", "joy", "accepted", other, None)]).differences


# -- two runs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(finished: Finished) -> TestClient:
    """Return a client of the pages of both runs."""
    return TestClient(create_app([], workspace=finished.workspace), base_url=HERE)


def test_two_runs_tell_which_role_had_another_model_and_what_it_cost(
    client: TestClient, finished: Finished
) -> None:
    first, second = (finished.key(run) for run in (finished.first, finished.second))
    text = client.get(build_compare_url(first, second)).text
    differing = re.findall(r'<tr class="differs">.*?</tr>', text, re.S)
    assert [words_of(row) for row in differing] == [
        "composer differs openai:scripted openai:another"
    ]
    costs = [read_manifest(run / "manifest.json").cost for run in (finished.first, finished.second)]
    billed = " ".join(f"{cost.billed_usd:.4f} USD" for cost in costs)
    assert f"billed {billed}" in words_of(text)
    assert f'href="{build_compare_url(second, first)}"' in unescape(text)


def test_the_same_run_twice_differs_in_nothing(client: TestClient, finished: Finished) -> None:
    key = finished.key(finished.first)
    said = words_of(client.get(build_compare_url(key, key)).text)
    assert "No sample differs." in said
    assert "No other setting differs." in said


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 200), ("?a=x", 200), ("?a=x&b=y", 404), ("?a={a}&b={b}&kind=x", 400),
     ("?a={a}&b={b}&page=0", 400), ("?a={a}&b={b}&page=" + "9" * 5000, 400),
     ("?a={a}&b={b}&page=7", 200)],
)  # fmt: skip
def test_an_address_shows_a_comparison_or_says_what_is_wrong(
    client: TestClient, finished: Finished, query: str, status: int
) -> None:
    keys = {"a": finished.key(finished.first), "b": finished.key(finished.second)}
    assert client.get("/compare" + query.format(**keys)).status_code == status


# -- releases -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a run by hand that was released twice, the second time without a person."""
    run = make_run(tmp_path_factory.mktemp("made"))
    run.release("1")
    takedown = run.folder / "takedown.txt"
    takedown.write_text("Ada Roe\n")
    run.release("2", takedown=takedown)
    return run


@pytest.fixture(scope="module")
def released(made: Made) -> TestClient:
    """Return a client of the run and its releases."""
    workspace = Workspace(made.folder / ".coreeval")
    return TestClient(create_app([made.files.root], workspace=workspace), base_url=HERE)


def test_two_releases_tell_which_text_left_and_what_it_said(released: TestClient) -> None:
    text = released.get(build_compare_url("weekly.1", "weekly.2")).text
    pairs = pairs_of(text)
    assert list(pairs) == TAKEN
    said = words_of(pairs["emotion/test/1"])
    assert "[removed: Ada Roe opened it ]" in said
    assert "old was there → new 0 is here" in said
    assert "example.org" in said
    assert "/sample/" not in pairs["emotion/test/1"]


def test_a_run_and_its_release_are_the_same_where_nothing_is_withheld(
    released: TestClient, made: Made
) -> None:
    key = f"{made.folder.name}.run"
    assert "No sample differs." in released.get(build_compare_url(key, "release:weekly.1")).text
    assert list(pairs_of(released.get(build_compare_url(key, "weekly.2")).text)) == TAKEN


def test_hidden_texts_are_compared_by_their_marks(made: Made) -> None:
    workspace = Workspace(made.folder / ".coreeval")
    client = TestClient(create_app([], workspace=workspace, hide_texts=True), base_url=HERE)
    said = words_of(client.get(build_compare_url("weekly.1", "weekly.2")).text)
    assert "characters, sha256" in said
    assert "Ada Roe opened" not in said
    assert "new 0" not in said


def test_a_filter_goes_along_with_pages_and_can_be_left(released: TestClient, made: Made) -> None:
    key = f"{made.folder.name}.run"
    none = released.get(build_compare_url(key, "weekly.2") + "&kind=outcome").text
    assert "No sample differs in this way." in none
    assert f'href="{build_compare_url(key, "release:weekly.2")}#differences"' in unescape(none)
    assert '<option value="release:weekly.2" selected>' in none


def test_one_side_alone_cannot_be_compared(tmp_path: Path) -> None:
    client = TestClient(create_app([], workspace=Workspace(tmp_path)), base_url=HERE)
    assert "nothing to compare yet" in client.get("/compare").text
