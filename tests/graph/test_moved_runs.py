"""Runs that no longer lie beside the answers that they have paid for."""

import shutil
from pathlib import Path

import pytest

from coreeval.errors import BudgetSpent, RunStateError
from coreeval.graph.evaluate import evaluate
from coreeval.graph.run import resume, retry
from coreeval.runs.manifest import read_manifest
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
