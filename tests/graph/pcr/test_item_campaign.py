"""Asking about items below the command line: the paper's benchmarks, paraphrases, files."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from coreeval.config import TargetConfig
from coreeval.errors import ConfigError
from coreeval.evaluation.pcr.pairs_from_items import ItemAnswer, pair_answers
from coreeval.evaluation.pcr.study import PcrSettings, study
from coreeval.graph.campaign import file_names
from coreeval.graph.estimate.call_figures import STATED_BASIS
from coreeval.graph.estimate.pcr_lines import estimate_items
from coreeval.graph.pcr.item_campaign import ItemPlan, ask_items, build_item_plan
from coreeval.tools.embeddings import Vectors
from tests.evaluation.recorded import CAP, beside
from tests.support.llm_server import LLMServer, Request

NO_SCORES = PcrSettings(metric="", consistency="", draws=200)


def planned(folder: Path, settings: Mapping[str, object]) -> ItemPlan:
    """Return the plan of a config that differs from the usual one."""
    path = folder / "items.yaml"
    path.write_text(yaml.safe_dump({"name": "items", **settings}), encoding="utf-8")
    return build_item_plan(path, overrides=(), settings=NO_SCORES)


def predictions(folder: str) -> Iterator[tuple[str, str]]:
    """Yield what CAP's authors asked a model, and what it said."""
    for path in sorted((CAP / "predictions" / folder).glob("*.json.gz")):
        for row in json.loads(gzip.decompress(path.read_bytes())):
            yield row["input"], row["pred_output"]


def of_cap(tmp_path: Path, model: str) -> ItemPlan:
    """Return the plan of asking a recorded model what the authors asked it."""
    benchmark = model.partition("/")[0]
    answers = dict(reversed([*predictions(model)]))  # of equal questions the first counts
    lines = [
        {"messages": [{"role": "user", "content": text}], "schema": "plain", "content": said}
        for text, said in answers.items()
    ]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    folder = str(CAP / benchmark)
    return planned(
        tmp_path,
        {
            "dataset": {"format": benchmark, "path": folder},
            "models": {"targets": [f"replay:{file}"]},
            "detect": {"pcr": {"samples": 2000, "modified": folder}},
        },
    )


@beside
def test_finqa_asked_with_the_recorded_answers_is_the_paper(tmp_path: Path) -> None:
    plan = of_cap(tmp_path, "finqa/finma_full")
    found = ask_items(plan)
    (asked,) = found.asked.values()
    assert {name: each.compared for name, each in asked.splits.items()} == {
        "train": 500,
        "test": 500,
    }
    one = study({"x": asked.pairs}, plan.settings)["x"]
    numbers = [
        (round(each.performance, 4), round(each.consistency, 4), round(each.pcr.estimate, 3))
        for each in one.splits.values()
    ]
    assert numbers == [(0.2304, 0.7270, 0.315), (0.1084, 0.5706, 0.201)]
    assert one.verdict == "difficulty_or_memory"
    assert (one.splits["train"].clusters, one.splits["test"].clusters) == (463, 297)
    vouched = study({"x": asked.pairs}, replace(plan.settings, exchangeable=True))["x"]
    assert vouched.verdict == "fine_tuned"


@beside
@pytest.mark.parametrize(
    ("model", "performance", "consistency"),
    [
        ("gpt", (0, 0), (0.7706, 0.7489)),
        ("baichuan", (0.4235, 0.4544), (0.4765, 0.4674)),
    ],
)
def test_fineval_is_the_paper_but_for_letters_that_were_read_by_hand(
    tmp_path: Path, model: str, performance: tuple[float, float], consistency: tuple[float, float]
) -> None:
    plan = of_cap(tmp_path, f"fineval/{model}")
    answers = {text: ItemAnswer("answered", said) for text, said in predictions(f"fineval/{model}")}
    one = study({"x": pair_answers(plan.twins, answers).pairs}, plan.settings)["x"]
    found = list(one.splits.values())
    assert [each.n for each in found] == [170, 1151]
    assert [round(each.performance, 4) for each in found] == pytest.approx(performance, abs=1e-9)
    assert [each.consistency for each in found] == pytest.approx(consistency, abs=0.02)
    assert one.verdict == ("insufficient_signal" if model == "gpt" else "inconclusive")


@beside
@pytest.mark.parametrize(
    ("benchmark", "least"), [("fineval", 0.98), ("finqa", 0.95), ("alphafin", 0.5)]
)
def test_the_papers_benchmarks_can_be_modified_here(
    tmp_path: Path, benchmark: str, least: float
) -> None:
    (tmp_path / "none.jsonl").touch()
    models = {"targets": ["replay:none.jsonl"]}
    dataset = {"format": benchmark, "path": str(CAP / benchmark)}
    detect = {"pcr": {"samples": 200}}
    plan = planned(tmp_path, {"dataset": dataset, "models": models, "detect": detect})
    drawn = sum(len(each.drawn.items) for each in plan.twins)
    assert drawn == sum(min(200, each.drawn.total) for each in plan.twins)
    assert least * drawn < plan.items <= drawn
    assert all(each.identical_count == 0 for each in plan.twins)
    totals = estimate_items(plan).totals
    assert totals.calls.likely == 2 * plan.items and totals.usd is not None


# -- paraphrases ----------------------------------------------------------------------------------


class Near:
    """Embeds all texts alike, except those that speak of bread."""

    name = "near"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        return np.array([[1, "bread" in text] for text in texts], dtype=np.float32)


def rewords(request: Request) -> str:
    """Put an item into other words, or answer it."""
    messages: Any = request["messages"]
    if request["model"] != "rewriter":
        return "long" if messages[0]["content"].startswith("Say") else "short"
    block = messages[1]["content"].partition("<item>")[2].partition("</item>")[0]
    item = json.loads(block)["input"]
    return json.dumps({"input": f"{item} of bread" if "3" in item else f"Say: {item}"})


def plan_with_rewriter(
    folder: Path, server: LLMServer, *, run: Mapping[str, object] | None = None, **more: str
) -> ItemPlan:
    for split in ("train", "test"):
        items = [{"input": f"How long is {split} {n}?", "output": "short"} for n in range(10)]
        text = "\n".join(json.dumps(each) for each in items)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    rewriter = {"model": "openai:rewriter", "base_url": server.url}
    pcr = {"metric": "exact_match", "consistency": "exact", "modification": "paraphrase"}
    return planned(
        folder,
        {
            "dataset": {"format": "jsonl", "path": "."},
            "models": {
                "rewriter": rewriter,
                "targets": [{**rewriter, "model": "openai:target"}],
            },
            "detect": {"pcr": {**pcr, **more}},
            "run": dict(run or {}),
        },
    )


def test_a_providers_embeddings_are_counted_by_nothing(tmp_path: Path) -> None:
    budget = {"budget_usd": 5}
    with LLMServer(rewords).in_thread() as server:
        with pytest.raises(
            ConfigError, match="the cost of embeddings by ollama:nomic is not counted"
        ):
            plan_with_rewriter(tmp_path, server, run=budget, embeddings="ollama:nomic")
        allowed = {**budget, "allow_unpriced": True}
        plan = plan_with_rewriter(tmp_path, server, run=allowed, embeddings="ollama:nomic")
        notes = "\n".join(estimate_items(plan).notes)
        assert "which receives 20 items and every paraphrase of an item" in notes
        assert "embeddings" not in "".join(
            estimate_items(plan_with_rewriter(tmp_path, server)).notes
        )


def test_a_model_writes_the_twins_and_what_drifts_off_is_left_out(tmp_path: Path) -> None:
    with LLMServer(rewords).in_thread() as server:
        plan = plan_with_rewriter(tmp_path, server)
        roles = [line.role for line in estimate_items(plan).lines]
        assert roles == ["paraphraser", "target_text"]
        found = ask_items(plan, embeds=Near())
        asked = len(server.requests)
        assert ask_items(plan, embeds=Near()).asked == found.asked
        again = len(server.requests) - asked
        known = [line.rests_on["answers"].n for line in estimate_items(plan).lines]
        assert known[0] > 0 and known[1] == 18, "originals with a twin were asked"
        others = tuple(each.model_copy(update={"input": "Why?"}) for each in plan.drawn[0].items)
        elsewhere = replace(plan, drawn=(replace(plan.drawn[0], items=others),))
        assert estimate_items(elsewhere).lines[1].rests_on["answers"] == STATED_BASIS
    for twins in found.twins:
        assert len(twins.pairs) == 9 and len(twins.left_out) == 1
        assert "too far from the input" in next(iter(twins.reasons))
    (said,) = found.asked.values()
    assert len(said.pairs) == 18 and said.pairs[0].modified_output == "long"
    assert asked == 18 + 2 * 4 + 36 and not again


def test_names_of_files_are_safe_and_distinct() -> None:
    names = ["openai:a/b", "openai:a_b", "OPENAI:a.b", "openai:A.b", f"x:{'y' * 300}"]
    found = file_names([TargetConfig(model=name) for name in names])
    assert len({file.casefold() for file in found.values()}) == len(names)
    assert all(len(file) < 120 and "/" not in file and ":" not in file for file in found.values())
