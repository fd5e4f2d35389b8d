"""Runs that no longer lie beside the answers that they have paid for."""

import shutil
from pathlib import Path

import pytest

from coreeval.errors import BudgetSpent, RunStateError
from coreeval.graph.evaluate import evaluate
from coreeval.graph.execute import RunHooks
from coreeval.graph.run import resume, retry
from coreeval.runs.manifest import read_manifest, read_original_manifest, write_manifest
from coreeval.tools.workspace import HOME_VARIABLE, Workspace
from tests.graph.kit import Lab, Undisturbed, assert_whole

PRICE = {"input": 0, "output": 1000}
"""A call puts 1 USD aside if its answer may have 1000 tokens."""


def _lose_answers(lab: Lab) -> None:
    for path in lab.workspace.root.glob("calls.db*"):
        path.unlink()


def _price(lab: Lab) -> dict[str, object]:
    return {
        "model": "openai:scripted",
        "base_url": lab.server.url,
        "price": PRICE,
        "max_tokens": 1000,
    }


def test_an_unfinished_run_without_its_answers_pays_for_nothing(killed: Lab) -> None:
    _lose_answers(killed)
    for go_on in (resume, retry):
        with pytest.raises(RunStateError, match="does not have the answers") as caught:
            go_on(killed.files.root)
        assert caught.value.where == str(killed.workspace.root)
        assert HOME_VARIABLE in caught.value.hint
    assert killed.asked() == []
    assert not killed.workspace.calls.exists()


def test_a_copy_in_another_workspace_continues_with_the_answers_of_its_own(
    killed: Lab, undisturbed: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Workspace(tmp_path / "laptop" / ".coreeval")
    copy = other.runs / "survival" / "copy"
    shutil.copytree(killed.files.root, copy)
    with pytest.raises(RunStateError, match="does not have the answers"):
        resume(copy)
    assert killed.asked() == []
    monkeypatch.setenv(HOME_VARIABLE, str(killed.workspace.root))
    answered = killed.answered()
    assert resume(copy).manifest.status == "complete"
    assert answered.isdisjoint(killed.asked())
    assert not other.calls.exists()
    resume(killed.files.root)
    assert_whole(killed, undisturbed)


@pytest.mark.parametrize("moved", ["copied", "renamed", "killed"])
def test_open_batches_of_a_moved_run_are_found_or_nothing_is_sent(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    """A run that waits for its first batch has no calls in run.db; nor has one that was killed."""
    run = {"concurrency": 4, "batch": {"live_below": 0}}
    lab.write(models={"default": _price(lab)}, run=run)
    assert lab.refresh(limit=3).manifest.status == "waiting"
    home, copy = lab.workspace.root, tmp_path / "data" / "run"
    if moved == "renamed":
        home = home.rename(tmp_path / "bench")
    else:
        copy = tmp_path / "laptop" / ".coreeval" / "runs" / "survival" / "copy"
    place = Path(shutil.copytree(lab.files.root, copy))
    if moved == "killed":
        manifest = read_original_manifest(place / "manifest.json")
        write_manifest(place / "manifest.json", manifest.model_copy(update={"status": "running"}))
    sent = len(lab.server.batches)
    with pytest.raises(RunStateError, match="does not have the answers or batches"):
        resume(place)
    assert len(lab.server.batches) == sent
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    done = resume(place, around=RunHooks(waits=True, first_look_s=0.01))
    assert done.manifest.status == "complete"
    assert done.manifest.workspace == str(home)
    assert set(lab.server.paid_ids.values()) == {1}


def test_a_copy_of_an_interrupted_evaluation_has_its_answers(finished: Lab, tmp_path: Path) -> None:
    spec = (
        finished.target[:-1]
        + ", max_in_flight: 1, max_tokens: 100, price: {input: 100, output: 1000}}"
    )
    with pytest.raises(BudgetSpent):
        evaluate(finished.files.root, targets=[spec], budget_usd=1.0)
    asked = finished.asked()
    assert asked
    billed = finished.manifest.cost.billed_calls
    finished.forget()
    copy = tmp_path / "laptop" / ".coreeval" / "runs" / "survival" / "copy"
    shutil.copytree(finished.files.root, copy)
    done = resume(copy, budget_usd=100.0).manifest
    assert not set(asked) & set(finished.asked())
    assert done.cost.billed_calls == billed + len(finished.asked())


def test_a_finished_run_without_its_answers_keeps_to_its_budget(lab: Lab) -> None:
    lab.write(models={"default": _price(lab)}, run={"concurrency": 1})
    spent = lab.refresh(limit=2).manifest.cost.billed_usd
    assert spent
    _lose_answers(lab)
    lab.forget()
    target = [
        f"{{model: 'openai:scripted', base_url: '{lab.server.url}', max_tokens: 1000, "
        "price: {input: 0, output: 1000}}"
    ]
    for _ in range(2):
        with pytest.raises(BudgetSpent, match="already spent or reserved"):
            evaluate(lab.files.root, targets=target, budget_usd=spent + 0.5)
        cost = read_manifest(lab.files.manifest).cost
        assert (cost.billed_usd, cost.unknown_usd) == (spent, 0)
        assert lab.asked() == []
    done = evaluate(lab.files.root, targets=target, budget_usd=spent + 50).manifest
    assert done.status == "complete" and lab.asked()
    assert done.cost.billed_usd and done.cost.billed_usd > spent
    assert done.cost.unknown_usd == 0
