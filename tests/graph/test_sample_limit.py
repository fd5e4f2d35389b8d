"""`run.max_usd_per_sample`: a sample beyond it makes no further call, and fails with the reason."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coreeval.config import Config
from coreeval.errors import ConfigError
from coreeval.graph.money import check_money, describe_sample_limit
from coreeval.graph.run import retry
from coreeval.models.sample_cost import (
    add_sample_cost,
    count_step_cost,
    find_overspent,
    has_spent_half,
    limit_sample_cost,
    share_cost,
)
from coreeval.schema import Result
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import CONCURRENCY, SAMPLES, Lab, Undisturbed, ended
from tests.support.llm_server import Reply, Request

PRICE = {"price": {"input": 0, "output": 1000}}
SMALL, LARGE = 1e-9, 1000.0


def limit(lab: Lab, usd: float | None) -> None:
    """Let the model cost something, and one sample no more than this."""
    model = {"model": "openai:scripted", "base_url": lab.server.url, **PRICE}
    said = {"concurrency": CONCURRENCY} | ({"max_usd_per_sample": usd} if usd else {})
    lab.write(models={"default": model}, run=said)


def test_a_sample_beyond_its_limit_makes_no_further_call(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    limit(lab, SMALL)
    lab.refresh()
    ended = lab.results()
    assert lab.manifest.status == "complete"
    for sample, result in ended.items():
        calls = [call for step in lab.steps(sample) for call in step.calls if not call.cached]
        assert len(calls) == 1, "its first call costs more than the limit"
        if result.outcome != "failed":
            assert result.outcome in {"unsafe", "label_unrecoverable"}
            continue
        assert result.reason.startswith("sample_budget: ")
        assert "USD spent (" in result.reason and "coreeval retry" in result.reason
    assert sum(result.outcome == "failed" for result in ended.values()) > len(ended) / 2


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1, "completion_tokens": 1}, "none"])
def test_calls_without_a_token_count_count_as_the_most_possible(lab: Lab, usage: object) -> None:
    async def answer(request: Request) -> Reply:
        said = await lab.answers(request)
        return (
            replace(said, usage=usage)
            if isinstance(said, Reply)
            else Reply(content=said, usage=usage)
        )

    limit(lab, SMALL)
    lab.server.answers = answer
    lab.refresh()
    assert sum(result.outcome == "failed" for result in lab.results().values()) > SAMPLES / 2
    assert set(paid(lab).values()) == {1}


def test_a_larger_limit_goes_on_from_the_kept_answers(lab: Lab, undisturbed: Undisturbed) -> None:
    limit(lab, SMALL)
    lab.refresh()
    answered = lab.answered()
    lab.forget()
    assert retry(lab.files.root).manifest.counts["failed"], "the answers of this run count again"
    assert lab.asked() == []
    limit(lab, LARGE)
    assert retry(lab.files.root).manifest.counts["failed"] == 0
    assert answered.isdisjoint(lab.asked())
    assert _safe(lab.results()) == _safe(undisturbed.results)
    assert lab.arms() == undisturbed.arms


def _safe(results: Mapping[str, Result]) -> dict[str, Result]:
    """Leave out unsafe samples, which stay so without a label: retry takes failed ones only."""
    return {one: result for one, result in results.items() if result.outcome != "unsafe"}


def test_answers_that_another_run_paid_for_fail_no_sample(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    limit(lab, None)
    lab.refresh("first")
    limit(lab, SMALL)
    lab.forget()
    lab.refresh("second")
    assert lab.asked() == []
    assert lab.results("second") == undisturbed.results


def paid(lab: Lab) -> dict[str, int]:
    """Return how many calls each sample has paid for, steps of an interrupted run included."""
    return {
        sample: sum(not call.cached for step in lab.steps(sample) for call in step.calls)
        for sample in lab.results()
    }


def test_the_parts_of_a_stopped_run_count_together(lab: Lab) -> None:
    limit(lab, None)
    lab.trap("rewrite", 3, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = lab.child("refresh")
    assert ended(child) == 130
    with RunStore.open(lab.files.store, now=utc_now) as store:
        begun = store.sample_ids()
    before = {one: sum(len(step.calls) for step in lab.steps(one)) for one in begun}
    assert any(before.values()), "nothing was asked before the stop: this test shows nothing"
    open_before = {one for one, calls in before.items() if calls} - set(lab.results())
    assert open_before
    limit(lab, SMALL)
    lab.resume()
    after = paid(lab)
    assert {one: after[one] for one in open_before} == {
        one: max(1, before[one]) for one in open_before
    }


def test_a_call_for_several_samples_counts_by_its_share() -> None:
    with limit_sample_cost(1.0), count_step_cost(0.0) as step:
        with share_cost(10):
            add_sample_cost(5.0)
        assert step == [0.5] and not find_overspent()
        add_sample_cost(0.6)
        assert find_overspent()
    assert find_overspent() is None


def test_what_earlier_steps_cost_counts_once() -> None:
    with limit_sample_cost(1.0):
        with count_step_cost(0.0):
            add_sample_cost(0.4)
        with count_step_cost(0.4):
            assert find_overspent() is None
    with limit_sample_cost(1.0), count_step_cost(1.1):
        assert find_overspent()


@pytest.fixture
def config() -> Iterator[dict[str, Any]]:
    yield {
        "name": "limits",
        "task": "emotion",
        "dataset": {"format": "jsonl", "path": "data.jsonl"},
        "knowledge": {"window": {"start": "2026-01-01", "end": "2026-02-01"}},
        "models": {"default": {"model": "openai:x", "max_tokens": 1000, **PRICE}},
        "run": {"max_usd_per_sample": 0.5},
    }


def test_a_limit_that_one_answer_may_exceed_is_told(config: dict[str, Any]) -> None:
    (told,) = describe_sample_limit(Config.model_validate(config))
    assert "openai:x" in told and "may cost 1.0000 USD, which is more than 0.5000" in told
    config["run"] = {"max_usd_per_sample": 1.5}
    assert describe_sample_limit(Config.model_validate(config)) == []


def test_a_limit_needs_prices(config: dict[str, Any], tmp_path: Path) -> None:
    config["models"] = json.loads(json.dumps({"default": "openai:nobody-knows"}))
    found = Config.model_validate(config)
    models = [found.models.for_role("composer")]
    with pytest.raises(ConfigError, match="price of openai:nobody-knows") as caught:
        check_money(found, models)
    assert caught.value.where == "run.max_usd_per_sample"
    config["run"]["allow_unpriced"] = True
    check_money(Config.model_validate(config), models)


def test_half_of_the_limit_is_for_the_first_attempt() -> None:
    assert not has_spent_half(), "no sample is being worked on"
    with limit_sample_cost(1.0):
        add_sample_cost(0.5)
        assert not has_spent_half()
        add_sample_cost(0.1)
        assert has_spent_half() and find_overspent() is None
    with limit_sample_cost(None):
        add_sample_cost(LARGE)
        assert not has_spent_half()
