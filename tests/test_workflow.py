"""The example for GitHub Actions: its commands are ones that there are, and in the right order."""

import re
import shlex
from pathlib import Path

import pytest
import typer.core
import typer.main
import yaml

from coreeval.cli.app import COMMANDS, build_app

WORKFLOW = Path(__file__).parents[1] / "examples" / "workflows" / "refresh.yml"


def test_its_commands_are_understood_and_the_gate_stands_before_publishing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("release").mkdir()
    monkeypatch.setattr("coreeval.runs.names.find_run", lambda run, *_, **__: Path(run))
    steps = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["release"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if re.match(r"coreeval\b", line)]
    program = typer.main.get_command(build_app(COMMANDS))
    assert isinstance(program, typer.core.TyperGroup)
    for words in commands:
        _understood(program, words)
    assert [words[0] for words in commands] == ["gdelt", "refresh", "release", "gate", "push"]
    after = steps[[step.get("name") for step in steps].index("Gate") + 1 :]
    published = [step["name"] for step in after if "if" not in step]
    assert published == ["Publish"], "what follows the gate runs only if it is met"


def _understood(command: typer.core.TyperGroup, words: list[str]) -> None:
    """Parse a command line and run nothing; an unknown word is an error."""
    context = command.make_context("coreeval", words, resilient_parsing=True)
    _, found, rest = command.resolve_command(context, words)
    if isinstance(found, typer.core.TyperGroup):
        _understood(found, rest)
    else:
        assert found
        found.make_context(words[0], rest)
