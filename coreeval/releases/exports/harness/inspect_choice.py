"""The choices as an Inspect task: inspect eval coreeval_task.py -T arm=updated --model ..."""

from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

from coreeval.releases.exports.harness.scoring import benchmark, file_of


@task
def coreeval(arm: str = "updated") -> Task:
    """Ask for the right option of each question of an arm: updated, semantic or original."""
    known = benchmark()
    fields = FieldSpec(input="item", choices="choices", target="label_text", id="id")
    return Task(
        name=f"coreeval_{known['name']}_{arm}",
        dataset=json_dataset(file_of(arm), fields),
        solver=multiple_choice(),
        scorer=choice(),
        version=known["version"],
        metadata={"benchmark": known["name"], "release": known["version"], "arm": arm},
    )
