"""From how many tokens on which provider caches the beginning of a prompt."""

import pytest

from coreeval.config import ModelConfig
from coreeval.models.prompt_cache import find_fewest_tokens


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("openai:gpt-5", 1024),
        ("openai:gpt-6-sol", 1024),
        ("anthropic:claude-opus-5", 512),
        ("anthropic:claude-opus-5-5", 512),
        ("anthropic:claude-fable-5-1", 512),
        ("anthropic:claude-haiku-5-5", 512),
        ("anthropic:claude-sonnet-5-5", 512),
        ("anthropic:claude-sonnet-5", 1024),
        ("anthropic:claude-sonnet-4-6", 1024),
        ("anthropic:claude-opus-4-8", 1024),
        ("anthropic:claude-opus-4-1", 1024),
        ("anthropic:claude-opus-4-20250514", 1024),
        ("anthropic:claude-opus-4-7", 2048),
        ("anthropic:claude-opus-4-6", 4096),
        ("anthropic:claude-haiku-4-5-20251001", 4096),
        ("google_genai:gemini-3", None),
        ("replay:answers.jsonl", None),
    ],
)
def test_the_fewest_tokens_that_a_model_caches(model: str, tokens: int | None) -> None:
    assert find_fewest_tokens(ModelConfig(model=model)) == tokens


def test_the_rule_of_an_endpoint_of_ones_own_is_not_known() -> None:
    config = ModelConfig(model="openai:gpt-5", base_url="http://127.0.0.1:1/v1")
    assert find_fewest_tokens(config) is None
