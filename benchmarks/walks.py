"""How much of the package four common paths run through: files, lines and functions.

    python -m benchmarks.walks

A reader who follows a path has to open these files. Each path runs in a process of its own: a model
call that is refused once with 429 and then answered, with the frames from the node to the HTTP
request; PCR of recorded pairs; `trace` of one sample; NumLeak of recorded answers.
"""

import argparse
import asyncio
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import aiohttp
import yaml

import coreeval
from coreeval.agents.label_judge import LLMLabelJudge
from coreeval.cli import main as run_command
from coreeval.config import ModelConfig
from coreeval.graph.bundled import demo_data
from coreeval.models import Retry, close_models
from coreeval.prompts import load_prompts
from coreeval.tasks import load_task
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, refused, script

PACKAGE = str(Path(coreeval.__file__).parent)
Figures = dict[str, int]
Function = tuple[str, str]
"""The file and the qualified name of a function."""


class Walk:
    """Notes the functions of the package that run inside the block."""

    def __init__(self) -> None:
        self.functions = set[Function]()

    def __enter__(self) -> "Walk":
        sys.setprofile(self._note)
        threading.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        ours = code.co_flags & 1 and code.co_filename.startswith(PACKAGE)  # no body of a class
        if event == "call" and ours and not code.co_qualname.startswith("<"):
            self.functions.add((code.co_filename, code.co_qualname))

    def figures(self) -> Figures:
        """Return the number of files, of their lines, and of functions."""
        files = {file for file, _ in self.functions}
        lines = sum(len(Path(file).read_text("utf-8").splitlines()) for file in files)
        return {"files": len(files), "lines": lines, "functions": len(self.functions)}


def walk_retry(folder: Path) -> Figures:
    """Have the label judge ask a model that refuses the first request with 429."""
    figures = Figures()
    depths = {"task": 0, "request": 0}  # of whoever waits, and of the task that sends

    def count_frames(name: str, function: Any) -> Any:  # noqa: ANN401 - of others
        def counting(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            depths[name] = sum(1 for _ in _package_frames(sys._getframe()))
            return function(*given, **named)

        return counting

    async def ask() -> None:
        answer = {"cue": "so happy", "label": "joy", "confidence": "high", "odd": "", "fluency": 3}
        replies = script(refused(429, "slow down"), Reply(content=json.dumps(answer)))
        async with LLMServer(replies).running() as server:
            config = ModelConfig(model="openai:stub", base_url=server.url)
            with closing(open_calls(folder / "calls.db")) as store:
                pool = exchange(store, retry=Retry(first_s=0.0, longest_s=0.0))
                task = load_task("emotion")
                client = pool.open_client(config, "label_judge")
                judge = LLMLabelJudge(task, client, load_prompts())
                with Walk() as walk:
                    await judge({"text": "so happy today"})
                figures.update(walk.figures())
            await close_models()

    request, task = aiohttp.ClientSession._request, CallStore.answer
    with (
        mock.patch.object(aiohttp.ClientSession, "_request", count_frames("request", request)),
        mock.patch.object(CallStore, "answer", count_frames("task", task)),
    ):
        asyncio.run(ask())
    frames = depths["request"] + depths["task"] + 2  # the node above, and the store between them
    return figures | {"frames": frames}


def _package_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            yield frame
        frame = frame.f_back


def walk_pcr(folder: Path) -> Figures:
    """Measure PCR on recorded pairs."""
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as file:
        for split in ("train", "test"):
            for n in range(50):
                said = "right" if n % 3 else "wrong"
                row = {"id": f"{split}-{n}", "split": split, "reference": "right",
                       "original_output": said, "modified_output": said}  # fmt: skip
                file.write(json.dumps(row) + "\n")
    by = ("--metric", "exact_match", "--consistency", "exact", "--draws", "200")
    return walk_command("detect", "pcr", "--pairs", "pairs.jsonl", *by)


def walk_trace(folder: Path) -> Figures:
    """Tell the story of one sample of a finished run."""
    config = {
        "name": "walk", "task": "emotion", "dataset": {
            "format": "tweeteval", "path": str(demo_data() / "emotion"), "split": "test",
        },
        "knowledge": {
            "path": str(demo_data() / "news"), "min_precision": "crawl",
            "window": {"start": "2025-08-01", "end": "2026-10-01"},
        },
        "models": {"default": "offline"},
    }  # fmt: skip
    (folder / "walk.yaml").write_text(yaml.safe_dump(config), "utf-8")
    run_quietly("refresh", "walk.yaml", "--limit", "2", "--run-dir", "run")
    listed = json.loads(run_quietly("trace", "run", "--json"))
    return walk_command("trace", "run", listed["samples"][0]["sample"])


def walk_numleak(folder: Path) -> Figures:
    """Count recorded answers to questions about a series."""
    series = demo_data() / "synthetic_numbers"
    with (series / "values.csv").open(encoding="utf-8") as file:
        values = list(csv.DictReader(file))[:40]
    with (folder / "answers.jsonl").open("w", encoding="utf-8") as file:
        for each in values:
            row = {"model": "m", "series": "synthetic_market", "date": each["date"],
                   "variant": "value", "response": f"It was {each['value']} percent."}  # fmt: skip
            file.write(json.dumps(row) + "\n")
    counted = ("--responses", "answers.jsonl", "--draws", "100")
    return walk_command("detect", "numleak", *counted, "--series", str(series / "series.yaml"))


def walk_command(*arguments: str) -> Figures:
    """Return what a command runs through."""
    with Walk() as walk:
        run_quietly(*arguments)
    return walk.figures()


def run_quietly(*arguments: str) -> str:
    """Return what a command prints; it has to end well."""
    with redirect_stdout(io.StringIO()) as printed:
        code = run_command(list(arguments))
    if code:
        sys.exit(f"coreeval {' '.join(arguments)} ended with {code}")
    return printed.getvalue()


WALKS = {
    "a 429, then an answer": walk_retry,
    "PCR of recorded pairs": walk_pcr,
    "trace of a sample": walk_trace,
    "NumLeak of recorded answers": walk_numleak,
}


def main() -> None:
    """Walk each path in a process of its own and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=WALKS, help="Walk one, and print its figures as JSON.")
    chosen = parser.parse_args()
    if chosen.only:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print(json.dumps(WALKS[chosen.only](Path(folder))))
        return
    for name in WALKS:
        command = [sys.executable, "-m", "benchmarks.walks", "--only", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        figures = json.loads(done.stdout.splitlines()[-1])
        print(f"{name:30}" + "   ".join(f"{key} {value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
