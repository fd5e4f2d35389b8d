"""`coreeval estimate`: what a run will cost, held against what it then costs."""

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from coreeval.cli import main
from coreeval.config import ROLES, load_config
from coreeval.errors import Interrupted
from coreeval.graph.estimate import history
from coreeval.graph.estimate.model import (
    CostEstimate,
    find_estimate,
    measure_error,
    read_estimate,
    save_estimate,
)
from coreeval.graph.estimate.preview import preview
from coreeval.graph.execute import RunHooks
from coreeval.graph.monitor import Progress
from coreeval.models.replay import write_answers
from coreeval.prompts import load_prompts
from coreeval.runs.manifest import read_manifest
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import Workspace
from tests.cli.kit import CONFIG, DEMO, Said, Shell
from tests.cli.test_docs import documented
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer, Reply, Request

PRICE = {"input": 2.0, "output": 8.0}
SAMPLES = 24
"""Of the demo's emotion benchmark."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineAnswers]:
    """Give the rules' answers to the six roles and to targets."""
    folder = tmp_path_factory.mktemp("served")
    config = folder / "any.yaml"
    config.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    answers = OfflineAnswers(load_config(config), folder)
    yield answers
    answers.close()


@pytest.fixture(scope="module")
def server(answers: OfflineAnswers) -> Iterator[LLMServer]:
    """Serve them."""
    with LLMServer(answers).in_thread() as server:
        yield server


@pytest.fixture
def served(shell: Shell, server: LLMServer) -> Path:
    """Return a config whose models are served; requests are counted anew."""
    server.requests.clear()
    return shell.config({"models": models_at(server)})


def models_at(server: LLMServer) -> dict[str, object]:
    """Return models for a config: one, priced, in all roles, and a target."""
    return {
        "default": {"model": "openai:good", "base_url": server.url, "price": PRICE},
        "targets": [{"model": "openai:tested", "base_url": server.url, "price": PRICE}],
    }


@dataclass(frozen=True)
class Story:
    """An estimate, the run that it was of, and another estimate after it."""

    folder: Path
    before: dict[str, Any]
    left: set[str]
    """What the first estimate left in the workspace."""
    asked: int
    """Requests that it sent."""
    run: Path
    cost: dict[str, Any]
    after: dict[str, Any]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, server: LLMServer) -> Story:
    """Return what the commands said that were called in turn; only to look at."""
    folder = tmp_path_factory.mktemp("story")
    config = folder / "trial.yaml"
    config.write_text(yaml.safe_dump(CONFIG | {"models": models_at(server)}), encoding="utf-8")
    sent = len(server.requests)
    before = called("estimate", config)
    left = {path.name for path in (folder / ".coreeval").iterdir()}
    asked = len(server.requests) - sent
    run = called("refresh", config)
    return Story(
        folder, before, left, asked, Path(run["run"]), run["cost"], called("estimate", config)
    )


def called(*arguments: str | Path) -> dict[str, Any]:
    """Return the document that a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main([*map(str, arguments), "--json"]) == 0
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def workspace(shell: Shell) -> Workspace:
    return Workspace(shell.folder / ".coreeval")


def lies_inside(figures: dict[str, float], actual: float) -> bool:
    return figures["low"] <= actual <= figures["high"]


def bases(document: dict[str, Any], figure: str) -> dict[str, str]:
    """Return what a figure of each role was taken from."""
    return {line["role"]: line["rests_on"][figure]["origin"] for line in document["lines"]}


# -- before and after a run -----------------------------------------------------------------------


def test_nothing_is_asked_and_only_the_estimate_is_kept(story: Story) -> None:
    assert story.asked == 0
    assert story.left == {"estimates", "gdelt"}
    assert set(story.before) == documented("coreeval estimate")
    assert story.before["samples"] == story.before["to_pay"] == SAMPLES
    assert [line["role"] for line in story.before["lines"]] == [*ROLES, "target"]
    # the originals at least, with three templates
    assert story.before["lines"][-1]["calls"]["low"] >= 3 * SAMPLES
    kept = read_estimate(Workspace(story.folder / ".coreeval"), "trial")
    assert kept and kept.model_dump(mode="json") == story.after


def test_a_first_estimate_rests_on_prompts_and_on_what_is_stated(story: Story) -> None:
    rendered = {"rendered with samples of the benchmark"}
    assert set(bases(story.before, "prompts").values()) == rendered
    for figure in ("calls", "tokens", "answers", "seconds"):
        assert set(bases(story.before, figure).values()) == {"stated default"}


def test_a_first_estimate_holds_what_the_run_costs(story: Story) -> None:
    totals, cost = story.before["totals"], story.cost
    assert lies_inside(totals["calls"], cost["billed_calls"])
    assert lies_inside(totals["prompt_tokens"], cost["prompt_tokens"])
    assert lies_inside(totals["completion_tokens"], cost["completion_tokens"])
    paid = cost["prompt_tokens"] * PRICE["input"] + cost["completion_tokens"] * PRICE["output"]
    assert lies_inside(totals["usd"], paid / 1e6)


def test_the_error_of_an_estimate_is_told_of_the_run_that_it_was_of(
    story: Story, tmp_path: Path
) -> None:
    manifest = read_manifest(story.run / "manifest.json")
    assert find_estimate(manifest) is None, "the estimate that is kept was made after the run"
    of_before = CostEstimate.model_validate(story.before)
    save_estimate(Workspace(tmp_path), of_before)
    moved = manifest.model_copy(update={"workspace": str(tmp_path)})
    assert find_estimate(moved) == of_before
    assert all(miss.inside for miss in measure_error(of_before, manifest.cost).misses)
    fewer = moved.model_copy(update={"counts": manifest.counts | {"total": 3}})
    assert find_estimate(fewer) is None


def test_a_run_teaches_the_next_estimate(story: Story) -> None:
    (origin,) = set(bases(story.after, "calls").values())
    assert origin.startswith("samples of the run trial/")
    for figure in ("tokens", "answers", "seconds"):
        learnt = {"recorded calls of the model in this role"}
        assert set(bases(story.after, figure).values()) == learnt
    for figure in ("calls", "prompt_tokens", "completion_tokens", "usd"):
        first, then = story.before["totals"][figure], story.after["totals"][figure]
        assert then["high"] - then["low"] < (first["high"] - first["low"]) / 3
    for figure, name in (("calls", "billed_calls"), ("prompt_tokens", "prompt_tokens")):
        likely = story.after["totals"][figure]["likely"]
        assert likely == pytest.approx(story.cost[name], rel=0.1)
    assert any("already answered" in note for note in story.after["notes"])


def test_another_model_is_estimated_by_what_is_known_of_this_one(
    shell: Shell, served: Path
) -> None:
    shell("refresh", served, "--limit", "6")
    document = shell("estimate", served, "--set", "models.default=openai:new", "--json").document
    tokens = bases(document, "tokens")
    assert tokens["composer"] == tokens["extractor"] == "recorded calls of other models"
    assert bases(document, "seconds")["composer"] == "stated default"
    assert tokens["target"] == "recorded calls of the model in this role"


def test_runs_of_another_task_teach_no_length_of_answers(
    shell: Shell, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_CALLS", 9)
    shell("refresh", served, "--limit", "3")
    other: tuple[str, ...] = ("--set", "task=irony", "--set", f"dataset.path={DEMO / 'irony'}")
    document = shell("estimate", served, *other, "--json").document
    assert set(bases(document, "answers").values()) == {"stated default"}
    learnt = {"recorded calls of the model in this role"}
    assert set(bases(document, "tokens").values()) == learnt

    shell("refresh", served, *other, "--limit", "3")
    for arguments in ((), other):  # the newest calls of a task do not hide those of the other
        found = bases(shell("estimate", served, *arguments, "--json").document, "answers")
        assert {found["target"]} == learnt


def test_fewer_samples_cost_less(shell: Shell) -> None:
    models = {"default": "offline", "label_judge": "openai:gpt-5", "extractor": "openai:gpt-5"}
    config = shell.config({"models": models})
    document = shell("estimate", config, "--limit", "6", "--json").document
    whole = shell("estimate", config, "--json").document
    assert document["samples"] == 6
    assert 4 * document["totals"]["calls"]["likely"] == pytest.approx(
        whole["totals"]["calls"]["likely"], abs=4
    )


def test_what_cannot_be_read_of_earlier_runs_is_passed_over(shell: Shell) -> None:
    for name, text in (("a", "{"), ("b", "{}")):
        run = workspace(shell).runs / "trial" / name
        run.mkdir(parents=True)
        (run / "manifest.json").write_text(text, encoding="utf-8")
    config = shell.config({"models": {"default": "offline", "extractor": "openai:gpt-5"}})
    said = shell("estimate", config, "--json")
    assert said.code == 0
    assert bases(said.document, "calls") == {"extractor": "stated default"}


def test_roles_of_summaries_answer_at_greater_length(shell: Shell) -> None:
    model = {"model": "openai:good", "price": PRICE}
    reports: dict[str, object] = {
        "task": str(DEMO / "reports" / "task.yaml"),
        "dataset": {"format": "jsonl", "path": str(DEMO / "reports")},
        "models": {"default": model},
    }
    per_call = {}
    for name, changes in (("labels", {"models": {"default": model}}), ("summary", reports)):
        document = shell("estimate", shell.config(changes), "--limit", "8", "--json").document
        for line in document["lines"]:
            answers, calls = (line[one]["likely"] for one in ("completion_tokens", "calls"))
            per_call[name, line["role"]] = answers / calls
    assert per_call["labels", "extractor"] == pytest.approx(300, rel=0.05)
    assert per_call["summary", "extractor"] == pytest.approx(800, rel=0.05)


# -- money ----------------------------------------------------------------------------------------


def test_a_model_without_a_price_is_unknown_and_never_nothing(shell: Shell) -> None:
    models = {"default": "offline", "extractor": "openai:gpt-5-min"}
    config = shell.config({"models": models, "run.budget_usd": 5})
    document = shell("estimate", config, "--json").document
    assert document["totals"]["usd"] is None
    assert document["budget"] == {"usd": 5.0, "likely": None, "high": None}
    (unpriced,) = document["unpriced"]
    assert (unpriced["model"], unpriced["nearest"][0]) == ("openai:gpt-5-min", "openai:gpt-5-mini")
    words = shell("estimate", config).out
    assert "USD                        unknown" in words
    assert "; similar names with a price: openai:gpt-5-mini" in words
    assert "unknown because a price is missing" in words


@pytest.mark.parametrize(
    ("budget", "told"), [(0.0001, "not enough"), (99, "sufficient, even for the high estimate")]
)
def test_a_budget_is_held_against_the_estimate(shell: Shell, budget: float, told: str) -> None:
    config = shell.config({"models": {"default": "offline", "extractor": "openai:gpt-5"}})
    said = shell("estimate", config, "--limit", "2", "--set", f"run.budget_usd={budget}")
    assert f"USD: {told}" in said.out


def test_the_table_and_a_file_of_prices_are_named(shell: Shell) -> None:
    mine = "openai:gpt-5: {input: 1, output: 2, as_of: 2026-01-01, source: my contract}\n"
    prices = shell.write("prices.yaml", mine)
    config = shell.config({"models": {"default": "offline", "composer": "openai:gpt-5"}})
    table = shell("estimate", config, "--json").document
    own = shell("estimate", config, "--set", f"run.prices={prices}", "--json").document
    assert table["lines"][0]["price"].startswith("https://")
    assert own["lines"][0]["price"] == "my contract, 2026-01-01"
    assert own["totals"]["usd"]["likely"] < table["totals"]["usd"]["likely"]


def test_what_comes_from_the_provider_s_cache_is_expected_by_its_rule(shell: Shell) -> None:
    judge_model = "anthropic:claude-opus-4-7"  # caches from 2,048 tokens on
    models = {"default": "offline", "composer": "openai:gpt-5.5", "label_judge": judge_model}
    config = shell.config({"models": models, "run.concurrency": 2})
    document = shell("estimate", config, "--json").document
    lines = {line["role"]: line for line in document["lines"]}
    composer, judge = lines["composer"]["cached_tokens"], lines["label_judge"]["cached_tokens"]
    assert (composer["low"], judge["likely"]) == (0, 0), "its instructions are too short"
    assert composer["likely"] == document["totals"]["cached_tokens"]["likely"] > 0
    share = composer["likely"] / lines["composer"]["prompt_tokens"]["likely"]
    words = shell("estimate", config).out
    assert f" {share:.0%} " in next(line for line in words.splitlines() if "composer" in line)
    assert "  from caches" in words


def test_batches_are_held_against_live_calls(shell: Shell) -> None:
    roles = {"default": "offline", "composer": "openai:gpt-5", "replacer": "openai:gpt-6.1-terra"}
    config = shell.config({"models": roles})
    document = shell("estimate", config, "--json").document
    batch, live = document["batch"], document["totals"]["usd"]
    assert batch["unpriced"] == ["openai:gpt-6.1-terra"]
    assert 0 < batch["usd"]["likely"] < live["likely"]
    assert batch["seconds"]["low"] > 6 * 15 * 60
    words = shell("estimate", config).out
    assert "USD, in batches" in words and "time, in batches" in words
    assert "sent individually, because there is no batch price: openai:gpt-6.1-terra" in words
    plain = shell("estimate", shell.config({"models": {"default": "offline"}}))
    assert "batches" not in plain.out


def test_rules_cost_nothing(shell: Shell) -> None:
    said = shell("estimate", shell.config(), "--json")
    document = said.document
    assert document["lines"] == []
    assert document["totals"]["usd"] == {"low": 0, "likely": 0, "high": 0}
    assert any("played by rules" in note for note in document["notes"])
    assert "nothing was spent" in shell("estimate", shell.config()).out


def test_recorded_answers_cost_nothing(shell: Shell, served: Path) -> None:
    shell("refresh", served, "--limit", "3")
    store = open_calls(workspace(shell).calls)
    try:
        write_answers(store.records(), shell.folder / "answers.jsonl", model="openai:good")
    finally:
        store.close()
    config = shell.config({"models": {"default": "replay:answers.jsonl"}})
    document = shell("estimate", config, "--json").document
    assert document["totals"]["calls"]["likely"] > 0
    assert document["totals"]["usd"]["high"] == 0
    assert {line["price"] for line in document["lines"]} == {"recorded answers cost nothing"}


# -- what prompts are rendered on -----------------------------------------------------------------


def test_without_news_the_bundled_demo_stands_in(shell: Shell) -> None:
    changes: dict[str, object] = {"models": {"default": "openai:gpt-5"}}
    config = shell.config(changes | {"knowledge.path": str(shell.folder / "none")})
    prompts = bases(shell("estimate", config, "--json").document, "prompts")
    own = {role for role, origin in prompts.items() if origin.endswith("of the benchmark")}
    assert own == {"extractor", "label_judge"}
    assert prompts["composer"] == "rendered with samples of the bundled demo"


def test_without_news_the_way_to_it_comes_before_the_run(shell: Shell) -> None:
    changes: dict[str, object] = {"models": {"default": "offline"}}
    served = shell.config(changes)
    said = shell("estimate", served, "--limit", "2").out
    assert (
        said.endswith(f"\nnext: coreeval refresh {served.name} --limit 2\n")
        and "then: " not in said
    )
    config = shell.config(changes | {"knowledge.path": None})
    said = shell("estimate", config, "--limit", "2").out
    assert (
        "there is no news yet; next: run in the folder of the config: coreeval gdelt sync" in said
    )
    assert (
        said.endswith(f"\nthen: coreeval refresh {config.name} --limit 2\n")
        and "\nnext:" not in said
    )
    missing = shell("estimate", config, "--limit", "2", "--json").document["missing_news"]
    assert missing["message"] == "there is no news yet" and "gdelt sync" in missing["to_do"]


@pytest.mark.parametrize("task", ["irony", "stance", "mrpc", "rte"])
def test_every_bundled_task_can_stand_in(shell: Shell, task: str) -> None:
    target = {"target": "climate"} if task == "stance" else {}
    hub = {"format": "hf", "path": "somebody/something", **target}
    models = {"default": "offline", "fact_judge": "openai:gpt-5"}
    config = shell.config({"task": task, "dataset": hub, "models": models})
    document = shell("estimate", config, "--limit", "10", "--json").document
    assert document["samples"] == 10
    (line,) = document["lines"]
    assert line["rests_on"]["prompts"]["origin"] == "rendered with samples of the bundled demo"
    assert line["rests_on"]["prompts"]["n"] >= 3


def test_a_hub_s_dataset_is_not_downloaded_to_be_counted(shell: Shell) -> None:
    hub = {"format": "hf", "path": "somebody/something"}
    said = shell("estimate", shell.config({"dataset": hub}), "--json")
    assert said.code == 2
    assert "downloads nothing" in said.error["message"]
    assert "--limit N" in said.error["hint"]


def test_own_prompts_are_the_ones_that_are_measured(shell: Shell) -> None:
    config = shell.config({"models": {"default": "offline", "extractor": "openai:gpt-5"}})
    before = shell("estimate", config, "--json").document["totals"]["prompt_tokens"]["likely"]
    own = shell.folder / "own"
    own.mkdir()
    text = load_prompts()["extractor"].text
    (own / "extractor.md").write_text("Be brief. " * 400 + text, encoding="utf-8")
    after = shell("estimate", config, "--set", f"prompts={own}", "--json").document
    more = after["totals"]["prompt_tokens"]["likely"] - before
    assert more == pytest.approx(SAMPLES * 4000 / 4, rel=0.1)


def test_stance_is_counted_by_target(shell: Shell) -> None:
    stance = {"format": "tweeteval", "path": str(DEMO / "stance"), "target": "all"}
    config = shell.config({"task": "stance", "dataset": stance})
    document = shell("estimate", config, "--json").document
    assert document["by_target"]
    assert sum(document["by_target"].values()) == document["samples"]


def test_a_part_of_a_benchmark_is_estimated_as_it_is_refreshed(shell: Shell) -> None:
    config = shell.config()
    said = shell("estimate", config, "--limit", "5", "--sample", "random", "--label", "joy")
    assert "trial: 5 samples" in said.out
    assert said.out.endswith(
        f"next: coreeval refresh {config.name} --limit 5 --sample random --label joy\n"
    )
    beyond = shell("estimate", config, "--limit", "1000")
    assert f"only {SAMPLES} samples can be taken, not 1,000" in beyond.out
    assert "--rows 1000" in beyond.out
    assert beyond.out.endswith(f"next: coreeval refresh {config.name}\n")


def test_rows_estimate_for_a_larger_benchmark(shell: Shell) -> None:
    config = shell.config({"models": {"default": "offline", "composer": "openai:gpt-5"}})
    ten, one = (
        shell("estimate", config, *rows, "--json").document
        for rows in (["--rows", str(10 * SAMPLES)], [])
    )
    assert ten["samples"] == ten["to_pay"] == 10 * SAMPLES
    expected = 10 * one["totals"]["calls"]["likely"]
    assert ten["totals"]["calls"]["likely"] == pytest.approx(expected, rel=0.05)
    assert f"has {SAMPLES} samples: the figures are for 240 similar samples" in ten["notes"][0]
    assert "--limit 3 to take fewer" in shell("estimate", config, "--rows", "3").err


def test_a_price_counts_for_every_role_of_the_model(shell: Shell) -> None:
    model = {"model": "openai:qwen3", "base_url": "http://127.0.0.1:9/v1"}
    elsewhere = model | {"model": "openai:llama", "base_url": "http://127.0.0.1:10/v1"}
    models = {
        "default": model | {"price": PRICE},
        "composer": elsewhere | {"base_url": model["base_url"], "price": PRICE},
        "targets": [model, elsewhere],
    }
    document = shell("estimate", shell.config({"models": models}), "--json").document
    prices = {(line["role"], line["model"]): line["price"] for line in document["lines"]}
    assert prices["target", "openai:qwen3"] == "the config"
    assert prices["target", "openai:llama"] == "", "another server may charge another price"


# -- a preview ------------------------------------------------------------------------------------


def test_a_preview_pays_for_a_few_and_foretells_the_others(
    shell: Shell, served: Path, server: LLMServer
) -> None:
    said = shell("estimate", served, "--preview", "8", "--json")
    document = said.document
    assert said.code == 0
    assert set(document) == documented("coreeval estimate")
    done, sent = document["preview"], len(server.requests)
    assert (done["samples"], done["billed_calls"], done["failed"]) == (8, sent, 0)
    assert document["to_pay"] == SAMPLES - 8
    assert done["usd"] > 0
    assert Path(done["run"]).parent == workspace(shell).runs / "trial"
    cost = shell("refresh", served, "--json").document["cost"]
    assert len(server.requests) - sent == cost["billed_calls"]
    assert len({json.dumps(request) for request in server.requests}) == len(server.requests)
    assert lies_inside(document["totals"]["calls"], cost["billed_calls"])
    assert lies_inside(document["totals"]["prompt_tokens"], cost["prompt_tokens"])
    for line in document["lines"]:
        assert line["rests_on"]["answers"]["n"] == 8


def test_a_preview_foretells_the_control_arm(shell: Shell, server: LLMServer) -> None:
    """Its news is the older half of the demo's, and that of the updated arm the newer half."""
    server.requests.clear()
    models: dict[str, Any] = models_at(server)
    models["targets"][0]["cutoff"] = "2026-02"
    window = {"start": "2026-03-01", "end": "2026-10-01"}
    changes: dict[str, object] = {"models": models, "knowledge.window": window}
    older = {"start": "2025-08-01", "end": "2026-02-28"}
    config = shell.config({**changes, "run.control_window": older})
    document = shell("estimate", config, "--preview", "8", "--json").document
    assert document["preview"]["billed_calls"] == len(server.requests)
    assert not any("control" in note for note in document["notes"])
    done = shell("refresh", config, "--json").document
    assert done["control"]["counts"]["accepted"] > 0
    assert lies_inside(document["totals"]["calls"], done["cost"]["billed_calls"])

    plain = shell("estimate", shell.config(changes), "--preview", "8", "--json").document
    with_arm, without = (
        {line["role"]: line["calls"]["likely"] for line in each["lines"]}
        for each in (document, plain)
    )
    assert {role for role in without if with_arm[role] > without[role]} >= {"replacer", "target"}
    assert with_arm["extractor"] == without["extractor"]


def test_a_preview_foretells_what_comes_from_caches(
    shell: Shell, served: Path, server: LLMServer, answers: OfflineAnswers
) -> None:
    async def half_cached(request: Request) -> Reply:
        said = await answers(request)
        usage = {"prompt_tokens": 1000, "completion_tokens": 10}
        details = {"prompt_tokens_details": {"cached_tokens": 500}}
        return Reply(content=said, usage=usage | details) if isinstance(said, str) else said

    server.answers = half_cached
    try:
        document = shell("estimate", served, "--preview", "4", "--json").document
    finally:
        server.answers = answers
    for line in [*document["lines"], document["totals"]]:
        half = line["prompt_tokens"]["likely"] / 2
        assert line["cached_tokens"]["likely"] == pytest.approx(half, abs=1)


def test_a_preview_says_what_it_spent(shell: Shell, served: Path, server: LLMServer) -> None:
    said = shell("estimate", served, "--preview", "3", "--limit", "12")
    assert said.code == 0
    assert f"preview: 3 samples refreshed, {len(server.requests)} calls for 0." in said.out
    assert "the figures below are for the other 9 samples" in said.out
    assert "nothing was spent" not in said.out
    assert said.out.endswith("--limit 12\n")
    again = shell("estimate", served, "--preview", "3", "--limit", "12")
    assert "preview: 3 samples refreshed, 0 calls for 0.00 USD" in again.out


def test_a_preview_of_everything_leaves_nothing_to_pay(shell: Shell, served: Path) -> None:
    document = shell("estimate", served, "--preview", "9", "--limit", "3", "--json").document
    assert (document["preview"]["samples"], document["to_pay"]) == (3, 0)
    assert document["totals"]["calls"]["high"] == 0


def test_a_preview_without_a_price_does_not_call_it_nothing(
    shell: Shell, server: LLMServer
) -> None:
    models = {"default": {"model": "openai:good", "base_url": server.url}}
    config = shell.config({"models": models})
    document = shell("estimate", config, "--preview", "2", "--limit", "4", "--json").document
    assert document["preview"]["usd"] is None
    assert document["totals"]["usd"] is None
    assert "at an unknown price" in shell("estimate", config, "--preview", "2", "--limit", "4").out


def test_a_preview_that_cannot_go_on_says_so(shell: Shell, served: Path, server: LLMServer) -> None:
    said: Said = shell(
        "estimate", served, "--preview", "2", "--set", "run.budget_usd=0.00001", "--json"
    )
    assert said.code in (2, 3)
    assert "budget" in said.error["message"]
    assert server.requests == []


def test_a_preview_that_is_stopped_says_how_to_go_on(served: Path) -> None:
    def stop(_progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="preview was stopped") as stopped:
        preview(served, 2, around=RunHooks(watch=stop))
    assert stopped.value.exit_code == 130
    assert "coreeval resume" in stopped.value.hint
    assert Path(stopped.value.where, "manifest.json").exists()


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preview", "1"], "--preview"),
        (["--limit", "0"], "--limit"),
        (["--rows", "50", "--limit", "9"], "--rows and --limit cannot be used together"),
        (["--set", "models.defualt=offline"], "unknown key"),
        (["--set", "run.prices=none.yaml"], "cannot read"),
        (["--set", "dataset.path=nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_told(shell: Shell, arguments: list[str], message: str) -> None:
    said = shell("estimate", shell.config(), *arguments, "--json")
    assert said.code == 2
    assert message in said.error["message"] + said.error["where"]
