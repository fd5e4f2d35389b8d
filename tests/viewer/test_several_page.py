"""Several runs and releases side by side, a benchmark over its releases, and a run's result."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coreeval.cli import main
from coreeval.evaluation.report.report_file import read_report
from coreeval.runs.manifest import read_manifest, write_manifest
from coreeval.runs.quality import TargetFindings, read_findings
from coreeval.tools.formatting import format_percent
from coreeval.tools.text import unescape
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.app import create_app
from coreeval.viewer.comparison import load_run_side
from coreeval.viewer.several_page import draw_scores
from tests.viewer.kit import Finished
from tests.viewer.test_run_pages import HERE, words_of

RELEASES = ["release:survival.1.0", "release:survival.1.1"]
DIFFERENT = "These are different tasks"


@pytest.fixture(scope="module")
def client(finished: Finished) -> TestClient:
    """Return a client of the pages of both runs and their releases."""
    return TestClient(create_app([], workspace=finished.workspace), base_url=HERE)


@pytest.fixture(scope="module")
def found(finished: Finished) -> TargetFindings:
    """Return what the first run found of its target."""
    files = RunFiles(finished.first)
    report = read_report(files)
    assert report
    (target,) = read_findings(report, where=files.report_json).targets
    assert target.original.estimate is not None
    return target


@pytest.fixture(scope="module")
def other_task(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the first run that is about another task."""
    run = Path(shutil.copytree(finished.first, tmp_path_factory.mktemp("other") / "run"))
    manifest = read_manifest(run / "manifest.json")
    write_manifest(run / "manifest.json", manifest.model_copy(update={"task": "irony"}))
    return run


def test_a_run_opens_with_its_result(
    client: TestClient, finished: Finished, found: TargetFindings
) -> None:
    key = finished.key(finished.first)
    html = client.get(f"/run/{key}").text
    assert html.index('id="result"') < html.index('id="now"') < html.index('id="cost"')
    result = html.partition('id="result"')[2].partition("</section>")[0]
    told = words_of(result)
    for score in (found.original, found.updated):
        assert format_percent(score.estimate) in told
    assert "Accepted" in told and "Label noise" in told
    lost = re.findall(r'href="([^"]*on_updated=wrong)"', unescape(result))
    (number,) = re.findall(r"([0-9]+) samples? right, then wrong", told)
    assert f"{number} sample" in words_of(client.get(lost[0]).text)


def test_a_run_without_updated_texts_shows_the_score_on_its_originals(
    finished: Finished, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished.first, tmp_path / "run"))
    with closing(sqlite3.connect(run / "run.db")) as store, store:
        store.execute("UPDATE results SET outcome = 'rejected_form', cause = 'length'")
    report = json.loads((run / "report.json").read_text("utf-8"))
    scores = report["arms"]["targets"][0]["all_samples"]
    scores["comparisons"] = []
    (run / "report.json").write_text(json.dumps(report), "utf-8")
    client = TestClient(create_app([run]), base_url=HERE)
    html = client.get(re.findall(r'href="(/run/[^"]*)"', client.get("/").text)[0]).text
    told = words_of(html.partition('id="result"')[2].partition("</section>")[0])
    assert re.search("Label noise, at most . no updated texts", told)
    assert "on all originals, because no sample has an updated text with answers" in told
    assert scores["arms"][0]["arm"] == "original"
    assert format_percent(scores["arms"][0]["macro_f1"]["estimate"]) in told


def test_a_benchmark_shows_its_releases_in_their_order_with_a_picture(
    client: TestClient, found: TargetFindings
) -> None:
    links = re.findall(r'href="(/benchmark/[^"]*)"', client.get("/").text)
    assert set(links) == {"/benchmark/survival"}
    html = client.get(links[0]).text
    told = words_of(html)
    assert "2 releases, the oldest first" in told
    assert re.search(r"Target and arm survival 1\.0 survival 1\.1 ", told)
    assert f"updated: {format_percent(found.updated.estimate)}</title>" in html
    lines = re.findall(r'<polyline[^>]*points="([^"]*)"', html)
    assert [len(line.split()) for line in lines] == [2, 2]
    assert "updated texts kept" in told
    assert unescape(html).count(f"/compare?a={RELEASES[0].replace(':', '%3A')}&b=") == 1
    assert client.get("/benchmark/none").status_code == 404


def test_more_than_two_stand_side_by_side_with_their_scores(
    client: TestClient, finished: Finished, found: TargetFindings
) -> None:
    first = finished.key(finished.first)
    html = client.get("/compare", params={"side": [first, *RELEASES]}).text
    told = words_of(html)
    run = read_manifest(finished.first / "manifest.json").run
    assert f"Target and arm {run} survival 1.0 survival 1.1" in told
    assert told.count(format_percent(found.updated.estimate)) >= 3
    assert f'href="/run/{first}"' in html
    assert DIFFERENT not in told
    two = client.get("/compare", params={"side": RELEASES}).text
    assert two == client.get("/compare", params=dict(zip("ab", RELEASES, strict=True))).text
    assert "Target scores" in words_of(two)
    one = client.get("/compare", params={"side": [first]}).text
    assert f'value="{first}" checked' in one
    assert client.get("/compare", params={"side": [first, "x", "y"]}).status_code == 404


def test_no_more_stand_side_by_side_than_a_page_holds(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.viewer.compare_page.MOST_SIDES", 1)
    answer = client.get("/compare", params={"side": RELEASES})
    assert answer.status_code == 400
    assert "At most 1 runs or releases can be shown side by side" in words_of(answer.text)
    monkeypatch.setattr("coreeval.viewer.several_page.MOST_SIDES", 1)
    told = words_of(client.get("/benchmark/survival").text)
    assert "This page shows 1 release. 1 older release is not shown." in told
    assert "survival 1.1" in told and "survival 1.0" not in told


def test_two_tasks_are_not_compared_without_a_word(
    finished: Finished, other_task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [finished.first, finished.second, other_task]
    client = TestClient(create_app(runs), base_url=HERE)
    keys = re.findall(r'<a href="/run/([^"]*)"', client.get("/").text)
    same = [finished.key(run) for run in runs[:2]]
    (other,) = set(keys) - set(same)
    pair = words_of(client.get("/compare", params={"a": same[0], "b": other}).text)
    assert DIFFERENT in pair and "irony" in pair
    assert DIFFERENT in words_of(client.get("/compare", params={"side": [*same, other]}).text)
    alike = client.get("/compare", params=dict(zip("ab", same, strict=True))).text
    assert DIFFERENT not in words_of(alike)
    assert main(["diff", str(finished.first), str(other_task)]) == 0
    assert "warning: these are different tasks" in capsys.readouterr().out


def test_the_picture_leaves_out_what_was_not_scored(finished: Finished) -> None:
    side = load_run_side("first", finished.first)
    (line,) = draw_scores([side])
    assert len(line.points) == 1
    assert line.points[0].x == 360
    assert line.path("updated") == f"360.0,{line.points[0].updated}"
