"""The arms as questions: what the evaluation harnesses are given of a benchmark."""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from coreeval.evaluation.targets import fill_template
from coreeval.releases.exports.material import ARMS, Material
from coreeval.releases.release import ReleasedArm
from coreeval.tools.files import write_json

TEMPLATE = 1
"""The task's template that harnesses ask with."""
_BETWEEN_MODULES = re.compile(
    r"^from coreeval\.releases\.exports\.harness\S* import (\([^)]*\)|.*)\n", re.MULTILINE
)
"""How a harness module imports another; in one file they need not."""
Question = dict[str, str]


def questions(material: Material, arm: ReleasedArm) -> Iterator[Question]:
    """Stream a question for each sample that an arm holds: id, prompt, label_text.

    Raises:
        PromptError: the task's first template cannot be filled.
    """
    for sample in material.samples():
        if texts := sample.texts(arm):
            prompt = fill_template(material.task_of(sample.id), texts, TEMPLATE)
            yield {"id": sample.id, "prompt": prompt, "label_text": sample.label_text}


def arms_of(material: Material) -> list[ReleasedArm]:
    """Return the arms that have a text of any sample."""
    held = set[ReleasedArm]()
    for sample in material.samples():
        held.update(arm for arm in ARMS if sample.texts(arm))
        if len(held) == len(ARMS):
            break
    return [arm for arm in ARMS if arm in held]


def slug(name: str) -> str:
    """Return a benchmark's name as it can be part of a task's."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "benchmark"


def write_description(material: Material, out: Path, files: dict[str, str]) -> None:
    """Write benchmark.json, which the code beside it reads."""
    said = {
        "name": slug(material.name),
        "version": material.version,
        "split": material.split,
        "labels": [label.name for label in material.task.labels],
        "arms": files,
    }
    write_json(out / "benchmark.json", said)


def write_code(module: str, path: Path) -> None:
    """Write a harness module and the scoring that it needs as one file that stands alone."""
    folder = resources.files("coreeval.releases.exports.harness")
    both = "\n\n".join(
        folder.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in ("scoring", module)
    )
    path.write_text(_BETWEEN_MODULES.sub("", both), encoding="utf-8")
