"""The price table of the package, a user's own on top of it, and names that have no price."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from coreeval.config import Config
from coreeval.errors import ConfigError
from coreeval.tools.catalogs import (
    OLD_AFTER_DAYS,
    Price,
    bare_name,
    describe_old_prices,
    find_nearest_names,
    load_built_in_prices,
    load_prices,
    load_run_prices,
    split_date,
)

TABLE = load_built_in_prices()


@pytest.mark.parametrize("name", TABLE)
def test_every_price_has_a_day_and_a_source_and_makes_sense(name: str) -> None:
    price = TABLE[name]
    provider, _, model = name.partition(":")
    assert provider in {"openai", "anthropic"} and model
    assert date(2025, 1, 1) < price.as_of < date(2027, 1, 1)
    assert all(url.startswith("https://") for url in price.source.split())
    assert price.output >= price.input > 0
    assert price.cached_input is not None and 0 < price.cached_input <= price.input
    assert (price.batch_input is None) == (price.batch_output is None)
    if price.batch_input is not None and price.batch_output is not None:
        assert price.batch_input < price.input and price.batch_output < price.output
    if provider == "anthropic" or price.cache_write is not None:
        assert price.cache_write == pytest.approx(1.25 * price.input)


def test_the_table_has_models_of_several_makers() -> None:
    makers = {name.partition(":")[2].partition("-")[0] for name in TABLE}
    assert {"gpt", "claude", "mistral", "deepseek"} <= makers
    assert 15 <= len(TABLE) <= 60


def test_a_file_of_the_user_s_own_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("openai:gpt-5: {input: 1, output: 2, as_of: 2026-01-01, source: my contract}\n")
    found = load_prices(file)
    assert found["openai:gpt-5"] == Price(
        input=1, output=2, as_of=date(2026, 1, 1), source="my contract"
    )
    assert found["openai:gpt-4.1"] == TABLE["openai:gpt-4.1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("openai:x: {input: 1, output: 2, source: me}", "as_of"),
        ("openai:x: {input: 1, output: 2, as_of: 2026-01-01}", "source"),
        ("openai:x: {input: -1, output: 2, as_of: 2026-01-01, source: me}", "input"),
        ("{", "not YAML"),
    ],
)
def test_a_price_without_its_day_or_source_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_prices(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_prices(tmp_path / "none.yaml")


NAMES = load_built_in_prices()


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("openai:gpt-4.1-2025-04-14", "openai:gpt-4.1"),
        ("openai:gpt-5-mini-2025-08-07", "openai:gpt-5-mini"),
        ("anthropic:claude-opus-4-5-20251101", "anthropic:claude-opus-4-5"),
        ("openai:GPT5-mini", "openai:gpt-5-mini"),
        ("openai:anthropic/claude-sonnet-4.5", "anthropic:claude-sonnet-4-5"),
        ("openai:mistral-large", "openai:mistral-large-latest"),
    ],
)
def test_the_nearest_name_comes_first(name: str, first: str) -> None:
    found = find_nearest_names(name, NAMES)
    assert found[0] == first
    assert 1 <= len(found) <= 3
    assert set(found) <= set(NAMES)


@pytest.mark.parametrize("name", ["openai:qwen3", "openai:", "offline", "replay:answers.jsonl"])
def test_a_name_that_is_like_none_has_no_neighbours(name: str) -> None:
    assert find_nearest_names(name, NAMES) == []


def test_a_name_without_its_provider_and_host() -> None:
    assert bare_name("openai:meta-llama/Llama-3.3-70B") == "llama-3.3-70b"
    assert bare_name("ollama:llama3.3:70b") == "llama3.3:70b"
    assert bare_name("GPT-5") == "gpt-5"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gpt-5-2025-08-07", ("gpt-5", "2025-08-07")),
        ("claude-opus-4-1@20250805", ("claude-opus-4-1", "2025-08-05")),
        ("qwen3-max-2026-01", ("qwen3-max", "2026-01")),
        ("mistral-small-2506", ("mistral-small-2506", "")),
        ("gpt-4.1", ("gpt-4.1", "")),
        ("mistral-large-latest", ("mistral-large-latest", "")),
    ],
)
def test_the_date_at_the_end_of_a_name(name: str, parts: tuple[str, str]) -> None:
    assert split_date(name) == parts


def _remarks(config: dict[str, object], today: date, prices: str = "") -> list[str]:
    told = {
        "name": "old",
        "task": "emotion",
        "dataset": {"format": "jsonl", "path": "data.jsonl"},
        "knowledge": {"window": {"start": "2026-01-01", "end": "2026-02-01"}},
        "models": config,
        "run": {"prices": prices or None},
    }
    found = Config.model_validate(told)
    models = [found.models.for_role("composer"), *found.models.targets]
    return describe_old_prices(found, models, load_run_prices(found), today)


def test_a_price_is_told_to_be_old_from_a_day_on() -> None:
    models: dict[str, object] = {"default": "openai:gpt-5", "targets": ["openai:gpt-5"]}
    known = TABLE["openai:gpt-5"].as_of
    assert _remarks(models, known + timedelta(OLD_AFTER_DAYS - 1)) == []
    (told,) = _remarks(models, known + timedelta(OLD_AFTER_DAYS))
    assert f"openai:gpt-5 was looked up on {known}, {OLD_AFTER_DAYS} days ago (prices.yaml)" in told
    assert "run.prices" in told


def test_an_old_price_of_a_user_s_own_names_their_file(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text("openai:gpt-5: {input: 1, output: 2, as_of: 2025-01-01, source: me}\n")
    (told,) = _remarks({"default": "openai:gpt-5"}, date(2026, 1, 1), str(file))
    assert "365 days ago (contract.yaml)" in told and "update" in told


def test_a_price_in_a_config_has_no_age() -> None:
    own = {"default": {"model": "openai:gpt-5", "price": {"input": 1, "output": 2}}}
    assert _remarks(dict(own), date(2036, 1, 1)) == []
