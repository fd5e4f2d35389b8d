"""`coreeval models check`: one table for all models, and an exit code."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from coreeval.tools.stores.call_store import open_calls
from tests.cli.kit import Shell
from tests.cli.test_docs import documented
from tests.support.crippled import complete, modern, prose_only, tools_only
from tests.support.llm_server import Answers, LLMServer, Reply, refused, script

KEY = "sk-do-not-show-this-4711"
ENDPOINTS: dict[str, Answers] = {
    "extractor": complete,
    "replacer": tools_only,
    "rewriter": prose_only,
    "composer": modern,
    "fact_judge": script(refused(401, f"Incorrect API key provided: {KEY}")),
    "label_judge": script(Reply(body="<html>It works!</html>")),
}


@pytest.fixture
def urls() -> Iterator[dict[str, str]]:
    """Serve a model for each role, each lacking something else."""
    with ExitStack() as stack:
        yield {
            role: stack.enter_context(LLMServer(answers).in_thread()).url
            for role, answers in ENDPOINTS.items()
        }


@pytest.fixture
def mixed(shell: Shell, urls: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a config with good and bad models."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    roles = {role: {"model": f"openai:{role}", "base_url": url} for role, url in urls.items()}
    gone = {"model": "openai:gone", "base_url": "http://127.0.0.1:9/v1", "cutoff": "2026-03-01"}
    targets = [gone, "offline:classifier"]
    return shell.config({"models": {"default": "offline", **roles, "targets": targets}})


def usable(shell: Shell, url: str) -> Path:
    """Write a config with one priced model for everything."""
    model = {"model": "openai:one", "base_url": url, "price": {"input": 1, "output": 2}}
    return shell.config({"models": {"default": model, "targets": [{**model, "cutoff": None}]}})


def test_every_model_is_in_the_table_whatever_the_others_do(shell: Shell, mixed: Path) -> None:
    said = shell("models", "check", mixed)
    assert said.code == 1
    table = [line.split() for line in said.out.partition("\n--")[0].splitlines()]
    assert [line[:3] for line in table[1:]] == [
        ["openai:extractor", "ok", "json_schema"],
        ["openai:replacer", "ok", "function_calling"],
        ["openai:rewriter", "ok", "text"],
        ["openai:composer", "ok", "json_schema"],
        ["openai:fact_judge", "NOT", "usable"],
        ["openai:label_judge", "NOT", "usable"],
        ["openai:gone", "NOT", "usable"],
        ["offline:classifier", "rules", "target"],
    ]
    assert "3 of 8 models cannot be used" in said.out
    assert "log-probabilities: ignored" in said.out and "log-probabilities: no: " in said.out
    assert "answer length limit: sent as max_completion_tokens" in said.out
    assert (
        "token counts: not reported" in said.out
        and "the answer includes reasoning, which is ignored" in said.out
    )
    assert "price: unknown; cutoff: 2026-03-01 (config); released: unknown" in said.out
    assert "put a valid key in the environment variable OPENAI_API_KEY" in said.out
    assert KEY not in said.out + said.err


def test_the_document_has_what_was_found(shell: Shell, mixed: Path) -> None:
    said = shell("models", "check", mixed, "--json")
    assert (said.code, said.err) == (1, "")
    document = said.document
    assert set(document) == documented("coreeval models check")
    found = {one["model"]: one for one in document["models"]}
    assert len({tuple(one) for one in map(sorted, found.values())}) == 1
    assert not document["ok"]
    assert found["openai:composer"]["limit"] == "max_completion_tokens"
    assert found["openai:composer"]["returned"] == "composer-2026-01"
    assert found["openai:rewriter"]["tried"][0]["outcome"] == "ignored"
    assert found["openai:extractor"]["logprobs"] == {"verdict": "yes", "why": ""}
    assert found["openai:label_judge"]["error"]["kind"] == "model"
    assert found["openai:label_judge"]["structured"] is None
    assert document["cost"]["usd"] is None


def test_a_model_that_can_be_used(shell: Shell, urls: dict[str, str]) -> None:
    config = usable(shell, urls["replacer"])
    said = shell("models", "check", config)
    assert said.code == 0
    assert "every role, target" in said.out and "every model can be used" in said.out
    assert (
        "price in USD per million tokens: 1 in, 2 out (config); cutoff: unknown; released"
        in said.out
    )
    assert "the check: 3 answers for 0.000" in said.out
    document = shell("models", "check", config, "--json").document
    assert document["ok"] and document["cost"]["usd"] > 0
    assert document["models"][0]["price"] == {
        "source": "config",
        "as_of": None,
        "input": 1.0,
        "output": 2.0,
    }


def test_what_was_found_is_remembered_in_the_workspace(shell: Shell, urls: dict[str, str]) -> None:
    shell("models", "check", usable(shell, urls["replacer"]))
    store = open_calls(shell.folder / ".coreeval" / "calls.db")
    assert store.ability(urls["replacer"], "one")["useless"] == "json_schema"
    assert list(store.records()) == []
    store.close()


def test_a_config_without_models_to_ask(shell: Shell) -> None:
    said = shell("models", "check", shell.config())
    assert said.code == 0
    assert "offline" in said.out and "rules" in said.out and "every role" in said.out


def test_settings_come_over_those_of_the_config(shell: Shell, urls: dict[str, str]) -> None:
    value = json.dumps({"model": "openai:two", "base_url": urls["extractor"]})
    said = shell("models", "check", shell.config(), "--set", f"models.default={value}", "--json")
    assert [one["model"] for one in said.document["models"]] == ["openai:two"]


@pytest.mark.parametrize("text", ["models: 3", yaml.safe_dump({"modles": {}}), ""])
def test_a_config_that_is_wrong_is_wrong_usage(shell: Shell, text: str) -> None:
    assert shell("models", "check", shell.write("bad.yaml", text)).code == 2
    assert shell("models", "check", "gone.yaml", "--json").error["kind"] == "config"
