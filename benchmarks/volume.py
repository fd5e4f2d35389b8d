"""The main job on real benchmarks: offline, over the wire, and killed in the middle.

    python -m benchmarks.volume --data FOLDER [--emotion 300] [--mrpc 100]

FOLDER has tweeteval/emotion, mrpc and gdelt as their publishers give them. "Over the wire" means
that the offline roles answer behind a local server that speaks OpenAI's protocol, so that every
call is rendered, sent, parsed, stored and counted. Each run is a process of its own.
"""

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

WINDOW = {"start": "2025-05-01", "end": "2026-10-01"}
CONCURRENCY = 32
Counts = dict[str, int]


def main() -> None:
    """Run each benchmark three ways and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--emotion", type=int, default=300)
    parser.add_argument("--mrpc", type=int, default=100)
    parser.add_argument("--latency", type=float, default=0.02, help="Seconds added to each answer.")
    chosen = parser.parse_args()
    sets = {
        "emotion": ({"format": "tweeteval", "path": "tweeteval/emotion"}, chosen.emotion),
        "mrpc": ({"format": "mrpc", "path": "mrpc"}, chosen.mrpc),
    }
    for task, (dataset, limit) in sets.items():
        place = {**dataset, "path": str((chosen.data / dataset["path"]).resolve())}
        with tempfile.TemporaryDirectory() as folder:
            compare(
                task, place, limit, chosen.data.resolve() / "gdelt", Path(folder), chosen.latency
            )


def compare(
    task: str, dataset: dict[str, str], limit: int, news: Path, folder: Path, latency: float
) -> None:
    """Run one benchmark offline, over the wire, and killed and resumed."""
    offline = write_config(folder / "offline", task, dataset, news, "offline")
    started = time.perf_counter()
    counts = run(["refresh", str(offline), "--limit", str(limit), "--run-dir", f"{folder}/a"])
    print(f"{task} offline: {time.perf_counter() - started:.1f} s   {words(counts)}")
    with server(offline, latency) as url:
        model = {"model": "openai:offline-roles", "base_url": f"{url}/v1"}
        wire = write_config(folder / "wire", task, dataset, news, model)
        started = time.perf_counter()
        counts = run(["refresh", str(wire), "--limit", str(limit), "--run-dir", f"{folder}/b"])
        asked = get(f"{url}/counts")
        print(f"{task} wire:    {time.perf_counter() - started:.1f} s   {words(counts)}")
        print(f"{task} wire:    {asked['requests']} calls, {asked['repeats']} asked twice")
    with server(offline, latency) as url:
        model = {"model": "openai:offline-roles", "base_url": f"{url}/v1"}
        again = write_config(folder / "killed", task, dataset, news, model)
        kill_and_resume(task, again, limit, folder / "c", url, half=asked["requests"] // 2)


def kill_and_resume(
    task: str, config: Path, limit: int, run_dir: Path, url: str, *, half: int
) -> None:
    """Kill a run when half of its calls are answered, resume it, and say what was asked again."""
    command = ["refresh", str(config), "--limit", str(limit), "--run-dir", str(run_dir)]
    process = subprocess.Popen(
        [sys.executable, "-m", "coreeval", *command], stderr=subprocess.DEVNULL
    )
    while get(f"{url}/counts")["requests"] < half:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = get(f"{url}/counts")["requests"]
    stored = answered(config.parent / ".coreeval" / "calls.db")
    counts = run(["resume", str(run_dir)])
    after = get(f"{url}/counts")
    print(
        f"{task} killed:  after {before} calls ({stored} answered, {before - stored} in flight); "
        f"resumed: {after['requests']} in all, {after['repeats']} asked again   {words(counts)}"
    )


def answered(store: Path) -> int:
    """Return how many calls the call store holds."""
    with closing(sqlite3.connect(store)) as connection:
        return int(connection.execute("SELECT count(*) FROM calls").fetchone()[0])


def run(arguments: list[str]) -> Counts:
    """Run a command to its end and return its counts."""
    command = [sys.executable, "-m", "coreeval", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    if "error" in document:
        sys.exit(f"{' '.join(arguments)}: {document['error']}")
    return dict(document["counts"])


@contextmanager
def server(config: Path, latency: float) -> Iterator[str]:
    """Start the offline roles behind a local server; yield its URL."""
    command = [sys.executable, "-m", "tests.support.offline_server", "--config", str(config)]
    command += ["--latency", str(latency), "--cache", str(config.parent / "answers")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def get(url: str) -> Counts:
    """Return a JSON document from the local server."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return dict(json.load(answer))


def write_config(
    folder: Path, task: str, dataset: dict[str, str], news: Path, model: object
) -> Path:
    """Write a config into a workspace of its own."""
    config = {
        "name": task,
        "task": task,
        "dataset": dataset,
        "knowledge": {"path": str(news), "window": WINDOW, "min_precision": "crawl"},
        "models": {"default": model, "targets": [{"model": "offline:classifier"}]},
        "run": {"concurrency": CONCURRENCY},
    }
    folder.mkdir()
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def words(counts: Counts) -> str:
    """Return counts as one line."""
    return ", ".join(f"{name} {number}" for name, number in counts.items() if number)


if __name__ == "__main__":
    os.environ.pop("COREEVAL_HOME", None)
    main()
