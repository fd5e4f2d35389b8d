"""Tasks of the lm-evaluation-harness: two for each arm, one by likelihood and one by generation."""

from pathlib import Path

import yaml

from coreeval.releases.exports.material import Material
from coreeval.releases.exports.questions import (
    arms_of,
    questions,
    slug,
    write_code,
    write_description,
)
from coreeval.releases.release import ReleasedArm
from coreeval.tools.files import ParquetColumns, write_parquet, write_text

COLUMNS: ParquetColumns = {"id": "string", "prompt": "string", "label_text": "string"}
MODULE = "coreeval_functions"
ANSWER_TOKENS = 32
"""Room for the longest label and a remark; the harness's own default is 256."""


class _Function(str):
    """The name of a function, which the harness looks up in a module beside the YAML."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Function` with the tag that the harness knows."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if "\n" in text else None
    ),
)
_Dumper.add_representer(
    _Function, lambda dumper, name: dumper.represent_scalar("!function", f"{MODULE}.{name}")
)


def write_lm_eval(material: Material, out: Path) -> dict[str, int]:
    """Write the tasks, their data and what they call; return the questions of each arm.

    Raises:
        PromptError: the task's first template cannot be filled.
    """
    arms, rows = arms_of(material), dict[str, int]()
    for arm in arms:
        path = out / "data" / f"{arm}.parquet"
        rows[arm] = write_parquet(path, COLUMNS, questions(material, arm))
        for task in (_by_likelihood(material, arm), _by_generation(material, arm)):
            text = yaml.dump(task, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
            write_text(out / f"{task['task']}.yaml", text)
    write_description(material, out, {arm: f"data/{arm}.parquet" for arm in arms})
    write_code("lm_eval_functions", out / f"{MODULE}.py")
    return rows


def _by_likelihood(material: Material, arm: ReleasedArm) -> dict[str, object]:
    """Return the task in which the likeliest label is the answer."""
    return {
        **_shared(material, arm, "mc"),
        "output_type": "multiple_choice",
        "doc_to_choice": [label.name for label in material.task.labels],
        "process_results": _Function("score_choices"),
        "metric_list": [_metric("acc"), _metric("macro_f1")],
        "metadata": _metadata(material),
    }


def _by_generation(material: Material, arm: ReleasedArm) -> dict[str, object]:
    """Return the task in which the model writes its answer."""
    return {
        **_shared(material, arm, "gen"),
        "output_type": "generate_until",
        "generation_kwargs": {
            "until": ["\n\n"],
            "do_sample": False,
            "max_gen_toks": ANSWER_TOKENS,
        },
        "process_results": _Function("score_answer"),
        "metric_list": [_metric("acc"), _metric("macro_f1"), _metric("unparsed")],
        "metadata": _metadata(material),
    }


def _shared(material: Material, arm: ReleasedArm, kind: str) -> dict[str, object]:
    name = f"coreeval_{slug(material.name)}"
    return {
        "task": f"{name}_{arm}_{kind}",
        "tag": [name, f"{name}_{kind}"],
        "custom_dataset": _Function("arm_data"),
        "dataset_kwargs": {"arm": arm},
        "test_split": material.split,
        "doc_to_text": "prompt",
        "doc_to_target": "label_text",
    }


def _metric(name: str) -> dict[str, object]:
    aggregation = _Function("mean_f1") if name == "macro_f1" else "mean"
    return {
        "metric": name,
        "aggregation": aggregation,
        "higher_is_better": name != "unparsed",
    }


def _metadata(material: Material) -> dict[str, str]:
    return {"version": material.version}
