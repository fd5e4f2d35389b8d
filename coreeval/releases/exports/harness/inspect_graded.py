"""The benchmark as an Inspect task: inspect eval coreeval_task.py -T arm=updated --model ..."""

from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from coreeval.releases.exports.harness.grading import (
    grade_answer,
    grade_summary,
    read_short_answer,
    read_summary,
)
from coreeval.releases.exports.harness.scoring import benchmark, file_of

GRADERS = {"answer": (read_short_answer, grade_answer), "summary": (read_summary, grade_summary)}


@task
def coreeval(arm: str = "updated") -> Task:
    """Ask about each text of an arm: updated, semantic or original."""
    known = benchmark()
    fields = FieldSpec(input="prompt", target="gold", id="id", metadata=known["columns"])
    return Task(
        name=f"coreeval_{known['name']}_{arm}",
        dataset=json_dataset(file_of(arm), fields),
        solver=generate(),
        scorer=grades(),
        version=known["version"],
        metadata={"benchmark": known["name"], "release": known["version"], "arm": arm},
    )


@scorer(metrics={"*": [mean(), stderr()]})
def grades() -> Scorer:
    """Grade the model's output; each grade is a separate score."""
    read, grade = GRADERS[benchmark()["kind"]]

    async def score(state: TaskState, target: Target) -> Score:
        completion = state.output.completion
        return Score(value=grade(state.metadata, completion), answer=read(completion))

    return score
