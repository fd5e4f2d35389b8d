"""How a run behaves with many samples: planning, resuming when all is done, checkpoint bytes.

    python -m benchmarks.size [--samples 100000] [--threads 200]

Each part runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import yaml
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Durability

from coreeval.config import load_config
from coreeval.graph import stages, threads
from coreeval.graph.bundled import WINDOW, demo_data
from coreeval.graph.job import Job
from coreeval.graph.run import first_manifest, refresh, resume, source_of
from coreeval.graph.setup import set_up
from coreeval.graph.work import REAL, job_of
from coreeval.releases.manifest import write_manifest
from coreeval.schema import Result
from coreeval.tools.files import write_text
from coreeval.tools.stores.runs import RunStore
from coreeval.tools.workspace import RunFiles, workspace_for

Figures = dict[str, object]
Part = Callable[[Path, int], Figures]
LABELS = ("anger", "joy", "optimism", "sadness")


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
        prepare(Path(folder), chosen.samples)
        print(f"{chosen.samples} samples, one {sys.platform} machine, {os.cpu_count()} cores")
        for part in ("plan", "resume_to_assemble", "resume_done"):
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


def prepare(folder: Path, samples: int) -> None:
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
        "models": {"default": "offline"},
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


def planned(folder: Path) -> Job:
    """Prepare a run of the folder's config, as `refresh` does before its first sample."""
    config = folder / "size.yaml"
    setup = set_up(load_config(config), _now())
    workspace, files = workspace_for(folder), RunFiles(folder / "run")
    manifest = first_manifest(setup, workspace, files, source_of(config), limit=None)
    files.root.mkdir()
    write_text(files.config, yaml.safe_dump(setup.config.model_dump(mode="json")))
    write_manifest(files.manifest, manifest)
    return job_of(setup, manifest, files, workspace, REAL)


def plan(folder: Path, samples: int) -> Figures:
    """Plan a run: read the benchmark into the run store."""

    def work() -> None:
        job = planned(folder)
        stages.plan(job)
        job.store.close()

    return measured(work)


def resume_to_assemble(folder: Path, samples: int) -> Figures:
    """Resume a run whose samples all have a result: arms and report are written."""
    store = RunStore.open(folder / "run" / "run.db", now=_now)
    asyncio.run(_fill(store))
    store.close()
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


async def _fill(store: RunStore) -> None:
    """Give every open sample an accepted result."""
    open_ids = store.pending()
    for start in range(0, len(open_ids), 1000):
        ids = open_ids[start : start + 1000]
        await asyncio.gather(*(store.commit(_accepted(known)) for known in ids))


def _accepted(sample_id: str) -> Result:
    text = {"text": f"another text of about the length of a tweet, number {sample_id} #news"}
    return Result(
        sample_id=sample_id,
        outcome="accepted",
        attempts=1,
        semantic_status="reworded",
        semantic=text,
        updated=text,
    )


def _now() -> datetime:
    return datetime.now(UTC)


PARTS: dict[str, Part] = {
    "plan": plan,
    "resume_to_assemble": resume_to_assemble,
    "resume_done": resume_done,
    "checkpoints_exit": checkpoints("exit"),
    "checkpoints_async": checkpoints("async"),
    "checkpoints_sync": checkpoints("sync"),
}

if __name__ == "__main__":
    main()
