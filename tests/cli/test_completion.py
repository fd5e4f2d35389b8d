"""Completion: what the program answers when a shell asks it to complete a command line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coreeval.cli import completion
from coreeval.cli.app import COMMANDS, main
from coreeval.cli.docs import list_pages
from coreeval.config.models import ROLES
from coreeval.models.providers import PROVIDERS
from coreeval.releases.release import MANIFEST
from coreeval.runs.names import short_id
from coreeval.tasks import BUILT_IN
from coreeval.tools.workspace import Workspace
from tests.cli.kit import Shell

START = "20261101T080000Z"


@pytest.fixture
def here(shell: Shell) -> Workspace:
    """Return a workspace with a run, a release, and a run whose name a shell would evaluate."""
    made = Workspace(shell.folder / ".coreeval")
    for folder in (made.runs / "trial" / START, made.runs / "$(touch bad)" / START):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}", "utf-8")
    release = made.releases / "trial" / "2026.47"
    release.mkdir(parents=True)
    (release / MANIFEST).write_text("{}", "utf-8")
    return made


class Asked:
    """The completions of a line, as a shell gets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, line: str, shell: str = "bash") -> list[str]:
        """Return what is completed at the end of a line: the words, or the lines of zsh or fish."""
        words = line.split(" ")
        values = {
            completion.VARIABLE: f"complete_{shell}",
            "COMP_WORDS": "\n".join(words),
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        with self._monkeypatch.context() as patch:
            for name, value in values.items():
                if shell == "bash" or not name.startswith("COMP_"):
                    patch.setenv(name, value)
            with pytest.raises(SystemExit) as left:
                main([])
        assert left.value.code in (0, None)
        told = self._capsys.readouterr()
        assert told.err == ""
        return list(filter(None, told.out.splitlines()))


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(monkeypatch, capsys)


def test_commands_are_completed(ask: Asked) -> None:
    assert set(ask("coreeval ")) == set(COMMANDS)
    assert sorted(ask("coreeval re")) == ["refresh", "release", "resume", "retry", "review"]
    assert ask("coreeval runs de") == ["delete"]
    assert "--no-browser" in ask("coreeval view --no")


def test_runs_are_completed_by_latest_id_and_name(here: Workspace, ask: Asked) -> None:
    found = short_id(here.runs / "trial" / START)
    words = ["latest", found, "trial"]
    assert [word for word in ask("coreeval trace ") if word in words] == words
    assert ask(f"coreeval status {found[:4]}") == [found]
    assert ask("coreeval resume trial/") == [f"trial/{START}"]
    for line in ("view trial ", "diff latest ", "prompts show composer --run ", "review "):
        assert found in ask(f"coreeval {line}"), line
    assert ask("coreeval runs --name t") == ["trial"]


def test_names_that_a_shell_would_evaluate_are_left_out(here: Workspace, ask: Asked) -> None:
    bad = short_id(here.runs / "$(touch bad)" / START)
    for shell in ("bash", "zsh", "fish"):
        told = "\n".join(ask("coreeval trace ", shell))
        assert bad in told, "the run has a name that can be typed"
        assert not set("$`;&|<>") & set(told.replace("$'", "")), shell
        assert "$(" not in told


def test_releases_are_completed_as_directories(here: Workspace, ask: Asked) -> None:
    folder = os.path.relpath(here.releases / "trial" / "2026.47")
    assert folder in ask("coreeval verify ")
    assert folder in ask("coreeval gate ")
    assert ask("coreeval refresh coreeval.yaml --from ") == ["latest", folder]


def test_nothing_is_offered_without_runs_or_releases(shell: Shell, ask: Asked) -> None:
    assert shell.folder == Path.cwd()
    assert ask("coreeval trace ") == []  # the shell then completes files
    assert ask("coreeval release latest --parent ") == []


def test_pages_tasks_roles_and_providers_are_completed(ask: Asked) -> None:
    assert ask("coreeval docs ") == [path.stem for path in list_pages()]
    assert ask("coreeval docs numleak_p") == ["numleak_parsing"]
    assert ask("coreeval prompts show ") == list(ROLES)
    assert ask("coreeval prompts show composer --task ") == list(BUILT_IN)
    assert ask("coreeval init --model ope") == ["openai:"]
    assert ask("coreeval evaluate latest --target ") == [f"{name}:" for name in sorted(PROVIDERS)]


def test_zsh_and_fish_show_what_a_word_stands_for(here: Workspace, ask: Asked) -> None:
    found = short_id(here.runs / "trial" / START)
    assert f'"{found}":"trial/{START}"' in ask("coreeval trace ", "zsh")[1]
    assert f"{found}\ttrial/{START}" in ask("coreeval trace ", "fish")
    assert ask("coreeval validate ", "zsh") == ["_files"]


def test_a_failure_leaves_the_line_alone(
    ask: Asked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(completion.VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "coreeval")
    monkeypatch.setenv("COMP_CWORD", "no number")
    assert main([]) == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script(here: Workspace, tmp_path: Path) -> None:
    program = tmp_path / "coreeval"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m coreeval "$@"\n', "utf-8")
    program.chmod(0o755)
    script = (
        f'eval "$({completion.VARIABLE}=source_bash coreeval)"\n'
        "COMP_WORDS=(coreeval trace tri) COMP_CWORD=2\n"
        "_coreeval_completion coreeval trace tri\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "--norc", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("trial\n", "")
    assert not (here.root.parent / "bad").exists()


def test_a_completion_imports_only_its_command(here: Workspace) -> None:
    code = (
        "import sys\nfrom coreeval.cli.app import main\n"
        "try:\n    main([])\nexcept SystemExit:\n    print(*sys.modules)"
    )
    env = os.environ | {
        completion.VARIABLE: "complete_bash",
        "COMP_WORDS": "coreeval\ndiff\nlatest\n",
        "COMP_CWORD": "3",
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    *words, modules = done.stdout.splitlines()
    loaded = set(modules.split())
    assert "trial" in words
    assert "coreeval.cli.diff" in loaded
    assert loaded.isdisjoint({"coreeval.cli.refresh", "coreeval.releases.release", "langgraph"})
