"""The benchmark as an Inspect task: inspect eval coreeval_task.py -T arm=updated --model ..."""

from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    accuracy,
    ci,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState, generate

from coreeval.releases.exports.harness.grading import read_label
from coreeval.releases.exports.harness.scoring import (
    UNPARSED,
    Pair,
    benchmark,
    f1_interval,
    file_of,
    mean_f1,
)


@task
def coreeval(arm: str = "updated") -> Task:
    """Ask for the label of each text of an arm: updated, semantic or original."""
    known = benchmark()
    return Task(
        name=f"coreeval_{known['name']}_{arm}",
        dataset=json_dataset(file_of(arm), FieldSpec(input="prompt", target="label_text", id="id")),
        solver=generate(),
        scorer=label_match(),
        version=known["version"],
        metadata={"benchmark": known["name"], "release": known["version"], "arm": arm},
    )


@metric
def macro_f1() -> Metric:
    """Return the macro-F1 over the labels of the benchmark."""

    def compute(scores: list[SampleScore]) -> Value:
        return mean_f1(_pairs(scores))

    return compute


@metric
def macro_f1_ci() -> Metric:
    """Return both ends of its 95 % bootstrap interval."""

    def compute(scores: list[SampleScore]) -> Value:
        low, high = f1_interval(_pairs(scores))
        return {"macro_f1_lower": low, "macro_f1_upper": high}

    return compute


@metric
def unparsed() -> Metric:
    """Return the share of answers that are not a label."""

    def compute(scores: list[SampleScore]) -> Value:
        return sum(said == UNPARSED for _, said in _pairs(scores)) / len(scores)

    return compute


def _pairs(scores: list[SampleScore]) -> list[Pair]:
    known = [one.score.metadata or {} for one in scores]
    return [(said["due"], said["said"]) for said in known]


@scorer(metrics=[accuracy(), ci(), macro_f1(), macro_f1_ci(), unparsed()])
def label_match() -> Scorer:
    """Compare the model's label with the benchmark's."""

    async def score(state: TaskState, target: Target) -> Score:
        said = read_label(state.output.completion)
        right = "C" if said == target.text else "I"
        return Score(value=right, answer=said, metadata={"due": target.text, "said": said})

    return score
