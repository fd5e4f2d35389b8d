"""A task of Inspect over the arms and, of a run, its story as logs that `inspect view` shows."""

from importlib.util import find_spec
from pathlib import Path

from coreeval.errors import UsageError
from coreeval.releases.exports.material import Material
from coreeval.releases.exports.questions import (
    arms_of,
    questions,
    write_code,
    write_description,
)
from coreeval.releases.exports.tables import write_lines

TASK = "coreeval_task.py"


def write_inspect(material: Material, out: Path) -> dict[str, int]:
    """Write the task with its data and, of a run, its logs; return the questions of each arm.

    Raises:
        PromptError: the task's first template cannot be filled.
        UsageError: logs need the package inspect-ai, which is not installed.
    """
    logged = {"logs": _write_logs(material, out / "logs")} if material.kind == "run" else {}
    (out / "data").mkdir()
    arms = arms_of(material)
    rows: dict[str, int] = {
        arm: write_lines(out / "data" / f"{arm}.jsonl", questions(material, arm)) for arm in arms
    }
    write_description(material, out, {arm: f"data/{arm}.jsonl" for arm in arms})
    write_code("inspect_task", out / TASK)
    return rows | logged


def _write_logs(material: Material, folder: Path) -> int:
    """Write the logs of a run; return the number of samples in them."""
    if find_spec("inspect_ai") is None:
        raise UsageError(
            "logs of a run need the package inspect-ai, which is not installed",
            where="--to inspect",
            hint="pip install 'coreeval[inspect]'; of a release no package is needed",
        )
    from coreeval.releases.exports.inspect_logs import write_logs

    return write_logs(material, folder)
