"""Configs in memory, checks and estimates: what the commands find, as values."""

import asyncio
import copy
from pathlib import Path

import pytest
from markupsafe import escape

from coreeval.api.configs import estimate, load_config
from coreeval.api.validation import validate
from coreeval.config import Config
from coreeval.errors import ConfigError, UsageError
from tests.cli.kit import CONFIG, Shell, config_text


def test_a_config_is_read_from_a_path_a_text_a_mapping_or_a_value(shell: Shell) -> None:
    path = shell.config()
    found = load_config(path)
    assert isinstance(found, Config)
    assert found.name == "trial"
    assert load_config(str(path)) == load_config(CONFIG) == load_config(found) == found
    assert load_config(CONFIG, overrides=["run.seed=3"]).run.seed == 3


def test_an_error_as_python_prints_it_controls_no_terminal(shell: Shell) -> None:
    (shell.folder / "d.csv").write_text("te\x1b]0;owned\x07xt,la\u202ebel\nx,joy\n")
    data = {"format": "csv", "path": str(shell.folder / "d.csv"), "split": "test"}
    with pytest.raises(UsageError) as caught:
        estimate({**CONFIG, "dataset": data})
    assert (
        str(caught.value)
        .splitlines()[-1]
        .startswith("  to do: available: te\ufffd]0;owned\ufffdxt, la\ufffdbel;")
    )


@pytest.mark.parametrize("key", ["a[0]", "list", "dict"])
def test_a_key_like_a_part_of_pydantics_own_is_unknown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({**CONFIG, key: 1})
    assert caught.value.message == f"unknown key {key!r}"


def test_relative_paths_in_memory_start_at_the_current_folder(shell: Shell) -> None:
    given = {**CONFIG, "dataset": {"format": "tweeteval", "path": Path("data") / "emotion"}}
    before = copy.deepcopy(given)
    found = load_config(given, overrides=["dataset.split=val"])
    assert found.dataset.path == str(shell.folder / "data" / "emotion")
    assert found.dataset.split == "val"
    assert given == before


def test_days_without_news_are_named_and_counted(shell: Shell) -> None:
    (gaps,) = (note for note in validate(CONFIG).notes if note.startswith("days without news: "))
    assert gaps.count(", ") == 4 and gaps.endswith(" and 16 more")


def test_the_news_of_a_control_arm_is_counted(shell: Shell) -> None:
    spans = [
        "run.control_window={start: 2025-08-01, end: 2026-01-01}",
        "knowledge.window={start: 2026-01-01, end: 2026-10-01}",
    ]
    found = "control arm: 111 articles on 50 days from 2025-08-01 to 2026-01-01 (end excluded)"
    assert found in validate(CONFIG, overrides=spans).notes
    assert not any(note.startswith("control arm") for note in validate(CONFIG).notes)


def test_a_mistake_in_memory_names_the_nearest_key() -> None:
    with pytest.raises(ConfigError, match="knowlege") as caught:
        load_config({**CONFIG, "knowlege": {}})
    assert "knowledge" in str(caught.value)
    assert "<config>" in caught.value.where


def test_what_is_no_config_is_refused() -> None:
    with pytest.raises(ConfigError, match="a path, a mapping or a Config, not list"):
        load_config([CONFIG])  # type: ignore[arg-type]


def test_a_key_in_memory_is_refused_as_in_a_file() -> None:
    models = {"default": {"model": "openai:gpt-x", "api_key": "sk-" + "a1b2" * 12}}
    with pytest.raises(ConfigError, match="credential"):
        load_config({**CONFIG, "models": models})


def test_validation_is_the_document_of_the_command(shell: Shell) -> None:
    path = shell.config()
    found, said = validate(path), shell("validate", path, "--json")
    assert found.document == said.document
    assert said.code == 0
    assert found.ok and found.problems == ()
    assert any("samples, 0 bad rows" in note for note in found.notes)
    assert found.table["ok"] == (True,) * len(found.checks)
    in_memory = validate(CONFIG)
    assert in_memory.checks == found.checks
    assert in_memory.document["config"] == "<config>"


def test_problems_name_the_check_and_what_to_do(shell: Shell) -> None:
    path = shell.config({"knowledge.path": str(shell.folder / "nowhere")})
    found, said = validate(path), shell("validate", path, "--json")
    assert said.code == 2
    assert found.document == said.document
    assert not found.ok
    failed = next(row for row in found.table if not row["ok"])
    assert failed["check"] == "news" and failed["problem"]
    (told,) = (each for each in found.problems if each.startswith("news: "))
    assert failed["hint"] and told.endswith(f"; to do: {failed['hint']}")
    assert "not ready" in repr(found) and told in repr(found)
    assert str(escape(told)) in found._repr_html_()


def test_an_estimate_is_the_document_of_the_command(shell: Shell) -> None:
    models = {"default": {"model": "openai:gpt-x", "price": {"input": 1.0, "output": 2.0}}}
    path = shell.write("trial.yaml", config_text({"models": models}))
    said = shell("estimate", path, "--limit", "5", "--json").document
    found = estimate(path, limit=5)
    assert {**found.document, "made_at": ""} == {**said, "made_at": ""}
    assert found.usd is not None and found.usd.low <= found.usd.likely <= found.usd.high
    assert found.to_pandas()["usd"].sum() == pytest.approx(found.usd.likely)
    assert found.samples == 5 and "USD" in repr(found)
    assert str(found) == repr(found)
    assert found.notes and all(f"note: {note}" in repr(found) for note in found.notes)
    many = estimate({**CONFIG, "models": models}, rows=1000)
    assert many.samples == 1000 and many.config == "<config>"


def test_an_estimate_with_a_preview_refreshes_samples(shell: Shell) -> None:
    found = estimate(shell.config(), preview=2, limit=4)
    assert found.preview and found.preview.samples == 2
    assert found.to_pay == 2


async def test_estimates_and_checks_work_under_a_running_loop(shell: Shell) -> None:
    assert asyncio.get_running_loop()
    assert estimate(CONFIG, limit=3).samples == 3
    assert validate(CONFIG).ok


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sample": "rndom", "limit": 3}, "did you mean 'random'?"),
        ({"sample": "random"}, "sample requires limit, but limit is missing"),
        ({"limit": 0}, "0 is not a valid number of samples"),
        ({"rows": 10, "limit": 3}, "rows cannot be used with limit"),
        ({"preview": 2, "parent": "latest"}, "preview and parent cannot be used together"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(
    shell: Shell, given: dict[str, object], told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        estimate(CONFIG, **given)  # type: ignore[arg-type]
    assert told in str(caught.value)
