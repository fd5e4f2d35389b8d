"""The lm-evaluation-harness accepts, runs and scores what is exported for it, offline."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from coreeval.evaluation.targets import fill_template
from coreeval.releases.exports.exporting import export
from coreeval.tasks import load_task
from tests.releases.exports.conftest import Sources

TOOL = """
import functools, sys
from lm_eval import tasks
from lm_eval.__main__ import cli_evaluate
# The tasks that come with it take seconds to list, and nothing here needs them.
tasks.TaskManager = functools.partial(tasks.TaskManager, include_defaults=False)
for arguments in (line.split() for line in sys.argv[1:]):
    sys.argv = ["lm-eval", *arguments]
    cli_evaluate()
"""


def _run(folder: Path, *commands: str) -> str:
    """Run commands of the installed tool, one after another, without the network."""
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", TOOL, *commands],
        cwd=folder,
        env=os.environ | offline,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _found(folder: Path) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Return the results by task, and the samples that were logged of each."""
    results = json.loads(next(folder.rglob("results_*.json")).read_text("utf-8"))
    samples = {
        path.name.removeprefix("samples_").rpartition("_")[0]: [
            json.loads(line) for line in path.read_text("utf-8").splitlines()
        ]
        for path in folder.rglob("samples_*.jsonl")
    }
    return results, samples


def test_the_tool_validates_and_runs_every_task_wherever_the_folder_is(
    sources: Sources, tmp_path: Path
) -> None:
    made = export(sources.free, to="lm-eval", out=tmp_path / "out")
    assert made.rows == {"original": 6, "semantic": 3, "updated": 3}
    moved = Path(shutil.move(made.out, tmp_path / "elsewhere"))
    names = [f"coreeval_weekly_{arm}_{kind}" for arm in made.rows for kind in ("gen", "mc")]
    said = _run(
        tmp_path,
        f"validate --tasks {','.join(names)} --include_path {moved}",
        f"run --model dummy --include_path {moved} --tasks coreeval_weekly --seed 3"
        " --output_path results --log_samples",
    )
    assert "All tasks found and valid" in said
    results, samples = _found(tmp_path / "results")
    assert sorted(results["results"]) == sorted(names)
    assert set(results["versions"].values()) == {"2026.47"}
    for name in names:
        scores = results["results"][name]
        assert {"acc,none", "macro_f1,none"} <= set(scores)
        assert scores["sample_len"] == made.rows[name.split("_")[2]]
    written = results["results"]["coreeval_weekly_updated_gen"]
    assert (written["acc,none"], written["unparsed,none"]) == (0.0, 1.0)
    first = samples["coreeval_weekly_updated_mc"][0]
    asked = fill_template(load_task("emotion"), {"text": "Ada Roe opened it"}, 1)
    assert first["arguments"]["gen_args_0"]["arg_0"] == asked
    assert samples["coreeval_weekly_updated_gen"][0]["macro_f1"] == ["anger", "__unparsed__"]
