from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from coreeval.config import Config, changed_keys, parse_config
from coreeval.errors import ConfigError

SECRET = "sk-proj-hunter2"
BASE: dict[str, Any] = {
    "name": "n",
    "task": "emotion",
    "dataset": {"format": "jsonl", "path": "d.jsonl"},
    "knowledge": {"path": "news", "window": {"start": "2026-01-01"}},
    "models": {"default": "offline"},
}


def _parsed(**changes: object) -> Config:
    return parse_config(BASE | changes, where="c.yaml", base=Path("/base"))


def test_times_without_a_zone_are_utc_and_paths_start_at_the_config() -> None:
    config = _parsed()
    assert config.knowledge.window.start == datetime(2026, 1, 1, tzinfo=UTC)
    assert config.dataset.path == "/base/d.jsonl"
    assert config.knowledge.path == "/base/news"


def test_replay_files_start_at_the_config_too() -> None:
    models = {"default": "replay:answers.jsonl", "composer": {"model": "replay:/elsewhere.jsonl"}}
    config = _parsed(models=models)
    assert config.models.default.model == "replay:/base/answers.jsonl"
    assert config.models.of("composer").model == "replay:/elsewhere.jsonl"


@pytest.mark.parametrize(
    "url",
    [f"http://user:{SECRET}@127.0.0.1:8000/v1", f"http://127.0.0.1:8000/v1?api_key={SECRET}"],
)
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match=r"base_url (looks like a credential|must not)") as caught:
        _parsed(models={"default": {"model": "openai:m", "base_url": url}})
    assert SECRET not in str(caught.value.as_dict())


def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="NAME of an environment variable") as caught:
        _parsed(models={"default": {"model": "openai:m", "api_key_env": SECRET}})
    assert SECRET not in str(caught.value.as_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": {"default": "spacy"}}, "spacy is an extractor only"),
        ({"models": {"default": "offline:x"}}, "takes 'offline' without a name"),
        (
            {"models": {"default": {"model": "openai:m", "extra": {"x": [float("nan")]}}}},
            "JSON has no word for .nan",
        ),
        (
            {"models": {"default": "offline", "targets": ["spacy"]}},
            "spacy is an extractor, not a target",
        ),
        (
            {
                "models": {
                    "default": "offline",
                    "targets": [{"model": "openai:m", "role": "reference"}],
                }
            },
            "references only",
        ),
        (
            {"models": {"default": "offline", "targets": ["openai:m", "openai:m"]}},
            "more than once",
        ),
        (
            {"dataset": {"format": "csv", "path": "d.csv", "target": "all"}},
            "target: all is for format: tweeteval",
        ),
    ],
)
def test_what_cannot_work_is_refused_at_once(changes: Mapping[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _parsed(**changes)


def test_a_target_s_dates_are_kept_as_they_are_stated() -> None:
    given = {"cutoff": "2026-02", "released": "2026-03-05T12:00:00+02:00"}
    targets = [{"model": "openai:a", **given}, {"model": "openai:b", "cutoff": date(2026, 2, 1)}]
    first, second = _parsed(models={"default": "offline", "targets": targets}).models.targets
    assert (first.cutoff, first.released) == ("2026-02", "2026-03-05T10:00:00+00:00")
    assert (second.cutoff, second.released) == ("2026-02-01", None)
    with pytest.raises(ConfigError, match="'soon' is no date"):
        _parsed(models={"default": "offline", "targets": [{"model": "openai:a", "cutoff": "soon"}]})


@pytest.mark.parametrize(
    ("extra", "name"),
    [
        ({"max_tokens": 100_000}, "max_tokens"),
        ({"max_completion_tokens": 100_000}, "max_completion_tokens"),
        ({"maxOutputTokens": 100_000}, "maxOutputTokens"),
        ({"n": 128}, "n"),
        ({"best_of": 20}, "best_of"),
        ({"top_p": 1, "model": "dearest"}, "model"),
        ({"messages": []}, "messages"),
        ({"system": "Say joy."}, "system"),
        ({"stream": True}, "stream"),
        ({"tools": []}, "tools"),
        ({"response_format": {"type": "text"}}, "response_format"),
        ({"extra_body": {"n": 9}}, "extra_body.n"),
        ({"model_kwargs": {"extra_body": {"best_of": 9}}}, "model_kwargs.extra_body.best_of"),
    ],
)
def test_extra_holds_nothing_that_the_budget_counts_with(
    extra: dict[str, object], name: str
) -> None:
    models = {"default": "offline", "targets": [{"model": "openai:m", "extra": extra}]}
    with pytest.raises(ConfigError) as told:
        _parsed(models=models)
    assert f"extra: {name} cannot be set here: " in str(told.value)


def test_what_only_resembles_a_reserved_parameter_is_free() -> None:
    extra = {
        "top_k": 5,
        "temperature": 1,
        "thinking": {"type": "enabled", "budget_tokens": 500},
        "metadata": {"model": "mine", "n": 1},
        "output_config": {"beside": 1},
        "parallel_tool_calls": False,
    }
    config = _parsed(models={"default": {"model": "openai:m", "extra": extra}})
    assert config.models.default.extra == extra


def test_changed_keys_are_named_by_their_path() -> None:
    after = _parsed(run={"max_attempts": 2}, models={"default": "offline", "targets": ["openai:m"]})
    changed = changed_keys(_parsed(), after)
    assert "run.max_attempts" in changed
    assert "models.targets[0].model" in changed
    assert "name" not in changed
