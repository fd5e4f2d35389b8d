"""The lean pipeline: the extractor rewords and the replacer writes, in one call each."""

from collections import Counter
from pathlib import Path

import pytest

from coreeval.errors import UsageError
from coreeval.prompts import load_prompts
from tests.graph.kit import SAMPLES, Lab, Undisturbed, config_of

LEAN = {"run": {"pipeline": "lean", "concurrency": 4}}


def test_the_lean_pipeline_asks_less_and_writes_the_same_arms(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    lab.write(**LEAN)
    lab.refresh()
    shapes, full = Counter(lab.asked_shapes()), Counter(undisturbed.shapes)
    assert {"extraction", "plan"}.isdisjoint(shapes)
    assert shapes["extraction_and_rewrite"] == SAMPLES
    assert shapes["rewrite"] < full["rewrite"] and shapes["composition"] < full["composition"]
    assert shapes.total() < full.total() - SAMPLES
    results = lab.results()
    accepted = {known for known, result in results.items() if result.outcome == "accepted"}
    assert accepted and all(results[known].facts for known in accepted)
    assert {"semantic", "updated"} <= lab.arms().keys()
    assert {row["id"] for row in lab.arms()["updated"]} == accepted


def test_a_text_with_a_defect_goes_to_the_composer(lab: Lab) -> None:
    lab.write(**LEAN)
    lab.refresh()
    attempts = {result.attempts for result in lab.results().values()}
    assert Counter(lab.asked_shapes())["composition"] > 0
    assert max(attempts) > 1


def test_a_resumed_lean_run_asks_nothing_twice(lab: Lab) -> None:
    lab.write(**LEAN)
    lab.refresh()
    first = len(lab.asked())
    lab.forget()
    lab.refresh("again")
    assert first and lab.asked() == []


@pytest.mark.parametrize("role", ["rewriter", "composer"])
def test_two_models_cannot_share_one_call(lab: Lab, role: str) -> None:
    models = _models(lab)
    lab.write(**LEAN, models=models | {role: {"model": "openai:other", "base_url": "http://x/v1"}})
    with pytest.raises(UsageError) as caught:
        lab.refresh()
    assert role in caught.value.args[0] and "run.pipeline: full" in caught.value.hint


@pytest.mark.parametrize("role", ["extractor", "rewriter", "label_judge"])
def test_rules_cannot_play_a_role_of_the_lean_pipeline(lab: Lab, role: str) -> None:
    lab.write(**LEAN, models=_models(lab) | {role: {"model": "offline"}})
    with pytest.raises(UsageError, match=f"the lean pipeline needs a model for {role}\n") as caught:
        lab.refresh()
    assert "run.pipeline: full" in caught.value.hint


def _models(lab: Lab) -> dict[str, object]:
    models = config_of(lab.server.url)["models"]
    assert isinstance(models, dict)
    return models


def test_a_prompt_of_the_user_is_not_passed_over(lab: Lab, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "composer.md").write_text(load_prompts()["composer"].text)
    lab.write(**LEAN, prompts=str(own))
    with pytest.raises(UsageError) as caught:
        lab.refresh()
    assert "replacer_composer_tweet.md" in caught.value.hint
