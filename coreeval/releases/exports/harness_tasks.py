"""Tasks on the arms for evaluation harnesses: lm-evaluation-harness and Inspect.

For the lm-evaluation-harness, each arm gets a generation task and, if the gold is one of a few
choices, a likelihood task (`harness_kinds`). For Inspect, there is a task and, for a run, logs of
its history for `inspect view`.
"""

from pathlib import Path

import yaml

from coreeval.releases.exports.harness_kinds import HARNESS_KINDS, LmEvalTask
from coreeval.releases.exports.material import (
    Material,
    iter_questions,
    list_arms,
    task_slug,
    write_code,
    write_description,
)
from coreeval.releases.exports.tables import write_lines
from coreeval.releases.release import ReleasedArm
from coreeval.schema import Task
from coreeval.tools.extras import require_extra
from coreeval.tools.files import ParquetColumns, write_parquet, write_text

LM_EVAL_MODULE = "coreeval_functions"


class _YamlFunction(str):
    """The name of a function, which the harness loads from a module next to the YAML file."""


class _TaskDumper(yaml.SafeDumper):
    """YAML writer of `_YamlFunction` with the harness's tag."""


_TaskDumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if "\n" in text else None
    ),
)
_TaskDumper.add_representer(
    _YamlFunction,
    lambda dumper, name: dumper.represent_scalar("!function", f"{LM_EVAL_MODULE}.{name}"),
)


def write_lm_eval(material: Material, out: Path) -> dict[str, int]:
    """Write the tasks, their data and their code; return the number of questions of each arm.

    Raises:
        PromptError: the task's first template cannot be filled.
    """
    kind = HARNESS_KINDS[material.task.kind]
    arms, rows = list_arms(material), dict[str, int]()
    columns: ParquetColumns = {"id": "string", "prompt": "string", **kind.columns}
    for arm in arms:
        path = out / "data" / f"{arm}.parquet"
        rows[arm] = write_parquet(path, columns, iter_questions(material, arm))
        for each in kind.tasks:
            task = _build_task(material, arm, each, kind.target)
            text = yaml.dump(task, Dumper=_TaskDumper, sort_keys=False, allow_unicode=True)
            write_text(out / f"{task['task']}.yaml", text)
    write_description(material, out, {arm: f"data/{arm}.parquet" for arm in arms})
    write_code(kind.lm_eval, out / f"{LM_EVAL_MODULE}.py", kind.copied)
    return rows


def _build_task(
    material: Material, arm: ReleasedArm, each: LmEvalTask, target: str
) -> dict[str, object]:
    name = f"coreeval_{task_slug(material.name)}"
    return {
        "task": f"{name}_{arm}_{each.suffix}",
        "tag": [name, f"{name}_{each.suffix}"],
        "custom_dataset": _YamlFunction("arm_data"),
        "dataset_kwargs": {"arm": arm},
        "test_split": material.split,
        "doc_to_text": "prompt",
        "doc_to_target": target,
        **_output(material.task, each),
        "process_results": _YamlFunction(each.score),
        "metric_list": [_metric(one) for one in each.metrics],
        "metadata": {"version": material.version},
    }


def _output(task: Task, each: LmEvalTask) -> dict[str, object]:
    """Return how the model answers: by the most likely choice, or by generating text."""
    if each.choices:
        return {"output_type": "multiple_choice", "doc_to_choice": each.choices(task)}
    return {
        "output_type": "generate_until",
        "generation_kwargs": {
            "until": list(each.until),
            "do_sample": False,
            "max_gen_toks": each.tokens,
        },
    }


def _metric(name: str) -> dict[str, object]:
    aggregation = _YamlFunction("mean_f1") if name == "macro_f1" else "mean"
    return {
        "metric": name,
        "aggregation": aggregation,
        "higher_is_better": name != "unparsed",
    }


INSPECT_TASK = "coreeval_task.py"


def write_inspect(material: Material, out: Path) -> dict[str, int]:
    """Write the task, its data and, for a run, its logs; return the questions of each arm.

    Raises:
        PromptError: the task's first template cannot be filled.
        UsageError: logs need the package inspect-ai, which is not installed.
    """
    logged = {"logs": _write_logs(material, out / "logs")} if material.kind == "run" else {}
    (out / "data").mkdir()
    arms = list_arms(material)
    rows: dict[str, int] = {
        arm: write_lines(out / "data" / f"{arm}.jsonl", iter_questions(material, arm))
        for arm in arms
    }
    write_description(material, out, {arm: f"data/{arm}.jsonl" for arm in arms})
    kind = HARNESS_KINDS[material.task.kind]
    write_code(kind.inspect, out / INSPECT_TASK, kind.copied)
    return rows | logged


def _write_logs(material: Material, folder: Path) -> int:
    """Write the logs of a run; return the number of samples in them."""
    otherwise = "export a release, which has no logs"
    with require_extra("inspect", "logs of a run", where="--to inspect", otherwise=otherwise):
        from coreeval.releases.exports.inspect_logs import write_logs

    return write_logs(material, folder)
