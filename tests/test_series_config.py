"""The config of asking about series, by itself and as a part of a run's."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
import yaml

from coreeval.config import NumleakConfig, PeriodConfig, load_config, load_series_config
from coreeval.errors import ConfigError
from tests.test_config import BASE

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


@pytest.mark.parametrize(
    ("numleak", "said"),
    [
        ({"series": []}, "detect.numleak.series: "),
        ({"series": "x", "date": 3}, "unknown key 'detect.numleak.date'"),
        ({"series": "x", "probes": ["blind"]}, "probes must have 'value'"),
        ({"series": "x", "probes": ["value", "guess"]}, "detect.numleak.probes.1: "),
        ({"series": "x", "period": {"start": "May"}}, "'May' is no year, month or day"),
        ({"series": "x", "period": {"start": "2015-02-30"}}, "day is out of range"),
        ({"series": "x", "period": {"start": 2015, "end": 2014}}, "it runs backwards"),
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
