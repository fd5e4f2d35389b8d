"""Tasks over the arms for the evaluation harnesses: lm-evaluation-harness and Inspect.

The lm-evaluation-harness gets two tasks for each arm, one by likelihood and one by generation.
Inspect gets a task and, of a run, its story as logs that `inspect view` shows.
"""

from pathlib import Path

import yaml

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
from coreeval.tools.extras import require_extra
from coreeval.tools.files import ParquetColumns, write_parquet, write_text

QUESTION_COLUMNS: ParquetColumns = {"id": "string", "prompt": "string", "label_text": "string"}
LM_EVAL_MODULE = "coreeval_functions"
ANSWER_TOKENS = 32
"""Token limit for the longest label and a remark; the harness's own default is 256."""


class _YamlFunction(str):
    """The name of a function, which the harness loads from a module beside the YAML."""


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
    """Write the tasks, their data and what they call; return the questions of each arm.

    Raises:
        PromptError: the task's first template cannot be filled.
    """
    arms, rows = list_arms(material), dict[str, int]()
    for arm in arms:
        path = out / "data" / f"{arm}.parquet"
        rows[arm] = write_parquet(path, QUESTION_COLUMNS, iter_questions(material, arm))
        for task in (_likelihood_task(material, arm), _generation_task(material, arm)):
            text = yaml.dump(task, Dumper=_TaskDumper, sort_keys=False, allow_unicode=True)
            write_text(out / f"{task['task']}.yaml", text)
    write_description(material, out, {arm: f"data/{arm}.parquet" for arm in arms})
    write_code("lm_eval_functions", out / f"{LM_EVAL_MODULE}.py")
    return rows


def _likelihood_task(material: Material, arm: ReleasedArm) -> dict[str, object]:
    """Return the task in which the likeliest label is the answer."""
    return {
        **_common_task(material, arm, "mc"),
        "output_type": "multiple_choice",
        "doc_to_choice": [label.name for label in material.task.labels],
        "process_results": _YamlFunction("score_choices"),
        "metric_list": [_metric("acc"), _metric("macro_f1")],
        "metadata": _metadata(material),
    }


def _generation_task(material: Material, arm: ReleasedArm) -> dict[str, object]:
    """Return the task in which the model writes its answer."""
    return {
        **_common_task(material, arm, "gen"),
        "output_type": "generate_until",
        "generation_kwargs": {
            "until": ["\n\n"],
            "do_sample": False,
            "max_gen_toks": ANSWER_TOKENS,
        },
        "process_results": _YamlFunction("score_answer"),
        "metric_list": [_metric("acc"), _metric("macro_f1"), _metric("unparsed")],
        "metadata": _metadata(material),
    }


def _common_task(material: Material, arm: ReleasedArm, kind: str) -> dict[str, object]:
    name = f"coreeval_{task_slug(material.name)}"
    return {
        "task": f"{name}_{arm}_{kind}",
        "tag": [name, f"{name}_{kind}"],
        "custom_dataset": _YamlFunction("arm_data"),
        "dataset_kwargs": {"arm": arm},
        "test_split": material.split,
        "doc_to_text": "prompt",
        "doc_to_target": "label_text",
    }


def _metric(name: str) -> dict[str, object]:
    aggregation = _YamlFunction("mean_f1") if name == "macro_f1" else "mean"
    return {
        "metric": name,
        "aggregation": aggregation,
        "higher_is_better": name != "unparsed",
    }


def _metadata(material: Material) -> dict[str, str]:
    return {"version": material.version}


INSPECT_TASK = "coreeval_task.py"


def write_inspect(material: Material, out: Path) -> dict[str, int]:
    """Write the task with its data and, of a run, its logs; return the questions of each arm.

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
    write_code("inspect_task", out / INSPECT_TASK)
    return rows | logged


def _write_logs(material: Material, folder: Path) -> int:
    """Write the logs of a run; return the number of samples in them."""
    otherwise = "export a release, which has no logs"
    with require_extra("inspect", "logs of a run", where="--to inspect", otherwise=otherwise):
        from coreeval.releases.exports.inspect_logs import write_logs

    return write_logs(material, folder)
