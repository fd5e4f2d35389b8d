"""docs/models.md says what is so."""

import re
from pathlib import Path

from coreeval.agents.team import LLM_ROLES
from coreeval.config import ModelConfig
from coreeval.models import PROVIDERS
from coreeval.prompts import load_prompts
from coreeval.tasks import load_task
from tests.agents.llm.support import ScriptedClient, new_store

DOCS = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def test_every_key_and_provider_is_described() -> None:
    described = set(re.findall(r"`(\w+)`", DOCS))
    assert set(ModelConfig.model_fields) - described == {"model"}
    assert all(f"`{provider}:" in DOCS for provider in PROVIDERS)


def test_the_names_of_the_schemas(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    task, prompts = load_task("emotion"), load_prompts()
    for role in LLM_ROLES.values():
        output_schema = vars(role(task, ScriptedClient(store), prompts))["_schema"]
        assert f"`{output_schema.name}`" in DOCS
    store.close()
