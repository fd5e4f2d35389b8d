"""Files that the pages offer for download."""

import csv
import io
import json

import pytest
from starlette.testclient import TestClient

from coreeval.viewer import downloads
from coreeval.viewer.app import create_app
from coreeval.viewer.rendering import build_run_url, build_story_url
from tests.viewer.kit import Finished

HERE = "http://127.0.0.1:7317"


@pytest.fixture(scope="module")
def client(finished: Finished) -> TestClient:
    """Return a client of the pages of both runs."""
    return TestClient(create_app([], workspace=finished.workspace), base_url=HERE)


def test_a_list_is_downloaded_whole_in_its_order(
    client: TestClient, finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "_ROWS_AT_ONCE", 3)
    key = finished.key(finished.first)
    answer = client.get(build_run_url(key, "download/samples.csv", outcome="accepted", sort="-usd"))
    assert answer.headers["content-disposition"] == 'attachment; filename="samples.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    page = client.get(build_run_url(key, "samples", outcome="accepted", sort="-usd")).text
    assert len(rows) > 3
    places = [page.index(f">{row['sample']}<") for row in rows]
    assert places == sorted(places)
    assert {row["outcome"] for row in rows} == {"accepted"}


def test_a_story_is_downloaded_as_trace_tells_it_and_hidden_texts_are_hidden(
    client: TestClient, finished: Finished
) -> None:
    key = finished.key(finished.first)
    listed = client.get(build_run_url(key, "download/samples.csv")).text
    sample = next(csv.DictReader(io.StringIO(listed.removeprefix("\ufeff"))))["sample"]
    answer = client.get(build_story_url(key, sample))
    assert answer.headers["content-disposition"].endswith('.json"')
    story = answer.json()
    text = story["sample"]["fields"]["text"]
    assert story["sample"]["id"] == sample
    assert all(isinstance(call["tries"], str) for step in story["steps"] for call in step["calls"])
    hidden = TestClient(create_app([finished.first], hide_texts=True), base_url=HERE)
    told = hidden.get(build_story_url(next(iter([key])), sample))
    assert json.dumps(text)[1:20] not in told.text
    assert hidden.get(build_run_url(key, "download/report.json")).status_code == 403


def test_only_files_of_the_report_are_sent(client: TestClient, finished: Finished) -> None:
    key = finished.key(finished.first)
    overview = client.get(build_run_url(key)).text
    for name in ("report.html", "report.json", "items.csv"):
        address = build_run_url(key, f"download/{name}")
        assert f'href="{address}"' in overview
        assert client.get(address).content == (finished.first / name).read_bytes()
    for name in ("run.db", "manifest.json", "..%2Fmanifest.json"):
        assert client.get(build_run_url(key) + f"/download/{name}").status_code == 404
