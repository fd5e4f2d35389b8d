"""Spellings of one model, and names that are near an unknown one."""

import pytest

from coreeval.tools.model_names import bare_name, nearest_names, split_date
from coreeval.tools.prices import built_in_prices

TABLE = built_in_prices()


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
    found = nearest_names(name, TABLE)
    assert found[0] == first
    assert 1 <= len(found) <= 3
    assert set(found) <= set(TABLE)


@pytest.mark.parametrize("name", ["openai:qwen3", "openai:", "offline", "replay:answers.jsonl"])
def test_a_name_that_is_like_none_has_no_neighbours(name: str) -> None:
    assert nearest_names(name, TABLE) == []


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
