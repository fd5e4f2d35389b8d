import shutil
from pathlib import Path

import pytest

from coreeval.cli.release import quality_lines
from tests.cli.kit import Shell
from tests.cli.test_docs import documented


@pytest.fixture
def released(shell: Shell, finished: Path) -> Path:
    """Return a release of the finished run."""
    assert shell("release", finished, "--version", "1", "--out", "one").code == 0
    return shell.folder / "one"


def test_a_release_says_what_an_owner_signs_off(shell: Shell, finished: Path) -> None:
    said = shell("release", finished, "--version", "2026.47", "--out", "a")
    assert said.code == 0
    assert said.out.startswith("released trial 2026.47, the first release\n")
    for line in ("accepted", "with news", "label noise", "ids without texts", "every role"):
        assert line in said.out
    assert "check:   coreeval verify a\n" in said.out
    told = shell("release", finished, "--version", "2026.48", "--out", "b", "--json").document
    assert set(told) == documented("coreeval release")
    assert told["parent"]["version"] == "2026.47"
    assert told["counts"]["total"] == 5
    assert told["comparability"]["verdict"] == "cannot_tell"
    assert said.out.splitlines()[1].startswith("arms:    It is not yet clear whether")


def test_a_release_says_that_the_run_has_no_report(shell: Shell, finished: Path) -> None:
    run = shutil.copytree(finished, shell.folder / "run")
    (run / "report.json").unlink()
    said = shell("release", run, "--version", "1", "--out", "a")
    assert said.code == 0
    assert "the run has none" in said.out and "coreeval resume run" in said.out


def test_verify_says_yes_or_what_is_wrong(shell: Shell, released: Path) -> None:
    fine = shell("verify", released, "--json")
    assert (fine.code, fine.document["ok"], fine.document["problems"]) == (0, True, [])
    assert set(fine.document) == documented("coreeval verify")
    assert "is unchanged" in shell("verify", released).out
    (released / "more\x1b[2K.txt").write_text("x")
    bad = shell("verify", released)
    assert bad.code == 1
    assert "has CHANGED since it was made" in bad.out
    assert "\x1b" not in bad.out
    found = shell("verify", released, "--json")
    assert (found.code, found.document["ok"]) == (1, False)
    assert [problem["kind"] for problem in found.document["problems"]] == ["extra"]


def test_verify_takes_a_digest_that_was_published(shell: Shell, released: Path) -> None:
    digest = shell("verify", released, "--json").document["digest"]
    assert shell("verify", released, "--digest", digest).code == 0
    assert shell("verify", released, "--digest", "0" * 64).code == 1


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["--version", "1", "--out", "one"], "release", "release one already exists"),
        (["--version", "1", "--out", "."], "release", "a release needs a new folder"),
        (["--version", "1", "--out", "one/1"], "release", "nothing can be written into it"),
        (["--version", "1/2"], "release", "is not a valid version"),
        (["--version", "2", "--parent", "nowhere"], "release", "this is not a release"),
        (["--version", "2", "--takedown", "nowhere"], "config", "takedown list cannot be read"),
        ([], "usage", "--version"),
    ],
)
def test_what_cannot_be_released(
    shell: Shell, finished: Path, released: Path, arguments: list[str], kind: str, message: str
) -> None:
    said = shell("release", finished, *arguments, "--json")
    assert (said.code, said.error["kind"]) == (2, kind)
    assert message in said.error["message"]


def test_there_is_no_release_of_what_is_no_run(shell: Shell) -> None:
    assert shell("release", "nowhere", "--version", "1", "--json").error["kind"] == "run_state"
    assert shell("verify", "nowhere", "--json").error["kind"] == "release"


def test_a_release_without_new_samples_has_nothing_to_measure() -> None:
    assert [line.split(maxsplit=2)[2] for line in quality_lines(None, 1.0, 0)] == [
        "not measured: no new samples",
        "not measured: no new samples (coreeval docs releases)",
    ]
    assert "at most 0.999" in list(quality_lines(None, 0.999, 3))[1]
    assert "no bound: too few judgements" in list(quality_lines(None, 1.0, 3))[1]
