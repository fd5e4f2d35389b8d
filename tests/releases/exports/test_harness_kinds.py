"""The real tools score hand-made answers to choices, questions and summaries as CoreEval does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from coreeval.releases.exports.export import export
from coreeval.schema import TaskKind
from tests.releases.kinds import OPEN, make_kind_run

GIVEN: Mapping[TaskKind, Mapping[str, str]] = {
    "choice": {
        "Who opened the bridge?": "<think>Not A.</think>The answer is (B).",
        "Which river rose?": "A",
        "Is $5 less than 5%?": "I cannot say.",
    },
    "answer": {
        "Two nations met.": '<think>Perhaps 4?</think>{"answer": "two"}',
        "Cy Poe opened": "Cy Poe, the mayor",
        "Sales rose by": "roughly 4.54 percent",
    },
    "summary": {
        "The river rose all day.": "The river rose.",
        "Cy Poe opened": "Ada Roe opened a dam. It rained.",
        "Sales fell by 4%.": "",
    },
}
"""What the model writes, by words of the question."""
LM_EVAL = """
import json, sys
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

class Scripted(LM):
    def _said(self, prompt):
        return next(said for words, said in GIVEN.items() if words in prompt)
    def generate_until(self, requests):
        return [self._said(each.args[0]) for each in requests]
    def loglikelihood(self, requests):
        letters = {"Who opened": "B", "Which river": "A", "Is $5": "D"}
        pairs = [each.args for each in requests]
        return [(float(any(w in asked and letter == said.strip() for w, letter in letters.items()))
                 - 1, False) for asked, said in pairs]
    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

found = {}
for kind, GIVEN in json.loads(sys.argv[1]).items():
    manager = TaskManager(include_path=kind, include_defaults=False)
    names = [each for each in manager.all_subtasks if "_original_" in each]
    done = simple_evaluate(model=Scripted(), tasks=names, task_manager=manager, bootstrap_iters=0)
    found[kind] = {name.rpartition("_")[2]: {
        key.removesuffix(",none"): value for key, value in scores.items() if key.endswith(",none")
    } for name, scores in done["results"].items()}
print("FOUND" + json.dumps(found))
"""
INSPECT = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

found = {}
for kind, given in json.loads(sys.argv[1]).items():
    def answer(messages, *_, kind=kind, given=given):
        said = next(said for words, said in given.items() if words in messages[-1].text)
        letter = {"A": "ANSWER: A", "I cannot say.": said}.get(said, "ANSWER: B")
        output = ModelOutput.from_content("mockllm", letter if kind == "choice" else said)
        output.usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)
        return output
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    task = f"{kind}/coreeval_task.py"
    (log,) = eval(task, task_args={"arm": "original"}, model=model, display="none")
    assert log.status == "success", log.error
    found[kind] = {one.name: {name: m.value for name, m in one.metrics.items()}
                   for one in log.results.scores}
print("FOUND" + json.dumps(found))
"""
Found = dict[str, dict[str, dict[str, float]]]


def _run(folder: Path, to: Literal["lm-eval", "inspect"], script: str) -> Found:
    """Export every kind for a tool, and return the scores that the tool gives."""
    for kind in GIVEN:
        (folder / f"{kind}-run").mkdir()
        release = make_kind_run(folder / f"{kind}-run", kind, licence=OPEN).release()
        export(release.path, to=to, out=folder / kind)
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(GIVEN)],
        cwd=folder,
        env=os.environ | offline | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: Found = json.loads(done.stdout.rpartition("FOUND")[2])
    return found


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Return the scores of the lm-evaluation-harness by kind and task."""
    return _run(tmp_path_factory.mktemp("lm_eval"), "lm-eval", LM_EVAL)


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Return the scores of Inspect by kind and scorer."""
    return _run(tmp_path_factory.mktemp("inspect"), "inspect", INSPECT)


THIRD = 1 / 3
ANSWERS: dict[str, Any] = {
    "acc": 2 / 3,
    "score": pytest.approx((1 + 0.8 + 1) / 3),
    "exact_match": pytest.approx(THIRD),
    "f1": pytest.approx((1 + 0.8 + 0) / 3),
}
SUMMARIES: dict[str, Any] = {
    "acc": pytest.approx(THIRD),
    "rougeL": pytest.approx((1 + 2 / 11) / 3),
    "supported": pytest.approx(0.5),
}


def test_the_harness_chooses_by_likelihood_and_in_words(harness: Found) -> None:
    likely, written = harness["choice"]["mc"], harness["choice"]["gen"]
    assert likely["acc"] == written["acc"] == pytest.approx(THIRD)
    assert written["unparsed"] == pytest.approx(THIRD)
    assert written["macro_f1"] == pytest.approx((2 / 3) / 4)


def test_the_harness_grades_answers(harness: Found) -> None:
    assert set(harness["answer"]) == {"gen"}
    found = harness["answer"]["gen"]
    assert {name: found[name] for name in ANSWERS} == ANSWERS


def test_the_harness_grades_summaries(harness: Found) -> None:
    found = harness["summary"]["gen"]
    assert {name: found[name] for name in SUMMARIES} == SUMMARIES


def test_inspect_scores_choices(inspect: Found) -> None:
    assert inspect["choice"]["choice"]["accuracy"] == pytest.approx(THIRD)


@pytest.mark.parametrize(("kind", "due"), [("answer", ANSWERS), ("summary", SUMMARIES)])
def test_inspect_grades(inspect: Found, kind: str, due: Mapping[str, object]) -> None:
    assert {name: scores["mean"] for name, scores in inspect[kind].items()} == due
