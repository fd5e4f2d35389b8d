"""`coreeval gate` as a CI job calls it: exit codes, files, annotations, mistakes."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from coreeval.releases.gates.limits import load_default_gates
from tests.cli.kit import Shell
from tests.cli.test_docs import documented

GOOD = "gates: {acceptance: {min: 0.1}, evidence: {min: 0.1}}"
TIGHT = "gates: {acceptance: {min: 1.0}, pcr: {forbid: [contaminated]}, evidence: {min: 0.1}}"


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may themselves run in GitHub's CI."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def release(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a release of the finished run; only to look at."""
    from coreeval.releases.create import make_release

    return make_release(finished, version="1", out=tmp_path_factory.mktemp("gated") / "one").path


def test_a_release_passes_and_a_tighter_limit_stops_it(shell: Shell, release: Path) -> None:
    good, tight = shell.write("good.yaml", GOOD), shell.write("tight.yaml", TIGHT)
    passed = shell("gate", release, "--config", good)
    assert (passed.code, passed.err) == (0, "")
    assert passed.out.startswith("trial 1 passes: 2 of 2 gates met\n")
    stopped = shell("gate", release, "--config", tight)
    assert (stopped.code, stopped.err) == (4, "")
    assert stopped.out.startswith("trial 1 does NOT pass: 2 of 3 gates not met\n")
    for line in (
        "NOT met      acceptance",
        "is less than 1",
        "NOT measured pcr",
        "to do: set detect.pcr to measure it",
    ):
        assert line in stopped.out


def test_its_document_and_files(shell: Shell, release: Path) -> None:
    tight = shell.write("tight.yaml", TIGHT)
    said = shell(
        "gate", release, "--config", tight, "--junit", "j.xml", "--summary", "s.md", "--json"
    )
    assert (said.code, said.err) == (4, "")
    assert set(said.document) == documented("coreeval gate")
    assert said.document["passed"] is False
    statuses = [gate["status"] for gate in said.document["gates"]]
    assert statuses == ["not_met", "met", "not_measured"]
    assert said.document["summaries"] == ["s.md"]
    suite = ET.parse(shell.folder / "j.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("3", "2")
    assert "| ❌ | `acceptance` |" in (shell.folder / "s.md").read_text()


def test_in_github_it_adds_to_the_summary_and_annotates(
    shell: Shell, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = shell.write("step.md", "before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    tight = shell.write("tight.yaml", TIGHT)
    said = shell("gate", release, "--config", tight, "--json")
    assert said.document["summaries"] == [str(step)]
    text = step.read_text()
    assert text.startswith("before\n## ❌ trial 1 does NOT pass")
    lines = said.err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("::error title=trial 1%3A acceptance::")
    assert lines[0].endswith("is less than 1; required: at least 1")


def test_without_a_file_the_default_gates_hold_and_can_be_printed(
    shell: Shell, release: Path
) -> None:
    said = shell("gate", release, "--json")
    assert {gate["gate"] for gate in said.document["gates"]} == set(
        load_default_gates().model_dump(exclude_none=True)
    )
    assert said.document["config"] is None
    printed = shell("gate", "--print-config")
    same = shell("gate", release, "--config", shell.write("g.yaml", printed.out), "--json")
    assert same.document["gates"] == said.document["gates"]
    told = shell("gate", "--print-config", "--json").document["gates"]
    assert told == load_default_gates().model_dump(mode="json", exclude_none=True)
    assert yaml.safe_load(printed.out)["gates"].keys() == told.keys()


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "message"),
    [
        (["nowhere"], 2, "release", "no release or run 'nowhere'"),
        ([], 2, "usage", "no release was named"),
        (["RELEASE", "--config", "nowhere.yaml"], 2, "config", "config file not found"),
        (["RELEASE", "--config", "bad.yaml"], 2, "config", "unknown key 'gates.aceptance'"),
        (["RELEASE", "--report", "nowhere.json"], 2, "run_state", "report not found"),
    ],
)
def test_mistakes(
    shell: Shell, release: Path, arguments: list[str], code: int, kind: str, message: str
) -> None:
    shell.write("bad.yaml", "gates: {aceptance: {min: 0.5}}")
    given = [str(release) if word == "RELEASE" else word for word in arguments]
    said = shell("gate", *given, "--json")
    assert (said.code, said.error["kind"]) == (code, kind)
    assert message in said.error["message"]
    assert said.error["hint"]


def test_what_does_not_verify_fails_before_any_gate(shell: Shell, finished: Path) -> None:
    assert shell("release", finished, "--version", "2", "--out", "two").code == 0
    (shell.folder / "two" / "more.txt").write_text("x")
    said = shell("gate", "two", "--junit", "j.xml", "--json")
    assert (said.code, said.error["kind"]) == (1, "run")
    assert not (shell.folder / "j.xml").exists()


def test_a_release_is_only_made_if_it_keeps_its_gates(shell: Shell, finished: Path) -> None:
    tight = shell.write("tight.yaml", TIGHT)
    said = shell("release", finished, "--version", "3", "--out", "a", "--gates", tight, "--json")
    assert (said.code, said.error["kind"]) == (4, "gate")
    assert "2 of 3 gates not met: acceptance: " in said.error["message"]
    assert not (shell.folder / "a").exists()
    good = shell.write("good.yaml", GOOD)
    assert shell("release", finished, "--version", "3", "--out", "a", "--gates", good).code == 0


def test_validate_reads_the_gates_of_a_schedule(shell: Shell) -> None:
    config = shell.config({"schedule": {"cron": "0 3 * * MON", "gates": "gates.yaml"}})
    missing = shell("validate", config)
    assert missing.code == 2
    assert "FAILED gates" in missing.out and "config file not found" in missing.out
    shell.write("gates.yaml", GOOD)
    assert "ok gates\n    acceptance, evidence\n" in shell("validate", config).out
