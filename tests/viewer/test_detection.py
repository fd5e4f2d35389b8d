"""The page on what targets remember, and the report, as a browser shows them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

from coreeval.evaluation.numleak.audit import numleak_document
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.app import create_app
from tests.evaluation.numleak.audits import HOSTILE, SETTINGS, guesses, knows, refuses, series
from tests.evaluation.report.kit import pcr
from tests.viewer.kit import NARROW, WIDE, Finished, Reader, served


@pytest.fixture(scope="module")
def detected(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """Return a copy of a run whose report has all that can be measured."""
    there = tmp_path_factory.mktemp("detected") / "run"
    shutil.copytree(finished.first, there)
    files, tides = RunFiles(there), series()
    said = [*knows(HOSTILE, tides), *guesses("openai:two", tides), *refuses("openai:mute", tides)]
    measured = {
        "pcr": pcr("openai:one", HOSTILE),
        "numleak": numleak_document(said, {"tides": tides}, SETTINGS, {}),
    }
    report = json.loads(files.report_json.read_text(encoding="utf-8")) | measured
    files.report_json.write_text(json.dumps(report), encoding="utf-8")
    return files


@pytest.fixture
def looking(browser: Browser, detected: RunFiles) -> Iterator[Reader]:
    """Return a page in the browser at the detection of that run."""
    with served(create_app([detected.root])) as address:
        context = browser.new_context()
        made = Reader(context.new_page(), address)
        yield made
        context.close()
        assert not made.complaints


def _client(files: RunFiles) -> tuple[TestClient, str]:
    app = create_app([files.root])
    (key,) = app.state.catalog.find_runs()
    return TestClient(app, base_url="http://127.0.0.1:7317"), f"/run/{key}/detection"


def unfold(page: Page) -> None:
    """Open what is folded; on a wide screen the sections of a report are not."""
    for fold in page.locator("summary").all():
        if fold.evaluate("it => getComputedStyle(it).pointerEvents") != "none":
            fold.click()


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
def test_all_that_was_measured_reads_well(
    looking: Reader, detected: RunFiles, scheme: str, size: dict[str, int]
) -> None:
    looking.page.set_viewport_size(size)  # type: ignore[arg-type]
    looking.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page = looking.open(_client(detected)[1])
    for heading in (
        "Scores of the targets on each arm",
        "Is the score due to memory?",
        "Are dated values remembered?",
    ):
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(page.locator(".pill:text('memorized')")).to_be_visible()
    unfold(page)
    looking.assert_readable()


def test_a_number_leads_to_what_it_means(looking: Reader, detected: RunFiles) -> None:
    page = looking.open(_client(detected)[1])
    page.get_by_role("link", name="consistency").first.click()
    expect(page.locator("#about-consistency:target")).to_be_in_viewport()


@pytest.mark.parametrize(("scheme", "size"), [("dark", WIDE), ("light", NARROW)])
def test_the_report_reads_well(
    reader: Reader, finished: Finished, scheme: str, size: dict[str, int]
) -> None:
    reader.page.set_viewport_size(size)  # type: ignore[arg-type]
    reader.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page = reader.open(f"/run/{finished.key(finished.first)}/report")
    expect(page.get_by_role("heading", name="What the numbers mean")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.figures')).display") == "flex"
    unfold(page)
    reader.assert_readable()


def test_names_from_outside_stay_names(detected: RunFiles) -> None:
    client, address = _client(detected)
    html = client.get(address).text
    assert "<script>alert" not in html and "&lt;script&gt;alert" in html


def _changed(files: RunFiles, folder: Path, report: bytes | None) -> RunFiles:
    """Return a copy of a run with another report, or without."""
    there = RunFiles(folder / "run")
    shutil.copytree(files.root, there.root)
    there.report_json.unlink()
    if report is not None:
        there.report_json.write_bytes(report)
    return there


def test_before_there_is_a_report_the_page_says_so(detected: RunFiles, tmp_path: Path) -> None:
    client, address = _client(_changed(detected, tmp_path, None))
    said = client.get(address).text
    assert "There are no results yet: targets are evaluated once all samples" in said


def test_what_was_not_measured_is_named(detected: RunFiles, tmp_path: Path) -> None:
    empty: dict[str, Any] = {"arms": {"targets": []}, "pcr": None, "numleak": None}
    client, address = _client(_changed(detected, tmp_path, json.dumps(empty).encode()))
    html = client.get(address).text
    assert "Not measured" in html and "detect.numleak" in html
    assert "<table" not in html


def test_detectors_stand_side_by_side_though_no_target_was_evaluated(
    detected: RunFiles, tmp_path: Path
) -> None:
    report = json.loads(detected.report_json.read_bytes())
    report["arms"]["targets"] = report["decomposition"]["targets"] = []
    matrix = report["decomposition"]["agreement"]
    unseen = {"said": "not_measured", "verdict": "", "reason": "was not run"}
    for row in matrix["rows"]:
        row["cells"] |= {"pcr": unseen, "membership": {**unseen, "said": "cannot_tell"}}
    client, address = _client(_changed(detected, tmp_path, json.dumps(report).encode()))
    html = client.get(address).text
    shown = html.partition("Results of all detectors")[2].partition("</thead>")[0]
    assert "<th>membership</th>" in shown and "<th>PCR</th>" not in shown
    assert "The detector reads log-probabilities." in html


@pytest.mark.parametrize("damage", [b"{", b"[]", b"{}", b"\xff"])
def test_a_damaged_report_is_told_in_one_message(
    detected: RunFiles, tmp_path: Path, damage: bytes
) -> None:
    client, address = _client(_changed(detected, tmp_path, damage))
    answer = client.get(address)
    assert answer.status_code == 500
    assert "report.json is damaged" in answer.text and "coreeval evaluate" in answer.text


@pytest.mark.parametrize("damage", [{"arm_rows": None}, {"arm_rows": 3}, {}])
def test_a_report_of_another_form_is_told_in_one_message(
    detected: RunFiles, tmp_path: Path, damage: dict[str, object]
) -> None:
    report = json.loads(detected.report_json.read_text(encoding="utf-8"))
    changed = {**report, **damage} if damage else {"arms": report["arms"], "pcr": {"targets": 1}}
    client, address = _client(_changed(detected, tmp_path, json.dumps(changed).encode()))
    answer = client.get(address)
    assert answer.status_code == 500
    assert (
        "not in the format that a run writes" in answer.text and "coreeval evaluate" in answer.text
    )
