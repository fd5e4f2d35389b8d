"""Configs from YAML: paths, overrides and errors; the config of asking about series too."""

import os
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from coreeval.config import (
    Config,
    ItemConfig,
    NumleakConfig,
    PeriodConfig,
    SeriesConfig,
    find_changed_keys,
    load_config,
    load_series_config,
    parse_config,
)
from coreeval.config.base import Section
from coreeval.config.dates import Age
from coreeval.errors import ConfigError
from coreeval.schema import Value

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
    assert config.models.for_role("composer").model == "replay:/elsewhere.jsonl"


@pytest.mark.parametrize(
    "url",
    [f"http://user:{SECRET}@127.0.0.1:8000/v1", f"http://127.0.0.1:8000/v1?api_key={SECRET}"],
)
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match=r"base_url (looks like a credential|must not)") as caught:
        _parsed(models={"default": {"model": "openai:m", "base_url": url}})
    assert SECRET not in str(caught.value.as_dict())


@pytest.mark.parametrize(
    "place",
    ["a..b", ".a", f"{'a' * 64}.example", "h:99999", "h:0", "h:port", "[::zz]", "[", "a\0b"],
)
def test_an_address_that_no_machine_can_have_is_refused(place: str) -> None:
    """Clients end with errors of their own where they are given one, deep inside a run."""
    url = f"http://{place}/v1"
    for section in (
        {"models": {"default": {"model": "openai:m", "base_url": url}}},
        {"telemetry": {"otlp": url}},
        {"knowledge": {**BASE["knowledge"], "doc": {"base_url": url}}},
        {"knowledge": {**BASE["knowledge"], "bigquery": {"endpoint": f"https://{place}/v1"}}},
    ):
        with pytest.raises(
            ConfigError,
            match="this host or port is not valid",
        ):
            _parsed(**section)


@pytest.mark.parametrize("place", ["127.0.0.1:8000", "[::1]:8000", "h_x", "münchen.example", "a."])
def test_other_addresses_are_taken(place: str) -> None:
    _parsed(models={"default": {"model": "openai:m", "base_url": f"http://{place}/v1"}})


def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="NAME of an environment variable") as caught:
        _parsed(models={"default": {"model": "openai:m", "api_key_env": SECRET}})
    assert SECRET not in str(caught.value.as_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": {"default": "spacy"}}, "spacy can only be an extractor"),
        ({"models": {"default": "offline:x"}}, "takes 'offline' without a name"),
        (
            {"models": {"default": {"model": "openai:m", "extra": {"x": [float("nan")]}}}},
            r"models\.default\.extra\.x\.0: .* is not a finite number",
        ),
        *(
            ({"knowledge": {"window": window}}, rf"knowledge\.window\.{key}: the year \d+ is not")
            for key, window in (
                ("start", {"start": "0001-01-01"}),
                ("start", {"start": "0001-01-01T00:00:00+14:00"}),
                ("end", {"start": "2026-01-01", "end": "9999-12-31T23:59:59-14:00"}),
            )
        ),
        *(
            (
                {"models": {"default": "offline", "targets": [{"model": "openai:m", key: said}]}},
                rf"models\.targets\.0\.{key}: the year \d+ is not between 1900 and 2100",
            )
            for key in ("cutoff", "released")
            for said in (
                *("0000-01", "9999-12", "0001-01-01", "0001-01-01T00:00:00+14:00"),
                "9999-12-31T23:59:59-14:00",
            )
        ),
        ({"detect": {"pcr": {"samples": 10**26}}}, r"detect\.pcr\.samples: .* at most"),
        (
            {"detect": {"numleak": {"series": ["cpi"], "dates": 10**26}}},
            r"detect\.numleak\.dates: .* at most",
        ),
        (
            {"models": {"default": {"model": "openai:m", "max_tokens": 10**26}}},
            r"models\.default\.max_tokens: .* at most",
        ),
        (
            {"models": {"default": {"model": "openai:m", "seed": -(2**64)}}},
            r"models\.default\.seed: .* at least",
        ),
        *(
            ({"run": {key: said}}, rf"run\.{key}: .* is not a finite number")
            for key in ("budget_usd", "timeout_s", "sample_timeout_s")
            for said in (float("inf"), float("nan"), "inf")
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
            "references",
        ),
        (
            {"models": {"default": "offline", "targets": ["openai:m", "openai:m"]}},
            "more than once",
        ),
        (
            {"dataset": {"format": "csv", "path": "d.csv", "target": "all"}},
            "target: all is only for format: tweeteval; name one",
        ),
        (
            {
                "dataset": {
                    "format": "csv",
                    "path": "d.csv",
                    "columns": {"choices": ["opt_a", "opt_b"]},
                }
            },
            r"choices is a list, .* column; map each option: \{A: opt_a, B: opt_b\}",
        ),
        *(
            ({"run": {"arms": arms}}, r"run: .*arms: must be \[semantic, updated\] or \[updated\]")
            for arms in ([], ["semantic"], ["updated", "updated"])
        ),
        ({"run": {"arms": ["updated", "control"]}}, r"run\.arms\.1: 'control' is not one of"),
        (
            {"run": {"arms": ["updated"], "on_reject": "semantic"}},
            "on_reject: semantic needs semantic in arms",
        ),
        (
            {"run": {"arms": ["updated"]}, "detect": {"pcr": {}}},
            r"detect\.pcr .* needs semantic in run\.arms",
        ),
        ({"run": {"label_batch": 0}}, r"run\.label_batch: .* at least"),
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
    with pytest.raises(ConfigError, match="'soon' is not a date"):
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
    changed = find_changed_keys(_parsed(), after)
    assert "run.max_attempts" in changed
    assert "models.targets[0].model" in changed
    assert "name" not in changed


ALONE: Mapping[str, object] = {
    "name": "n",
    "models": {"targets": ["openai:m", "offline:fluent"]},
    "detect": {"numleak": {"series": "own/s.yaml", "files": {"mkt_rf": "ff.csv"}}},
}


def written(folder: Path, config: Mapping[str, object]) -> Path:
    path = folder / "c.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def test_paths_start_at_the_config_and_names_stay(tmp_path: Path) -> None:
    path = written(tmp_path, ALONE)
    asked = load_series_config(path).detect.numleak
    assert asked.series == (str(tmp_path / "own" / "s.yaml"),)
    assert asked.files == {"mkt_rf": str(tmp_path / "ff.csv")}
    changed = load_series_config(path, ["detect.numleak.series=[fama-french, unrate]"])
    assert changed.detect.numleak.series == ("fama-french", "unrate")


@pytest.mark.parametrize(
    ("path", "exists", "place"),
    [
        ("data", True, "data"),
        ("acme/emotion", True, "acme/emotion"),
        ("acme/emotion", False, None),
        ("./data", False, "data"),
        ("../data", False, "../data"),
    ],
)
def test_a_folder_for_datasets_is_beside_the_config_and_a_dataset_on_the_hub_keeps_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, place: str | None, *, exists: bool
) -> None:
    folder, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (elsewhere / path).mkdir(parents=True)
    folder.mkdir()
    if exists:
        (folder / path).mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    raw = BASE | {"dataset": {"format": "hf", "path": path}}
    dataset = parse_config(raw, where="c.yaml", base=folder).dataset
    assert dataset.path == (path if place is None else os.path.realpath(folder / place))
    assert dataset.is_on_hub == (place is None)


@pytest.mark.parametrize(
    ("given", "seed"),
    [(0, 0), (2**32 - 1, 2**32 - 1), (2**32, 0), (-1, 2**32 - 1), (20261123162712, 1762427480)],
)
def test_any_integer_is_a_seed(tmp_path: Path, given: int, seed: int) -> None:
    """NumPy takes none below 0, scikit-learn none from 2^32."""
    assert load_config(written(tmp_path, {**BASE, "run": {"seed": given}})).run.seed == seed
    alone = written(tmp_path, {**ALONE, "run": {"seed": given}})
    assert load_series_config(alone).run.seed == seed


def test_the_part_of_a_run_is_asked_in_the_same_way(tmp_path: Path) -> None:
    run = {
        **BASE,
        "knowledge": {"path": "news", "cutoffs": "cutoffs.yaml"},
        "models": {"default": "offline", "targets": ["openai:m"]},
        "run": {"seed": 3, "budget_usd": 2, "max_attempts": 2},
        "detect": {"numleak": {"series": ["s.yaml"]}},
    }
    path = written(tmp_path, run)
    part = load_series_config(path)
    assert part.detect.numleak == load_config(path).detect.numleak
    assert part.detect.numleak.series == (str(tmp_path / "s.yaml"),)
    assert (part.run.seed, part.run.budget_usd) == (3, 2)
    assert part.cutoffs == str(tmp_path / "cutoffs.yaml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"detect": {}}, "detect.numleak is missing"),
        ({"models": {"default": "offline"}}, "models.targets is empty"),
    ],
)
def test_a_run_that_asks_nothing_about_series_says_what_is_missing(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    run = {
        **BASE,
        "models": {"default": "offline", "targets": ["openai:m"]},
        "detect": {"numleak": {"series": ["unrate"]}},
    }
    with pytest.raises(ConfigError, match=said):
        load_series_config(written(tmp_path, {**run, **changes}))


def test_there_is_nothing_to_refresh(tmp_path: Path) -> None:
    path = written(tmp_path, ALONE)
    with pytest.raises(ConfigError, match="nothing to refresh") as caught:
        load_config(path)
    assert caught.value.hint == f"coreeval detect numleak {path}"


@pytest.mark.parametrize("kind", ["finqa", "ectsum", "jsonl"])
def test_a_format_of_items_can_be_refreshed_if_there_is_a_task(tmp_path: Path, kind: str) -> None:
    dataset = {"dataset": {"format": kind, "path": "here"}}
    assert load_config(written(tmp_path, BASE | dataset)).dataset.format == kind
    items = {"name": "n", "models": {"targets": ["openai:m"]}, **dataset}
    with pytest.raises(ConfigError, match="there is nothing to refresh"):
        load_config(written(tmp_path, items))


def test_a_format_of_items_alone_is_never_refreshed(tmp_path: Path) -> None:
    dataset = {"dataset": {"format": "fineval", "path": "here"}}
    with pytest.raises(ConfigError, match="a benchmark of items: there is nothing to refresh"):
        load_config(written(tmp_path, BASE | dataset))


@pytest.mark.parametrize(
    ("numleak", "said"),
    [
        ({"series": []}, "detect.numleak.series: "),
        ({"series": "x", "date": 3}, "unknown key 'detect.numleak.date'"),
        (
            {"series": "x", "probes": ["blind"]},
            "probes must include 'value', because all others are compared with it",
        ),
        ({"series": "x", "probes": ["value", "guess"]}, "detect.numleak.probes.1: "),
        ({"series": "x", "period": {"start": "May"}}, "'May' is not a year, month or day such as"),
        ({"series": "x", "period": {"start": "2015-02-30"}}, "day is out of range"),
        ({"series": "x", "period": {"start": 2015, "end": 2014}}, "it starts"),
        ({"series": "x", "draws": 1}, "detect.numleak.draws: "),
    ],
)
def test_what_cannot_be_meant_is_told_by_its_key(
    tmp_path: Path, numleak: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        load_series_config(written(tmp_path, {**ALONE, "detect": {"numleak": numleak}}))


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        (2015, 2016, date(2015, 1, 1), date(2016, 12, 31)),
        ("2015-03", "2016-02", date(2015, 3, 1), date(2016, 2, 29)),
        (date(2015, 3, 4), "2015-03-04", date(2015, 3, 4), date(2015, 3, 4)),
        (None, None, date.min, date.max),
    ],
)
def test_a_period_holds_its_first_and_its_last_day(
    start: object, end: object, first: date, last: date
) -> None:
    period = PeriodConfig.model_validate({"start": start, "end": end})
    assert (period.first_day, period.last_day) == (first, last)
    assert first in period and last in period
    assert PeriodConfig.model_validate(period.model_dump(mode="json")) == period


def test_a_config_survives_being_written_down() -> None:
    asked = NumleakConfig.model_validate({"series": "x", "period": {"end": 2015}})
    assert NumleakConfig.model_validate(asked.model_dump(mode="json")) == asked


@pytest.mark.parametrize("model", [Config, ItemConfig, SeriesConfig])
def test_every_number_has_an_end(model: type[BaseModel]) -> None:
    sections = model.model_json_schema()["$defs"]
    kinds = {
        f"{section}.{key}": kind
        for section, about in sections.items()
        for key, said in about.get("properties", {}).items()
        for kind in said.get("anyOf", [said])
        if kind.get("type") == "integer" and key != "seed"
    }
    assert len(kinds) > 3
    assert not [key for key, kind in kinds.items() if "maximum" not in kind]


def test_no_config_takes_infinity() -> None:
    own = {each for each in Value.__subclasses__() if each.__module__.startswith("coreeval.config")}
    assert own == {Age, Section}
    assert Section.model_config["allow_inf_nan"] is False


@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "/tmp/x",
        "a/b",
        "dev-2",
        "a b",
        "all",
        "test[0]",
        "",
        ".x",
        "x.",
        "a" * 65,
        "x\n",
    ],
)
@pytest.mark.parametrize("key", ["split", "train_split"])
def test_a_split_is_a_name_and_never_a_path(tmp_path: Path, key: str, name: str) -> None:
    config = written(tmp_path, {**BASE, "dataset": {**BASE["dataset"], key: name}})
    with pytest.raises(ConfigError, match="a split's name can have at most") as caught:
        load_config(config)
    assert f"dataset.{key}" in str(caught.value)


@pytest.mark.parametrize("name", ["test", "validation_matched", "x.y", "überprüfung", "2026"])
def test_a_split_may_have_any_name_that_datasets_takes(tmp_path: Path, name: str) -> None:
    config = written(tmp_path, {**BASE, "dataset": {**BASE["dataset"], "split": name}})
    assert load_config(config).dataset.split == name
