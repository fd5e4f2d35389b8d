"""A target that a plugin answers for is asked as any other: schemas, failures and identity."""

import asyncio

import pytest

from coreeval.config import TargetConfig
from coreeval.config.plugins import PluginUse
from coreeval.errors import ConfigError, PluginError, PluginFailed
from coreeval.models import open_model, preflight
from coreeval.models.failures import CallFailure
from coreeval.models.model import Model, RequestOptions
from coreeval.tools.catalogs import find_price
from coreeval.tools.endpoints import model_pairs
from coreeval.tools.plugins import allow_plugin
from tests.support.plugins import Site, site

__all__ = ["site"]
ASKED = [{"role": "user", "content": "Which label?"}]
WORDS = RequestOptions(schema={}, name="words", max_tokens=50, draw=2)
SCHEMA = RequestOptions(schema={"type": "object"}, name="label", max_tokens=50)


def _open(site: Site, said: str, **settings: object) -> Model:
    """Return the model of a plugin that answers with an expression."""
    site.write(
        "target_of",
        "import asyncio\nfrom coreeval.plugins import TargetAnswer\nclass Target:\n"
        f"    plugin_api = 1\n    async def answer(self, request):\n        return {said}\n",
    )
    allow_plugin(PluginUse("targets", "target_of:Target"))
    return open_model(TargetConfig.model_validate({"model": NAME, **settings}), {})


NAME = "plugin:target_of:Target"
ALL = "TargetAnswer(repr(request.model_dump()), 'length', 7, 3)"


def test_a_request_and_its_answer(site: Site) -> None:
    model = _open(site, ALL, temperature=0.5, seed=3, extra={"word": "yes"})
    said = asyncio.run(model.chat.answer(ASKED, WORDS))
    assert said.content == repr(
        {
            "messages": tuple(ASKED),
            "max_tokens": 50,
            "temperature": 0.5,
            "seed": 3,
            "draw": 2,
            "options": {"word": "yes"},
        }
    )
    assert said.response_metadata["finish_reason"] == "length"
    assert said.usage_metadata and said.usage_metadata["total_tokens"] == 10
    assert "method" not in said.response_metadata


def test_a_schema_is_told_in_words(site: Site) -> None:
    model = _open(site, "TargetAnswer(request.messages[0]['content'])")
    said = asyncio.run(model.chat.answer(ASKED, SCHEMA))
    assert str(said.content).startswith("Which label?") and '{"type":"object"}' in said.content
    assert said.response_metadata["method"] == "text"


def test_answers_of_changed_code_are_not_those_in_the_store(site: Site) -> None:
    one, other = _open(site, ALL), _open(site, ALL + "  # changed")
    assert one.name == other.name == NAME
    assert one.identity.endpoint != other.identity.endpoint


def test_it_needs_no_key_and_has_no_price(site: Site) -> None:
    model = _open(site, ALL)
    preflight(model.config, {})
    assert list(model_pairs([model.config], None)) == []
    assert find_price(model.config, {}) is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("1 / 0", "failed in answer: ZeroDivisionError"),
        ("'yes'", r"must return TargetAnswer\(text="),
        ("TargetAnswer(1)", r"must return TargetAnswer\(text="),
        ("TargetAnswer('yes', 'tired')", r"must return TargetAnswer\(text="),
    ],
)
def test_a_target_that_fails_stops_the_run(site: Site, said: str, told: str) -> None:
    with pytest.raises(PluginFailed, match=told):
        asyncio.run(_open(site, said).chat.answer(ASKED, WORDS))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("open('/nowhere/at/all')", "No such file"),
        ("await asyncio.sleep(60)", "no answer within 0.05 s"),
    ],
)
def test_a_failure_that_may_pass_is_tried_again(site: Site, said: str, told: str) -> None:
    model = _open(site, said, timeout_s=0.05)
    with pytest.raises(CallFailure, match=told) as failure:
        asyncio.run(model.chat.answer(ASKED, WORDS))
    assert failure.value.retryable


@pytest.mark.parametrize("key", ["base_url", "reasoning_effort", "api_key_env"])
def test_settings_that_a_plugin_does_not_have(site: Site, key: str) -> None:
    value = {"base_url": "http://127.0.0.1/v1", "api_key_env": "OTHER_KEY"}.get(key, "low")
    with pytest.raises(ConfigError, match=f"a plugin does not support {key}"):
        _open(site, ALL, **{key: value})


def test_a_name_that_is_none(site: Site) -> None:
    with pytest.raises(ValueError, match="does not name a plugin"):
        TargetConfig(model="plugin:a b")
    with pytest.raises(PluginError, match="no installed package offers a plugin named 'nobody'"):
        open_model(TargetConfig(model="plugin:nobody"), {})
