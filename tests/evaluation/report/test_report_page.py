"""The report's page: what it says, what it says is missing, and words from outside."""

import hashlib
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from coreeval.evaluation.numleak.audit import numleak_document
from coreeval.evaluation.report.report_document import write_report
from coreeval.evaluation.report.report_file import read_report
from coreeval.evaluation.report.report_page import report_page
from coreeval.tools.workspace import RunFiles
from tests.evaluation.numleak.audits import SETTINGS as AUDITING
from tests.evaluation.numleak.audits import knows, refuses, series
from tests.evaluation.report.kit import TARGET, found_in, pcr, says
from tests.releases.gates.kit import COMPARABILITY

HOSTILE = 'replay:<script>alert("1")</script>'


def page(folder: Path, found: dict[str, Any] | None, audits: dict[str, Any] | None = None) -> str:
    """Return the page, and look that the document beside it has the same."""
    return written(folder, parts={"pcr": found, "numleak": audits})


def written(folder: Path, **changes: Any) -> str:  # noqa: ANN401 - any field of the findings
    """Write a report, and return its page."""
    findings = found_in(folder, **changes)
    files = RunFiles(folder)
    write_report(findings, files)
    assert json.loads(files.report_json.read_text(encoding="utf-8"))["pcr"] == findings.parts["pcr"]
    return files.report_html.read_text(encoding="utf-8")


def test_each_target_has_its_numbers_its_verdict_and_the_reason(tmp_path: Path) -> None:
    found = pcr("openai:one", "openai:silent")
    html = page(tmp_path, found)
    first, silent = found["targets"]
    assert first["verdict"] == "difficulty_or_memory"
    assert {"difficulty or memory", "inconclusive"} <= verdicts_in(html)
    assert "a difference may be due to memory or to difficulty" in html
    for number in (first["splits"]["train"]["pcr"], first["splits"]["test"]["pcr"]):
        assert f"{number:.3f}" in html
    assert f"{first['difference']['estimate']:+.3f}" in html
    assert first["reason"].split(":")[0] in html
    assert silent["difference"]["estimate"] is None and "n/a" in html
    assert re.search(r"60 items were drawn and 40 reworded\s+\(unchanged: 8; with another", html)


def test_the_page_names_no_folder_of_a_target(tmp_path: Path) -> None:
    targets = ["replay:/disk/jane.doe/answers.jsonl", "replay:answers.jsonl"]
    html = written(tmp_path, models={"default": "offline", "targets": targets})
    assert "replay:…/jane.doe/answers.jsonl" in html and "replay:…/answers.jsonl" in html
    assert "/disk" not in html and str(tmp_path) not in html


def test_with_references_the_page_shows_what_exceeds_theirs(tmp_path: Path) -> None:
    found = pcr("openai:one", "openai:silent", references=("a:1", "a:2", "a:3"))
    html = page(tmp_path, found)
    first = found["targets"][0]
    assert first["verdict"] == "fine_tuned" and "fine tuned" in verdicts_in(html)
    assert f"{first['adjusted']['estimate']:+.3f}" in html
    assert "The 3 references (a:1, a:2, a:3) are presumed to have" in html
    assert html.count("(reference)") == 6


def verdicts_in(html: str) -> set[str]:
    return set(re.findall(r'<strong class="pill [a-z]+">([a-z ]+)</strong>', html))


def test_the_picture_has_a_mark_for_each_target_that_has_a_number(tmp_path: Path) -> None:
    html = page(tmp_path, pcr("openai:one", "openai:two", "openai:silent"))
    picture = re.search(r'id="pcr-differences".*?</table>', html, re.DOTALL)
    assert picture
    assert picture[0].count("<circle") == 2
    places = [float(x) for x in re.findall(r' (?:c?x|x1|x2)="([\d.-]+)%"', picture[0])]
    assert places and all(0 <= x <= 100 for x in places)


@pytest.mark.parametrize("names", [(HOSTILE, "openai:silent"), ("openai:one", HOSTILE)])
def test_names_are_escaped(tmp_path: Path, names: tuple[str, str]) -> None:
    html = page(tmp_path, pcr(*names))
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_without_it_or_without_a_target_there_is_nothing_to_show(tmp_path: Path) -> None:
    assert "Is the score due to memory?" not in page(tmp_path, None)
    none = pcr("openai:silent") | {"targets": []}
    assert "No target was evaluated on the items" in page(tmp_path, none)


# -- dated series ---------------------------------------------------------------------------------


def test_audits_have_their_figures_their_verdicts_and_their_reasons(tmp_path: Path) -> None:
    tides = series()
    said = [*knows(HOSTILE, tides), *refuses("openai:mute", tides)]
    found = numleak_document(said, {"tides": tides}, AUDITING, {})
    html = page(tmp_path, None, found)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["numleak"] == found
    assert "Are dated values remembered?" in html
    assert {"memorized", "refusing"} <= verdicts_in(html)
    assert str(escape(found["series"][0]["reasons"][0])) in html
    assert "The tolerance is 0.25 percentage points." in html
    assert "<script" not in html and "&lt;script&gt;" in html


def test_other_ways_of_asking_have_their_tables(tmp_path: Path) -> None:
    tides = series()
    plain = knows(HOSTILE, tides)
    ways: list[dict[str, Any]] = [
        {"variant": "step_by_step"},
        {"variant": "phrasing", "phrasing": "<i>own</i>"},
        {"variant": "contradiction", "stated": 40.0},
    ]
    said = [*plain, *(one.model_copy(update=way) for way in ways for one in plain)]
    found = numleak_document(said, {"tides": tides}, AUDITING, {})
    html = page(tmp_path, None, found)
    text = told(html)
    assert "tides, step by step" in text and "Questions that state a wrong value" in text
    assert "&lt;i&gt;own" in html and "<i>own" not in html
    assert "The publisher's file continued" not in html
    assert "The same values" not in page(
        tmp_path, None, numleak_document(plain, {"tides": tides}, AUDITING, {})
    )


def test_without_audits_there_is_nothing_to_show(tmp_path: Path) -> None:
    assert "Are dated values remembered?" not in page(tmp_path, None)
    none = numleak_document([], {}, AUDITING, {})
    assert "No target that can answer with numbers was asked" in page(tmp_path, None, none)


# -- both arms -------------------------------------------------------------------------------------


def likeness(verdict: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of it
    """Return what a report says of arms whose measures are known."""
    found = COMPARABILITY.model_copy(update={"verdict": verdict, **changes})
    return found.model_dump(mode="json")


def test_arms_that_are_not_comparable_are_said_to_be_so_before_any_score(tmp_path: Path) -> None:
    sentences = ("They are <b>shorter</b>.", "They are odd.", "And easier.")
    html = written(tmp_path, comparability=likeness("not_comparable", sentences=sentences))
    notice = html.index("Not comparable:")
    assert notice < html.index('class="figures"') and notice < html.index("macro-F1")
    assert "They are &lt;b&gt;shorter&lt;/b&gt;." in html and "<b>shorter" not in html
    page = told(html)
    assert "There is 1 more difference. See all measures" in page
    assert "not comparable The updated arm is not comparable with the original" in page
    assert "0.45 0.40 to 0.50, n 60 0.80 to 1.25" in page
    limits = page.partition(" Limits ")[2]
    assert "The updated arm is not comparable" in limits


def test_arms_that_are_alike_have_no_notice_and_arms_of_which_it_is_unknown_say_how_many(
    tmp_path: Path,
) -> None:
    alike = written(tmp_path, comparability=likeness("comparable", sentences=()))
    assert "Not comparable:" not in alike and "equivalent to the original" in told(alike)
    sentences = ("18 samples are too few to judge x. About 360 samples would suffice.",)
    few = told(written(tmp_path, comparability=likeness("cannot_tell", sentences=sentences)))
    assert "Comparability: It is not yet clear whether the updated arm is comparable" in few
    assert few.count("About 360 samples would suffice") == 3, "the head, the section and the limits"


def test_reports_from_before_arms_were_compared_and_damaged_ones_are_shown(tmp_path: Path) -> None:
    written(tmp_path)
    report = read_report(RunFiles(tmp_path))
    assert report is not None
    for found in (None, {"verdict": "odd", "sentences": []}):
        report["comparability"] = found
        assert 'id="comparability"' not in report_page(report)
    del report["comparability"]
    assert 'id="comparability"' not in report_page(report)


def test_names_of_fields_and_reasons_are_text(tmp_path: Path) -> None:
    measures = tuple(e.model_copy(update={"part": HOSTILE}) for e in COMPARABILITY.measures)
    found = likeness("comparable", measures=measures, absent={"topic": HOSTILE})
    html = written(tmp_path, comparability=found)
    assert "<script" not in html and html.count("&lt;script&gt;") >= 3


# -- the run --------------------------------------------------------------------------------------


def told(html: str) -> str:
    """Return a page as its reader has it: no tags, single blanks."""
    return " ".join(re.sub(r"<[^>]*>", " ", html.partition("<body>")[2]).split())


def test_counts_and_shares_are_those_of_the_run(tmp_path: Path) -> None:
    html = told(written(tmp_path))
    assert "3 of 6 samples of emotion , split test, now contain news from 2026-11-01" in html
    assert "accepted rewritten with recent facts, checked and judged 3" in html
    assert "no knowledge no recent news fits 1" in html
    assert "50.0 % 18.8 % … 81.2 %" in html, "Wilson's interval of 3 of 6"
    assert "4 replaced facts of accepted samples cite 2 articles from 1 publisher." in html
    assert "composer writes the updated text offline rules" in html
    assert "0123456789ab" not in html, "no prompt was sent where rules played"
    assert "fingerprint" in html and "f00d" in html


def test_what_is_not_there_is_said_and_has_no_empty_table(tmp_path: Path) -> None:
    html = written(tmp_path)
    assert "Not measured" in html and "No model under test is configured" in html
    assert "No model was called." in html
    assert not re.search(r"<tbody>\s*</tbody>", html)


def test_scores_have_their_intervals_and_the_drop_its_own(tmp_path: Path) -> None:
    labels = ("anger", "joy", "joy")
    said = [says(n, source, label if source == "original" or n == 2 else "sadness")
            for n, label in enumerate(labels, 1) for source in ("original", "updated")]  # fmt: skip
    html = written(tmp_path, said=said, models={"default": "offline", "targets": [TARGET]})
    assert "Scores of the targets on each arm" in html and "original → updated" in html
    assert "1 of 1 target got the original right" in html
    assert "Not measured" in html and "detect.pcr" in html
    assert f"Neither the cutoff nor the release date of {TARGET} is known" in html
    assert f"{TARGET}: macro-F1 " in html
    document = json.loads(RunFiles(tmp_path).report_json.read_text(encoding="utf-8"))
    document["arms"]["kind"] = "choice"
    assert f"{TARGET}: accuracy " in report_page(document)


def test_one_file_without_scripts_or_anything_from_elsewhere(tmp_path: Path) -> None:
    html = page(tmp_path, pcr("openai:one", "openai:silent"))
    assert not re.search(r"<script|<link|<img|<iframe| style=| on[a-z]+=|javascript:", html)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'")
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy, "a browser would refuse the page's own style"


def test_each_underlined_number_leads_to_what_it_means(tmp_path: Path) -> None:
    html = page(tmp_path, pcr("openai:one", "openai:silent"))
    terms = set(re.findall(r'class="term" href="#([^"]+)"', html))
    there = re.findall(r'id="([^"]+)"', html)
    assert terms and terms <= set(there)
    assert len(there) == len(set(there))
    assert set(re.findall(r'<li><a href="#([^"]+)"', html)) <= set(there)


def test_no_folder_of_this_machine_is_in_the_page(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    note = f"{tmp_path}/before the move/bench: the split test has 6 rows"
    html = written(tmp_path, config=found.config, manifest={"notes": [note]})
    assert "bench: the split test has 6 rows" in html
    assert str(tmp_path) not in html
