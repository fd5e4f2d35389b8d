"""Keys: from the right variable, whole or not at all, never shown."""

import pytest

from coreeval.config import ModelConfig
from coreeval.errors import CredentialError
from coreeval.models.model import NO_KEY, find_api_key

PUBLIC = ModelConfig(model="openai:m")
OWN = ModelConfig(model="openai:m", base_url="http://127.0.0.1:9/v1")
NAMED = ModelConfig(model="openai:m", api_key_env="MY_KEY")


@pytest.mark.parametrize(
    ("config", "env", "key"),
    [
        (PUBLIC, {"OPENAI_API_KEY": "sk-1", "MY_KEY": "sk-2"}, "sk-1"),
        (NAMED, {"OPENAI_API_KEY": "sk-1", "MY_KEY": "sk-2"}, "sk-2"),
        (ModelConfig(model="mistral:m"), {"MISTRAL_API_KEY": "m-1"}, "m-1"),
        (PUBLIC, {"OPENAI_API_KEY": "\tsk-1\r\n"}, "sk-1"),
        (OWN, {"OPENAI_API_KEY": "sk-1"}, "sk-1"),
        (OWN, {}, NO_KEY),
        (OWN, {"OPENAI_API_KEY": " "}, NO_KEY),
    ],
)
def test_where_a_key_comes_from(config: ModelConfig, env: dict[str, str], key: str) -> None:
    assert find_api_key(config, env) == key


@pytest.mark.parametrize(
    ("config", "env", "named"),
    [
        (PUBLIC, {}, "OPENAI_API_KEY"),
        (PUBLIC, {"OPENAI_API_KEY": " \n"}, "OPENAI_API_KEY"),
        (NAMED, {"OPENAI_API_KEY": "sk-1"}, "MY_KEY"),
    ],
)
def test_a_public_endpoint_needs_one(config: ModelConfig, env: dict[str, str], named: str) -> None:
    with pytest.raises(CredentialError, match=f"{named} is not set") as caught:
        find_api_key(config, env)
    assert named in caught.value.where and ".env" in caught.value.hint


@pytest.mark.parametrize("config", [PUBLIC, OWN])
@pytest.mark.parametrize(
    "key", ["sk-caf\u00e9", "sk-a\nsk-b", "sk-a sk-b", "\u201csk-a\u201d", "sk-\x00a", "sk-\x7fa"]
)
def test_what_cannot_be_sent_is_refused_and_not_shown(config: ModelConfig, key: str) -> None:
    with pytest.raises(CredentialError, match="OPENAI_API_KEY") as caught:
        find_api_key(config, {"OPENAI_API_KEY": key})
    assert key not in str(caught.value) and caught.value.__context__ is None
