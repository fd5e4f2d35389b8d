"""The commands on the pages are commands: all fit the program, and nearly all run.

They run against servers on loopback and files that `kit` writes. A command is only parsed if it
needs what a test has not, such as weights. `NEEDS` says so by what it is made of, and a page by
`<!-- parsed only: WHY -->` above a block.
"""

import io
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from coreeval.cli import main
from coreeval.cli.app import ALLOW_PLUGINS, COMMANDS, build_app
from coreeval.errors import DEBUG
from tests.docs.kit import (
    DEMO,
    ENDPOINT,
    Servers,
    connect,
    make_environment,
    play_person,
    prepare,
    run_until_ready,
    serving,
    write_files,
)
from tests.docs.pages import PAGES, ROOT, Command, Script, Written, iter_commands, iter_steps

NEEDS = {
    "weights": r" hf:",
    "the web": r"--fetch",
    "minutes": r"coreeval demo$|sync --(?:days 30$|since last)|run\.workers",
}
"""What tests have not, by commands that need it."""
ELSEWHERE = {
    "docs/plugins.md": "tests/cli/test_plugins.py",
    "docs/postgresql.md": "tests/postgresql/test_page.py",
}
"""Pages whose commands another test takes from the page and runs."""
EXITS = {
    "resume latest": {0, 5},
    "refresh coreeval.yaml --batch": {5},
    "gate RELEASE": {0, 4},
    "release RUN --version V --gates": {0, 4},
}
"""Exit codes of commands by how they begin, if others than 0 are fine on data so small."""
RELEASE = ".coreeval/releases/trial/2026.1"
WITH_COMMANDS = [page for page, text in PAGES.items() if any(iter_commands(text))]
ANYWHERE = (DEBUG, ALLOW_PLUGINS)
"""Options that every command takes."""
TREE: Any = typer.main.get_command(build_app(COMMANDS))
"""The command tree; typer hides its classes."""


def needs(command: Command) -> str:
    """Return what a command needs that tests have not; nothing if it can be run."""
    said = str(command).replace("'", "")
    found = (need for need, sign in NEEDS.items() if re.search(sign, said))
    return command.reason or next(found, "")


def find_problem(words: tuple[str, ...]) -> str:
    """Return why the program would refuse these arguments; nothing if they fit."""
    command, rest, path = TREE, [word for word in words if word not in ANYWHERE], "coreeval"
    if rest[:1] == ["detect"] and ":" in "".join(rest[1:2]):
        rest[1] = "recitation"  # detectors of plugins take the options of built-in ones
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        path = f"{path} {rest[0]}"
        command = command.commands[rest.pop(0)]
    if hasattr(command, "commands") and not command.invoke_without_command:
        return f"{path} is not a command"
    context = command.context_class(command, info_name=path)
    try:
        given, left, _ = command.make_parser(context).parse_args(args=rest)
    except Exception as error:  # noqa: BLE001 - typer hides its classes of usage errors
        return f"{path}: {error}"
    missing = [each.name for each in command.params if each.required and not given.get(each.name)]
    return f"{path}: too many or missing arguments: {left or missing}" if left or missing else ""


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_every_command_fits_the_program(page: str) -> None:
    problems = {
        str(each): problem
        for each in iter_commands(PAGES[page])
        if (problem := find_problem(each.words))
    }
    assert not problems


def test_a_command_that_does_not_fit_is_found() -> None:
    assert (
        find_problem(("refresh",)) == "coreeval refresh: too many or missing arguments: ['config']"
    )
    assert "--limits" in find_problem(("refresh", "a.yaml", "--limits", "3"))
    assert "['b.yaml']" in find_problem(("refresh", "a.yaml", "b.yaml"))
    assert find_problem(("gdelt", "snyc")) == "coreeval gdelt is not a command"
    assert find_problem(("runs", "--name", "a")) == ""
    assert find_problem(("gdelt", "sync", "--from", "news")) == ""


def test_options_that_a_page_names_in_passing_exist() -> None:
    """A table or a sentence that names a command names only options that it has."""
    wrong = []
    for page, text in PAGES.items():
        for span in re.findall(r"`coreeval ((?:[a-z]+ )+[^`\n]*)`", text):
            if page == "CHANGELOG.md":
                continue
            words = span.split()
            command = TREE
            while hasattr(command, "commands") and words and words[0] in command.commands:
                command = command.commands[words.pop(0)]
            known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
            asked = set(re.findall(r"(?<![\w-])--[a-z-]+", span))
            if asked - known - {"--help", *ANYWHERE}:
                wrong.append((page, span))
    assert not wrong


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Serve a model, a mirror, a wiki and a hub."""
    with serving(tmp_path_factory.mktemp("rules")) as found:
        yield found


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Path:
    """Return a folder with a config, news, a run and a release; only to be copied."""
    folder = tmp_path_factory.mktemp("workspace")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "stdin", io.StringIO())
        connect(patch, servers)
        for line in (
            f"gdelt sync --from {DEMO / 'news'}",
            "refresh coreeval.yaml",
            "release latest --version 2026.1",
        ):
            assert main(line.split()) == 0
    return folder


STANDS_FOR = {
    "RUN": "latest",
    "OTHER_RUN": "latest",
    "RELEASE": RELEASE,
    "A": RELEASE,
    "B": "latest",
    "CONFIG": "coreeval.yaml",
    "SAMPLE": "emotion/test/1",
    "ID": "emotion/test/1",
    "responses.jsonl": ".coreeval/numleak/factors/responses.jsonl",
    "utility.jsonl": ".coreeval/numleak/factors/utility.jsonl",
    "coreeval-demo/.coreeval/runs/demo-emotion/START": "latest",
    "coreeval-demo/.coreeval/releases/demo-emotion/2026.48": RELEASE,
}
"""What the words in capitals and outputs stand for; others are names of files to write."""
ASKS = ("calls gc", "runs delete", "takedown")
"""Commands that ask a person."""
STAYS = {"view(?!.* --bundle)": "pages: ", "schedule run": "other: "}
"""Commands that go on until a signal ends them, with how the line begins that says it is time."""


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of huggingface_hub
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in WITH_COMMANDS
        if page not in ELSEWHERE and not all(map(needs, iter_commands(PAGES[page])))
    ],
)
def test_every_command_that_can_run_offline_runs(
    page: str,
    workspace: Path,
    servers: Servers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(workspace, folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    connect(monkeypatch, servers)
    prepare(page, servers, monkeypatch)
    for number, step in enumerate(iter_steps(PAGES[page])):
        if isinstance(step, Written):
            Path(step.name).write_text(step.text, "utf-8")
        elif isinstance(step, Script):
            subprocess.run([sys.executable, *step.words], env=make_environment(), check=True)
        elif not needs(step):
            words = _spell(step, number, servers)
            line = " ".join(words)
            play_person(line)
            ready = next((sign for start, sign in STAYS.items() if re.match(start, line)), "")
            code = run_until_ready(words, ready) if ready else main(words)
            said = capsys.readouterr()
            assert code in _exits(step), f"{step}: {said.err}"
            if step.output:
                Path(step.output).write_text(said.out, "utf-8")


def _spell(command: Command, number: int, servers: Servers) -> list[str]:
    """Return the arguments of a command, each with a folder of its own and an answer to give."""
    words = [STANDS_FOR.get(word, word) for word in command.words]
    words = [word.replace(ENDPOINT, servers.model.url) for word in words]
    if "DIR" in words:
        folder = f"DIR-{number}" if "--out" in words else str(min(Path().glob("DIR-*")))
        words = [folder if word == "DIR" else word for word in words]
    if words.count("emotion/test/1") == 2:
        words[-1] = "emotion/test/2"
    line = " ".join(words)
    if line.startswith("gdelt sync"):
        words += ["--mirror", servers.mirror.url, "--wiki", servers.wiki.url, "--yes"]
    if line.startswith("view") and "--bundle" not in words:
        words += ["--port", "0", "--no-browser"]
    if any(line.startswith(each) for each in ASKS) and "--dry-run" not in words:
        words.append("--yes")
    return words


def _exits(command: Command) -> set[int]:
    found = (
        codes for start, codes in EXITS.items() if str(command).startswith(f"coreeval {start}")
    )
    return next(found, {0})


def test_nearly_all_commands_are_run() -> None:
    commands = [each for page in WITH_COMMANDS for each in iter_commands(PAGES[page])]
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())
    parsed = Counter(need for each in commands if (need := needs(each)))
    assert 1 - parsed.total() / len(commands) >= 0.9, parsed
