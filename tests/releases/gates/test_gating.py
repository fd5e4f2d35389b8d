"""A release held against gates: as it was made, with a later report, and while it is made."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from coreeval.errors import GateNotMet, RunCorrupt, RunError, RunStateError
from coreeval.releases.findings import findings_of
from coreeval.releases.gates.checking import Finding
from coreeval.releases.gates.gating import Gated, gate_release, require_gates_of
from coreeval.releases.gates.junit import write_junit
from coreeval.releases.gates.limits import Gates, GatesFile
from coreeval.releases.gates.words import summary
from coreeval.releases.release import Release
from tests.releases.kit import NOW, Made, make_run

HOSTILE = 'a|b]]><x y="&\x00\x1b[2J`*_#\n::error::'


def gates(**said: Any) -> Gates:  # noqa: ANN401 - limits as a file has them
    return GatesFile.model_validate({"gates": said}).gates


HALF = gates(acceptance={"min": 0.5})


def report(verdict: str = "contaminated", run: str = "weekly/20261120T030000Z") -> dict[str, Any]:
    """Return the parts of a report.json that gates look at."""
    return {
        "run": run,
        "now": NOW.isoformat(),
        "arms": {"targets": [], "ranking": None},
        "pcr": {"targets": [{"name": "a:1", "verdict": verdict, "test": {"basis": "references"}}]},
        "numleak": {"series": [{"model": "a:1", "series": "cpi", "verdict": "fluent"}]},
        "targets": [{"target": "a:1", "role": "target"}, {"target": "b:2", "role": "reference"}],
        "decomposition": {
            "targets": [
                {"target": "a:1", "verdict": "too_few"},
                {"target": "b:2", "verdict": "remembered"},
            ]
        },
    }


def test_no_verdict_is_about_a_reference() -> None:
    found = findings_of(report(), where=Path("report.json"))
    assert [(each.target, each.drop) for each in found.targets] == [("a:1", "too_few")]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make_run(tmp_path)


@pytest.fixture
def released(made: Made) -> Release:
    return made.release()


def test_a_release_that_keeps_its_gates(released: Release) -> None:
    found = gate_release(released.path, HALF)
    assert (found.passed, found.version, found.digest) == (True, "2026.47", released.digest)
    assert not gate_release(released.path, gates(acceptance={"min": 0.51})).passed


def test_what_was_altered_is_not_gated(released: Release) -> None:
    (released.path / "more.txt").write_text("x")
    with pytest.raises(RunError, match=r"not what was made: extra more\.txt") as told:
        gate_release(released.path, HALF)
    assert told.value.exit_code == 1


def test_a_release_knows_what_its_report_said_and_a_later_report_says_more(made: Made) -> None:
    asked = gates(pcr={"forbid": ["contaminated"]}, numleak={"forbid": ["memorized"]})
    before = made.release("1")
    assert before.manifest.findings is None
    [pcr, _] = gate_release(before.path, asked).gates
    assert (pcr.status, pcr.reason) == ("not_measured", "PCR was not measured")
    made.files.report_json.write_text(json.dumps(report()))
    [pcr, numleak] = gate_release(before.path, asked, report=made.files.report_json).gates
    assert (pcr.reason, numleak.verdict) == (
        "a:1 is contaminated (this holds if the references have not seen either split)",
        "fluent",
    )
    after = made.release("2")
    assert [each.status for each in gate_release(after.path, asked).gates] == ["not_met", "met"]
    later = made.folder / "later.json"
    later.write_text(json.dumps(report("comparable")))
    assert gate_release(after.path, asked, report=later).passed


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (None, RunStateError, "no such report"),
        ("{", RunCorrupt, "no report of a run"),
        ("[]", RunCorrupt, "no report of a run"),
        (json.dumps(report() | {"pcr": {"targets": [{}]}}), RunCorrupt, "not as a run writes it"),
        (json.dumps(report() | {"pcr": 1}), RunCorrupt, "not as a run writes it"),
        (json.dumps(report(run="other/1")), RunStateError, "of the run other/1"),
    ],
)
def test_reports_that_are_none_of_it(
    released: Release, tmp_path: Path, text: str | None, error: type[Exception], message: str
) -> None:
    path = tmp_path / "r.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(error, match=message):
        gate_release(released.path, HALF, report=path)


def test_a_release_beyond_a_limit_is_not_made_and_its_version_stays_free(made: Made) -> None:
    with pytest.raises(GateNotMet, match=r"gates not met: 1 of 2: evidence: 0\.66"):
        made.release("1", gates=gates(acceptance={"min": 0.5}, evidence={"min": 0.9}))
    assert not (made.shelf / "1").exists()
    assert not list(made.shelf.glob(".*.draft"))
    assert made.release("1", gates=HALF).manifest.version == "1"


def test_a_release_that_is_there_is_held_against_gates_as_one_that_is_made(
    made: Made, released: Release
) -> None:
    tight = gates(evidence={"min": 0.9})
    with pytest.raises(GateNotMet) as there:
        require_gates_of(released.path, tight)
    with pytest.raises(GateNotMet) as being_made:
        made.release("2", gates=tight)
    assert there.value.message == being_made.value.message
    assert there.value.where == str(released.path)
    require_gates_of(released.path, HALF)
    (released.path / "more.txt").write_text("x")
    with pytest.raises(RunError, match="not what was made"):
        require_gates_of(released.path, HALF)


def findings() -> Gated:
    """Return findings of every kind, with names from outside that mean harm."""
    said = {"gate": "pcr", "limit": "not contaminated"}
    return Gated(
        release="r",
        name=HOSTILE,
        version="1",
        digest="f00d",
        gates=(
            Finding(status="met", verdict="comparable", **said),
            Finding(status="not_met", of=HOSTILE, reason=f"{HOSTILE} is contaminated", **said),
            Finding(status="not_measured", reason="why", hint="what", **said),
            Finding(status="skipped", reason="why", hint="what", **said),
        ),
    )


def test_junit_has_a_case_for_each_gate(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "gates.xml"
    write_junit(path, findings(), NOW)
    root = ET.parse(path).getroot()
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == (
        "4", "2", "1",
    )  # fmt: skip
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [[], ["failure"], ["failure"], ["skipped"]]
    message = suite[1][0].attrib["message"]
    assert message.startswith('a|b]]><x y="&\ufffd\ufffd[2J')
    assert suite[2][0].attrib["type"] == "not_measured"
    assert (
        suite[2][0].attrib["message"] == "not measured: why; to do: what; wanted not contaminated"
    )


def test_a_reader_of_junit_reads_it(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    path = tmp_path / "gates.xml"
    write_junit(path, findings(), NOW)
    [suite] = junitparser.JUnitXml.fromfile(str(path))
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (4, 2, 1, 0)
    ended = [[type(each).__name__ for each in case.result] for case in suite]
    assert ended == [[], ["Failure"], ["Failure"], ["Skipped"]]


def test_the_summary_is_a_table_in_which_names_are_text() -> None:
    lines = summary(findings()).splitlines()
    assert lines[0].startswith("## ❌ a\\|b\\]\\]\\>\\<x y=")
    assert lines[2:4] == ["| | gate | found | wanted |", "|---|---|---|---|"]
    rows = lines[4:8]
    for row in rows:
        assert row.replace("\\|", "").count("|") == 5
        assert "\x1b" not in row and "<x" not in row.replace("\\<", "")
    assert [row.split(" | ")[0] for row in rows] == ["| ✅", "| ❌", "| ❌", "| ⏭️"]
    assert lines[-1] == "Release `f00d`."


LINKS = (
    "www.evil.example/x",
    "(www.evil.example)",
    "WWW.evil.example",
    "http://evil.example",
    "https://evil.example/a?b=c&d",
    "ftp://evil.example",
    "a.b+c@evil.example",
    "mailto:a@evil.example",
    "xmpp:a@evil.example/x",
    "<https://evil.example>",
    "[text](https://evil.example)",
    "![text][1]",
    "@somebody",
    "owner/repo#1",
    r"\www.evil.example \https\://evil.example a\@evil.example",
    "https&#58;//evil.example a&#64;evil.example",
    "<!-- www.evil.example -->",
)
AUTOLINKED = re.compile(r"www\.|(?:https?|ftp)://|\w@\w|@\w|#\d", re.IGNORECASE)
"""What GitHub makes a link in a stretch of text, when escapes and entities are resolved."""


@pytest.mark.parametrize("hostile", LINKS)
def test_nothing_in_the_summary_becomes_a_link(hostile: str) -> None:
    said = {"gate": "pcr", "limit": "not contaminated", "status": "not_met", "reason": hostile}
    gated = findings().model_copy(update={"name": hostile, "gates": (Finding(**said),)})
    tokens = MarkdownIt("commonmark").enable("table").parse(summary(gated))
    inline = [each for token in tokens for each in token.children or ()]
    assert {each.type for each in inline} <= {"text", "html_inline", "code_inline"}
    assert {each.content for each in inline if each.type == "html_inline"} <= {"<!-- -->"}
    texts = [each.content for each in inline if each.type == "text"]
    assert not [text for text in texts if AUTOLINKED.search(text)]
    assert hostile in "".join(texts), "it is shown as it is"
