"""Commands replace the files that they wrote earlier, but no others, and write into no release."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.kit import Shell
from tests.releases.kit import make_run

FOREIGN = "text,label\nthe same fine day for all of us,a\nthe same fine day for all of us,b\n"
GATE_NOT_MET = 4
Command = Callable[[Path, Path], list[str | Path]]
COMMANDS: dict[str, Command] = {
    "overlap-csv": lambda made, out: [
        "detect", "overlap", made / "own.csv", "--field", "text", "--csv", out],
    "overlap-page": lambda made, out: [
        "detect", "overlap", made / "own.csv", "--field", "text", "--page", out],
    "diff": lambda made, out: ["diff", made / "2026.47", made / "run", "--page", out],
    "junit": lambda made, out: ["gate", made / "2026.47", "--junit", out],
    "summary": lambda made, out: ["gate", made / "2026.47", "--summary", out],
    "review-csv": lambda made, out: ["review", made / "run", "--csv", out],
    "review-html": lambda made, out: ["review", made / "run", "--html", out],
    "trace": lambda made, out: ["trace", made / "run", "--jsonl", out],
}  # fmt: skip


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> Command:
    """Return the arguments of a command that writes a file."""
    return COMMANDS[request.param]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return a folder with a run, a release of it and a benchmark."""
    run = make_run(tmp_path)
    run.release(out=tmp_path / "2026.47")
    (tmp_path / "own.csv").write_text(FOREIGN)
    return tmp_path


def test_a_file_that_the_command_wrote_is_replaced_and_no_other(
    shell: Shell, made: Path, command: Command
) -> None:
    out = made / "out"
    out.touch()
    for _ in range(2):
        assert shell(*command(made, out)).code in (0, GATE_NOT_MET)
        assert out.stat().st_size
    own = made / "own.csv"
    refused = shell(*command(made, own))
    assert refused.code == 2
    assert "own.csv" in refused.err
    assert own.read_text() == FOREIGN


def test_nothing_is_written_into_a_release(shell: Shell, made: Path, command: Command) -> None:
    refused = shell(*command(made, made / "2026.47" / "x.txt"))
    assert "this folder is a release" in refused.err
    assert not (made / "2026.47" / "x.txt").exists()


def test_a_cassette_replaces_only_cassettes(shell: Shell, copied: Path) -> None:
    own = shell.write("own.jsonl", FOREIGN)
    refused = shell("cassette", "export", copied, "--out", own)
    assert "CoreEval did not write this file" in refused.err
    assert own.read_text() == FOREIGN
    for _ in range(2):
        assert shell("cassette", "export", copied, "--out", "a.cassette").code == 0
