"""Mistakes in the config: one message, exit 2, nothing written, no traceback."""

import socket
from pathlib import Path

import pytest
import yaml

from tests.cli.kit import CONFIG, DEMO, Shell

AUTO = {"start": "auto"}


def refused(shell: Shell, config: Path | str, *parts: str) -> None:
    """Check that `refresh` refuses a config with a message that has these parts."""
    said = shell("refresh", config)
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err
    assert not (shell.folder / ".coreeval" / "runs").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1,\n b: 2", "this is not YAML"),
        ("\x00", "this is not YAML"),
        ("- a\n- b\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("just words", "must be a mapping"),
        ("1: 2\n", "name"),
    ],
)
def test_a_file_that_is_no_config(shell: Shell, text: str, message: str) -> None:
    refused(shell, shell.write("broken.yaml", text), message, "broken.yaml")


def test_no_file_and_a_folder(shell: Shell) -> None:
    refused(shell, "nowhere.yaml", "config file not found", "nowhere.yaml", "coreeval init")
    shell.write("coreeval.yaml", "name: x")
    shell.write("coreevl.json", "{}")
    refused(
        shell, "coreevl.yaml", f"did you mean '{shell.folder / 'coreeval.yaml'}'? if not, write"
    )
    refused(shell, shell.folder, "cannot read")


@pytest.mark.parametrize(
    ("key", "value", "named", "meant"),
    [
        ("tsak", "emotion", "tsak", "task"),
        ("dataset.splti", "test", "dataset.splti", "split"),
        ("knowledge.window.strat", "auto", "knowledge.window.strat", "start"),
        ("models.labeljudge", "offline", "models.labeljudge", "label_judge"),
        (
            "models.default",
            {"model": "offline", "tempature": 0},
            "default.tempature",
            "temperature",
        ),
        ("models.targets", [{"model": "a:b", "cutof": "2026-01-01"}], "targets.0.cutof", "cutoff"),
        ("run.max_atempts", 3, "run.max_atempts", "max_attempts"),
        ("detect.evalute", True, "detect.evalute", "evaluate"),
    ],
)
def test_an_unknown_key_names_the_nearest(
    shell: Shell, key: str, value: object, named: str, meant: str
) -> None:
    refused(shell, shell.config({key: value}), f"{named}'", f"did you mean {meant!r}?")


def test_a_key_that_is_like_none_lists_what_there_is(shell: Shell) -> None:
    refused(shell, shell.config({"detect.zzz": 1}), "unknown key 'detect.zzz'", "evaluate")


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("run.concurrency", "many", ["run.concurrency", "is not a whole number"]),
        ("run.concurrency", 0, ["run.concurrency", "1"]),
        ("dataset.format", "tweetevil", ["dataset.format", "'tweeteval'"]),
        ("dataset", "folder", ["dataset"]),
        ("name", None, ["name", "required"]),
        ("dataset", None, ["dataset", "required"]),
        ("name", "../up", ["name"]),
        ("knowledge.window.start", "yesterday", ["knowledge.window.start"]),
        ("knowledge.min_precision", "exakt", ["knowledge.min_precision", "'exact'"]),
        ("models.composer", "spacy", ["spacy can only be an extractor", "models.extractor"]),
        ("models.targets", ["offline:classifier"] * 2, ["more than once"]),
    ],
)
def test_a_value_of_the_wrong_kind(shell: Shell, key: str, value: object, parts: list[str]) -> None:
    refused(shell, shell.config({key: value}), *parts)


def test_windows_that_cannot_be(shell: Shell) -> None:
    late = {"start": "2026-10-01", "end": "2026-01-01"}
    refused(shell, shell.config({"knowledge.window": late}), "2026-10-01", "2026-01-01")
    long_ago = {"start": "2020-01-01", "end": "2020-06-01"}
    refused(shell, shell.config({"knowledge.window": long_ago}), "no news", "2025-08-07")
    refused(shell, shell.config({"knowledge.window": AUTO}), "window.start", "models.targets")
    undated = shell.config({"knowledge.window": AUTO, "models.targets": ["openai:gpt-x"]})
    refused(shell, undated, "window.start", "'openai:gpt-x'")
    embedded = shell.config({"knowledge.window": AUTO, "models.targets": ["offline:classifier"]})
    refused(shell, embedded, "window.start", "models.targets")


def test_a_task_with_a_typo(shell: Shell) -> None:
    refused(shell, shell.config({"task": "emotoin"}), "'emotoin'", "did you mean 'emotion'?")
    refused(shell, shell.config({"task": "none.yaml"}), "task file not found", "none.yaml")


def test_data_that_is_not_there_or_something_else(shell: Shell) -> None:
    refused(shell, shell.config({"dataset.path": "gone"}), "no such folder", "gone")
    refused(shell, shell.config({"dataset.split": "tset"}), "no split 'tset'", "test, train, val")
    tweets = {"format": "jsonl", "path": str(DEMO / "emotion" / "test_text.txt")}
    refused(shell, shell.config({"dataset": tweets}), "JSON object", "test_text.txt")
    refused(shell, shell.config({"dataset.format": "mrpc"}), "msr_paraphrase_test.txt")
    empty = shell.write("empty.jsonl", "")
    nothing = {"format": "jsonl", "path": str(empty)}
    refused(shell, shell.config({"dataset": nothing}), "empty", "empty.jsonl")
    refused(shell, shell.config({"knowledge.path": "gone"}), "news folder", "knowledge.path")
    refused(shell, shell.config({"prompts": "gone"}), "folder of prompts", "gone")


def test_a_split_where_no_line_is_a_sample(shell: Shell) -> None:
    rows = shell.write("other.jsonl", '{"text": "x", "label": "rage"}\n')
    dataset = {"format": "jsonl", "path": str(rows)}
    refused(shell, shell.config({"dataset": dataset}), "no valid sample", "line 1", "rage")


def test_models_that_cannot_be_asked(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    refused(shell, shell.config({"models.default": "openai:gpt-x"}), "OPENAI_API_KEY", ".env")
    refused(shell, shell.config({"models.default": "opnai:gpt-x"}), "'opnai:gpt-x'", "openai:")
    refused(shell, shell.config({"models.default": "gpt-x"}), "'gpt-x'", "provider:name")
    place = {"model": "openai:x", "base_url": "localhost:9"}
    refused(shell, shell.config({"models.default": place}), "base_url", "http://127.0.0.1")


def test_an_endpoint_where_nobody_listens_is_no_mistake_of_usage(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    model = {"model": "openai:x", "base_url": f"http://127.0.0.1:{port}/v1"}
    said = shell("refresh", shell.config({"models.default": model}), "--json")
    assert (said.code, said.error["kind"]) == (1, "model")
    assert str(port) in said.error["where"]
    assert not (shell.folder / ".coreeval" / "runs").exists()


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("run.seed", ["key.path=value"]),
        ("=3", ["key.path=value"]),
        ("run.seed=[1,", ["not YAML", "run.seed=[1,"]),
        ("run.sead=1", ["run.sead", "did you mean 'seed'?"]),
        ("name.inner=1", ["name is not a mapping"]),
        ("run.seed=many", ["run.seed", "is not a whole number"]),
    ],
)
def test_settings_that_do_not_fit(shell: Shell, setting: str, parts: list[str]) -> None:
    config = shell.config()
    for command in ("refresh", "validate"):
        said = shell(command, config, "--set", setting)
        assert said.code == 2
        assert all(part in said.err for part in parts)


def test_a_value_of_the_command_line_is_not_looked_for_in_the_file(shell: Shell) -> None:
    said = shell("refresh", shell.config(), "--budget", "0")
    assert said.code == 2
    assert "trial.yaml with run.budget_usd=0.0" in said.err


def test_a_setting_that_fits_reaches_the_run(shell: Shell) -> None:
    said = shell("validate", shell.config(), "--set", "name=other", "--set", "task=emotoin")
    assert said.code == 2
    assert "other, task emotoin" in said.out


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("name: x\nrun:\n  concurrency: many\n",
         ("'many' is not a whole number, such as 10", "line 3: run.concurrency")),
        ("knowledge:\n  window:\n    start: 01.08.2025\n",
         ("'01.08.2025' is not a date: write YYYY-MM-DD", "line 3: knowledge.window.start")),
        ("models:\n  default: offline\nbackends:\n    a: 1\n  b: 2\n",
         ("near line 5", "check the indentation of this line and of those above it")),
    ],
)  # fmt: skip
def test_a_bad_value_is_told_in_plain_words_with_its_line(
    shell: Shell, text: str, parts: tuple[str, ...]
) -> None:
    refused(shell, shell.write("odd.yaml", text), *parts)


def test_the_one_mistake_of_a_config_is_told_with_its_line(shell: Shell) -> None:
    good = yaml.safe_dump(CONFIG | {"run": {"seed": "many"}}, sort_keys=False)
    path = shell.write("one.yaml", good)
    line = good[: good.index("seed:")].count("\n") + 1
    refused(shell, path, "run.seed: 'many' is not a whole number", f"one.yaml, line {line}")


def test_the_value_of_an_option_is_told_in_plain_words(shell: Shell) -> None:
    said = shell("estimate", "any.yaml", "--limit", "abc")
    assert said.code == 2
    assert "'--limit'" in said.err and "'abc' is not a whole number, such as 10" in said.err
    assert "Input should" not in said.err
