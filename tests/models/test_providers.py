"""Opening models by name, for all roles, and checking them before anything is paid."""

import subprocess
import sys

import pytest

from coreeval.config import ModelConfig, ModelsConfig
from coreeval.errors import ConfigError, CredentialError, ModelUnusable
from coreeval.models import open_model, preflight
from coreeval.tools.stores.call_store import CallStore
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer


@pytest.mark.parametrize("model", ["gpt-x", "openai:", "offline", ""])
def test_what_names_no_model_is_told_how_one_is_written(model: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(ModelConfig(model=model), {})
    assert "openai" in caught.value.hint and "replay:" in caught.value.hint
    assert repr(model) in caught.value.message


def test_each_role_has_its_own_model_and_offline_roles_have_none(store: CallStore) -> None:
    models = ModelsConfig.model_validate(
        {
            "default": {"model": "openai:a", "base_url": "http://127.0.0.1:9/v1"},
            "label_judge": {"model": "openai:b", "base_url": "http://127.0.0.1:9/v1"},
            "extractor": "offline",
        }
    )
    askers = exchange(store).askers(models)
    assert {role: asker.model.name for role, asker in askers.items()} == {
        "replacer": "openai:a",
        "rewriter": "openai:a",
        "composer": "openai:a",
        "fact_judge": "openai:a",
        "label_judge": "openai:b",
    }
    assert askers["composer"].role == "composer"


async def test_preflight_is_free(server: LLMServer) -> None:
    preflight(ModelConfig(model="openai:m", base_url=server.url), {})
    assert server.requests == []


def test_preflight_says_what_is_not_there() -> None:
    with pytest.raises(ModelUnusable, match=r"127\.0\.0\.1:9") as caught:
        preflight(ModelConfig(model="openai:m", base_url="http://127.0.0.1:9/v1"), {})
    assert caught.value.hint
    with pytest.raises(CredentialError):
        preflight(ModelConfig(model="openai:m"), {})


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "http://x:notaport/", "ftp://x"])
def test_preflight_refuses_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match="no http address"):
        preflight(ModelConfig(model="openai:m", base_url=url), {})


def test_opening_nothing_imports_no_sdk() -> None:
    code = "import sys, coreeval.models; print({'openai', 'langchain_core'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
