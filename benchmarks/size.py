"""How a run behaves with many samples: planning, scoring, resuming, checkpoint bytes.

    python -m benchmarks.size [--samples 100000] [--threads 200]

Each part runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from random import Random
from unittest import mock

import yaml
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Durability

from coreeval.config import load_config
from coreeval.evaluation.scores import ARMS
from coreeval.graph import run_nodes, threads
from coreeval.graph.bundled import WINDOW, demo_data
from coreeval.graph.execute import DEFAULT_HOOKS, build_run_context
from coreeval.graph.report import open_compared_run
from coreeval.graph.run import build_manifest, describe_source, refresh, resume
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import set_up
from coreeval.runs.comparison import compare_arms
from coreeval.runs.manifest import read_manifest, write_manifest
from coreeval.schema import AnswerKind, Prediction
from coreeval.tools.clock import utc_now
from coreeval.tools.files import write_text
from coreeval.tools.workspace import RunFiles, workspace_for

Figures = dict[str, object]
Part = Callable[[Path, int], Figures]
LABELS = ("anger", "joy", "optimism", "sadness")
TARGETS = ("openai:one", "openai:two")
"""Nobody asks them: their answers are put into the store."""
RESULTS = """
    INSERT INTO results (
        sample_id, outcome, reason, attempts, rung, semantic_status, semantic, updated,
        original_label, ended_at
    )
    SELECT
        id,
        iif(seq % 20, 'accepted', 'label_unrecoverable'),
        '', 1, 'none', 'reworded',
        json_object('text', 'another text of about the length of a tweet, take ' || id),
        iif(seq % 20, json_object('text', 'a newer text of about that length, take ' || id), NULL),
        '', '2026-01-01T00:00:00.000+00:00'
    FROM samples
"""
"""One in twenty samples is in no updated arm."""


def main() -> None:
    """Run the parts and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--part", choices=sorted(PARTS))
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    if chosen.part:
        print(json.dumps(PARTS[chosen.part](chosen.folder, chosen.samples)))
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), chosen.samples, TARGETS)
        print(f"{chosen.samples} samples, one {sys.platform} machine, {os.cpu_count()} cores")
        for part in ("plan", "answer", "compare", "resume_to_report", "resume_done"):
            report(part, Path(folder), chosen.samples)
    for durability in ("exit", "async", "sync"):
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder), chosen.threads)
            report(f"checkpoints_{durability}", Path(folder), chosen.threads)


def report(part: str, folder: Path, samples: int) -> None:
    """Run one part in a process of its own and print its figures."""
    command = [sys.executable, "-m", "benchmarks.size", "--part", part]
    command += ["--folder", str(folder), "--samples", str(samples)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    print(f"{part:<22}" + "   ".join(f"{name} {value}" for name, value in figures.items()))


def prepare(folder: Path, samples: int, targets: Sequence[str] = ()) -> None:
    """Write a benchmark of short texts and a config for it."""
    with (folder / "test.jsonl").open("w", encoding="utf-8") as file:
        for row in rows(samples):
            file.write(json.dumps(row) + "\n")
    config = {
        "name": "size",
        "task": "emotion",
        "dataset": {"format": "jsonl", "path": "test.jsonl"},
        "knowledge": {
            "path": str(demo_data() / "news"),
            "window": WINDOW,
            "min_precision": "crawl",
        },
        "models": {"default": "offline", "targets": [{"model": name} for name in targets]},
    }
    (folder / "size.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def rows(samples: int) -> Iterator[dict[str, object]]:
    """Yield texts of about the length of a tweet."""
    for number in range(samples):
        label = number % len(LABELS)
        text = (
            f"so {LABELS[label]} about the heat wave and what Microsoft said, take {number} #news"
        )
        yield {"id": str(number), "text": text, "label": label}


def planned(folder: Path) -> RunContext:
    """Prepare a run of the folder's config, as `refresh` does before its first sample."""
    config = folder / "size.yaml"
    setup = set_up(load_config(config), utc_now())
    workspace, files = workspace_for(folder), RunFiles(folder / "run")
    manifest = build_manifest(
        setup, workspace, files, describe_source(config, setup.config), limit=None
    )
    files.root.mkdir()
    write_text(files.config, yaml.safe_dump(setup.config.model_dump(mode="json")))
    job = build_run_context(setup, manifest, files, workspace, DEFAULT_HOOKS)
    write_manifest(files.manifest, manifest)
    return job


def opened(folder: Path) -> RunContext:
    """Open the planned run as `resume` does."""
    files = RunFiles(folder / "run")
    manifest = read_manifest(files.manifest)
    setup = set_up(load_config(files.config), datetime.fromisoformat(manifest.now), manifest)
    return build_run_context(setup, manifest, files, workspace_for(folder), DEFAULT_HOOKS)


def plan(folder: Path, samples: int) -> Figures:
    """Plan a run: read the benchmark into the run store."""

    def work() -> None:
        job = planned(folder)
        run_nodes.plan_samples(job)
        job.store.close()

    return measured(work)


def answer(folder: Path, samples: int) -> Figures:
    """Give every sample a result, and every target an answer for each arm."""
    with closing(sqlite3.connect(folder / "run" / "run.db")) as database, database:
        database.execute(RESULTS)

    def work() -> None:
        job = opened(folder)
        for target in TARGETS:
            job.store.add_predictions(predictions(target, samples))
        job.store.finish_stage("evaluate", {"targets": list(TARGETS)})
        job.store.close()

    return measured(work)


def predictions(target: str, samples: int) -> Iterator[Prediction]:
    """Yield answers of which some are wrong, more of them in each further arm.

    One in ten of a template's answers is by chance, and three in two hundred are no label: samples
    fare as differently as with a model that is unsure of many.
    """
    chance = Random(target)
    for place, arm in enumerate(ARMS):
        for number in range(samples):
            if arm == "updated" and number % 20 == 19:
                continue
            known = (number + (number % 10 <= place)) % len(LABELS)
            for template in (1, 2, 3):
                luck = chance.random()
                said = LABELS[chance.randrange(len(LABELS)) if luck < 0.1 else known]
                kind: AnswerKind = "answered" if luck < 0.985 else "unparsed"
                yield Prediction(
                    target=target,
                    source=arm,
                    sample_id=str(number),
                    template=template,
                    answer=said if kind == "answered" else "",
                    kind=kind if luck < 0.995 else "refused",
                )


def compare_only(folder: Path, samples: int) -> Figures:
    """Score the targets' answers, arms against each other."""

    def work() -> None:
        job = opened(folder)
        compare_arms(open_compared_run(job))
        job.store.close()

    return measured(work)


def resume_to_report(folder: Path, samples: int) -> Figures:
    """Resume a run whose samples all have a result: arms, card and report are written."""
    return measured(lambda: resume(folder / "run"))


def resume_done(folder: Path, samples: int) -> Figures:
    """Resume a run in which everything is done."""
    return measured(lambda: resume(folder / "run"))


def checkpoints(durability: Durability) -> Part:
    """Return a part that refreshes samples and keeps every checkpoint."""

    def part(folder: Path, samples: int) -> Figures:
        async def keep(*_: object) -> None:
            """Leave a finished thread where it is, so that its bytes can be counted."""

        with (
            mock.patch.object(threads, "DURABILITY", durability),
            mock.patch.object(AsyncSqliteSaver, "adelete_thread", keep),
        ):
            figures = measured(lambda: refresh(folder / "size.yaml", run_dir=folder / "run"))
        size = sum(path.stat().st_size for path in (folder / "run").glob("checkpoints.db*"))
        return figures | {"bytes/sample": size // samples}

    return part


def measured(work: Callable[[], object]) -> Figures:
    """Return wall seconds, CPU seconds and peak memory of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "wall_s": round(time.perf_counter() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "peak_MB": peak,
    }


PARTS: dict[str, Part] = {
    "plan": plan,
    "answer": answer,
    "compare": compare_only,
    "resume_to_report": resume_to_report,
    "resume_done": resume_done,
    "checkpoints_exit": checkpoints("exit"),
    "checkpoints_async": checkpoints("async"),
    "checkpoints_sync": checkpoints("sync"),
}

if __name__ == "__main__":
    main()
