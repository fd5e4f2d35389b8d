"""The commands on the pages are commands: all fit the program, and those that can run offline run.

A command is only parsed if it needs what a test has not: a model, weights, a download, a person.
`NEEDS` says so by what it is made of, and a page by `<!-- parsed only: WHY -->` above a block.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import typer
import yaml

from coreeval.cli import main
from coreeval.cli.app import COMMANDS, build_app
from tests.docs.pages import PAGES, ROOT, Command, Script, Written, iter_commands, iter_steps

CONFIG: dict[str, Any] = {
    "name": "trial",
    "task": "emotion",
    "dataset": {
        "format": "tweeteval",
        "path": str(ROOT / "examples" / "demo" / "emotion"),
        "licence": {"name": "Apache-2.0", "redistribute": True},
    },
    "knowledge": {"window": {"start": "2025-08-01", "end": "2026-10-01"}},
    "models": {"default": "offline", "targets": ["offline:classifier"]},
    "schedule": "0 3 * * MON",
}
SERIES = {
    "name": "factors",
    "models": {"targets": ["offline:memorizing"]},
    "detect": {"numleak": {"series": ["macro_unemp"], "dates": 8, "pairs": 4, "fictitious": 4}},
}
TEXTS = [
    f"{word} rain fell on the {place}" for word in ("Cold", "Warm") for place in ("sea", "hill")
]
NEEDS = {
    "an answer of a model": r"(?:openai|anthropic|PROVIDER):",
    "a config with a model": r"--batch|--live|prompts try|detect recitation",
    "weights": r"hf:",
    "a download": r"gdelt sync (?!--from examples)|--fetch|push |fama-french|mkt_rf|--to hf",
    "a recorded document": r"(?:texts|said|answers|scored|rankings|utility)\.jsonl|gdelt text",
    "a benchmark that is not bundled": r"fineval|finqa|clean-a\.jsonl|tweeteval[:/]",
    "a person": r"annotate score|--from-csv|--judge",
    "a server": r"schedule run|view(?! (?:latest|RUN) --bundle)|run\.store=postgresql",
    "the user's crontab or systemd": r"schedule install",
    "minutes": r"coreeval demo$|coreeval-demo/|run\.workers",
}
"""What tests have not, by commands that need it."""
EXITS = {"gate RELEASE": {0, 4}, "release RUN --version V --gates": {0, 4}}
"""Exit codes of commands by how they begin, if others than 0 are fine on data so small."""
WITH_COMMANDS = [page for page, text in PAGES.items() if any(iter_commands(text))]
TREE: Any = typer.main.get_command(build_app(COMMANDS))
"""The command tree; typer hides its classes."""


def needs(command: Command) -> str:
    """Return what a command needs that tests have not; nothing if it can be run."""
    said = str(command).replace("'", "")
    plan = "--dry-run" in command.words
    found = (
        need
        for need, sign in NEEDS.items()
        if re.search(sign, said) and not (plan and need == "an answer of a model")
    )
    return command.reason or next(found, "")


def find_problem(words: tuple[str, ...]) -> str:
    """Return why the program would refuse these arguments; nothing if they fit."""
    command, rest, path = TREE, list(words), "coreeval"
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
            if asked - known - {"--help", "--debug"}:
                wrong.append((page, span))
    assert not wrong


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a config, news, a run and a release; only to be copied."""
    folder = tmp_path_factory.mktemp("workspace")
    for name in ("coreeval.yaml", "weekly.yaml", "other.yaml"):
        (folder / name).write_text(yaml.safe_dump(CONFIG), "utf-8")
    _write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "stdin", io.StringIO())
        for line in (
            f"gdelt sync --from {ROOT / 'examples' / 'demo' / 'news'}",
            "refresh coreeval.yaml",
            "release latest --version 2026.1",
        ):
            assert main(line.split()) == 0
    return folder


def _write_files(folder: Path) -> None:
    """Write what the pages call a user's own files."""
    (folder / "factors.yaml").write_text(yaml.safe_dump(SERIES), "utf-8")
    (folder / "ids.txt").write_text("emotion/test/2\n", "utf-8")
    (folder / "sheets").mkdir()
    (folder / "sheets" / "ada.csv").write_text("item,note\n1,by Jane Q. Example\n", "utf-8")
    rows = [
        {"id": str(number), "text": text, "input": text, "question": text, "output": "yes"}
        for number, text in enumerate([*TEXTS, TEXTS[0]])
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("mine.jsonl", "theirs.jsonl", "test.jsonl"):
        (folder / name).write_text(lines, "utf-8")
    csv = "".join(f"{row['id']},{row['text']},{row['question']},joy\n" for row in rows)
    (folder / "mine.csv").write_text(f"id,text,question,label\n{csv}", "utf-8")
    shutil.copy(folder / "mine.csv", folder / "tweets.csv")
    pq.write_table(pa.Table.from_pylist(rows), folder / "corpus.parquet")


STANDS_FOR = {
    "RUN": "latest",
    "RELEASE": ".coreeval/releases/trial/2026.1",
    "A": ".coreeval/releases/trial/2026.1",
    "B": "latest",
    "CONFIG": "coreeval.yaml",
    "SAMPLE": "emotion/test/1",
    "ID": "emotion/test/1",
}
"""What the words in capitals stand for; others are names of files to write."""
ASKS = ("calls gc", "runs delete", "takedown")
"""Commands that ask a person."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [page for page in WITH_COMMANDS if not all(map(needs, iter_commands(PAGES[page])))],
)
def test_every_command_that_can_run_offline_runs(
    page: str,
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(workspace, folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    for number, step in enumerate(iter_steps(PAGES[page])):
        if isinstance(step, Written):
            Path(step.name).write_text(step.text, "utf-8")
        elif isinstance(step, Script):
            command = [sys.executable, *step.words]
            subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
        elif not needs(step):
            code = main(_spell(step, number))
            said = capsys.readouterr()
            assert code in _exits(step), f"{step}: {said.err}"
            if step.output:
                Path(step.output).write_text(said.out, "utf-8")


def _spell(command: Command, number: int) -> list[str]:
    """Return the arguments of a command, each with a folder of its own and an answer to give."""
    words = [STANDS_FOR.get(word, word) for word in command.words]
    words = [f"{word}-{number}" if word == "DIR" else word for word in words]
    asks = any(" ".join(words).startswith(each) for each in ASKS) and "--dry-run" not in words
    return [*words, "--yes"] if asks else words


def _exits(command: Command) -> set[int]:
    found = (
        codes for start, codes in EXITS.items() if str(command).startswith(f"coreeval {start}")
    )
    return next(found, {0})


def test_most_commands_are_run() -> None:
    commands = [each for page in WITH_COMMANDS for each in iter_commands(PAGES[page])]
    assert sum(not needs(each) for each in commands) > len(commands) / 2
