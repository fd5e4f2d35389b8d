"""Does `detect recitation` find targets that recite, and leave others alone? On the real path.

    python -m benchmarks.recitation --data FOLDER [--samples 300] [--targets 20] [--share 0.25]

FOLDER has mrpc as its publisher gives it. The benchmark is refreshed by rules; then targets behind
a local server are asked through the command line. Planted ones recite a share of the originals with
a slip in ten words; clean ones continue with the end of another text of the benchmark; fluent ones
recite the same share of whatever they are asked, twin or not, as one who guesses well. Which texts
a target recites is drawn for each target anew.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from coreeval.config import load_config
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.evaluation.recitation import HalvedText, halve_text
from coreeval.tasks import load_task
from coreeval.tools.workspace import RunFiles
from tests.support.llm_server import Request, serve

SLIP = 0.1
KINDS = ("planted", "clean", "fluent")


def read_prompt(request: Request) -> str:
    """Return the last message of a request."""
    messages = request["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])


class Reciters:
    """Answers of targets with a known memory, by the target's name: `kind-number`."""

    def __init__(self, originals: dict[str, str], twins: dict[str, str], share: float) -> None:
        self._originals, self._twins, self._share = originals, twins, share
        self._ends = sorted(originals.values())

    def __call__(self, request: Request) -> str:
        """Answer a request to continue a text; anything else with the first label."""
        prompt, name = read_prompt(request), str(request["model"])
        _, asked, beginning = prompt.partition("\n\nBeginning:\n")
        if not asked:
            return "0"
        chance = random.Random(f"{name} {beginning}")
        kind = name.partition("-")[0]
        known = self._originals.get(beginning)
        if kind == "fluent":
            known = known or self._twins.get(beginning)
        if kind == "clean" or known is None or chance.random() >= self._share:
            return chance.choice(self._ends)
        words = known.split()
        return " ".join(chance.choice(words) if chance.random() < SLIP else one for one in words)


def halve_all(texts: Iterator[dict[str, str]]) -> dict[str, str]:
    """Return the rest of each text's longest field by its beginning."""
    halves = (halve_text(max(fields.values(), key=len)) for fields in texts)
    return {each.beginning: each.rest for each in halves if isinstance(each, HalvedText)}


def write_config(folder: Path, data: Path, url: str, targets: int) -> Path:
    """Write a config whose roles are played by rules."""
    names = [f"{kind}-{number}" for kind in KINDS for number in range(targets)]
    config = {
        "name": "recitation",
        "task": "mrpc",
        "dataset": {"format": "mrpc", "path": str(data / "mrpc")},
        "knowledge": {
            "path": str(data / "gdelt"),
            "window": {"start": "2025-05-01", "end": "2026-10-01"},
            "min_precision": "crawl",
        },
        "models": {
            "default": "offline",
            "targets": [{"model": f"openai:{name}", "base_url": f"{url}/v1"} for name in names],
        },
        "run": {"concurrency": 32, "allow_unpriced": True},
        "detect": {"evaluate": False},
    }
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def run_command(*arguments: str) -> dict[str, object]:
    """Run a command of CoreEval and return its document."""
    command = [sys.executable, "-m", "coreeval", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr or done.stdout
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}: {said}")
    return dict(json.loads(done.stdout))


@contextmanager
def serve_targets(folder: Path, share: float, data: Path) -> Iterator[str]:
    """Start the targets; they read the run's texts when they are first asked to recite."""
    command = [sys.executable, "-m", __spec__.name, "--data", str(data)]
    command += ["--serve", str(folder), "--share", str(share)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def answer_from(folder: Path, share: float) -> None:
    """Serve until killed."""
    made: list[Reciters] = []

    def answer(request: Request) -> str:
        if "\n\nBeginning:\n" not in read_prompt(request):
            return "0"
        if not made:
            made.append(read_reciters(folder, share))
        return made[0](request)

    asyncio.run(serve(0, answer, 0.0))


def read_reciters(folder: Path, share: float) -> Reciters:
    """Return the targets of a run that has ended."""
    config, task = load_config(folder / "run.yaml"), load_task("mrpc")
    originals = (each.fields for each in load_benchmark(config.dataset, task).samples)
    twins = (
        {name: row[name] for name in task.fields}
        for arm in ("semantic", "updated")
        for file in (RunFiles(folder / "run").dataset / arm).glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    )
    return Reciters(halve_all(originals), halve_all(twins), share)


def main() -> None:
    """Refresh, ask, and count the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--targets", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        answer_from(options.serve, options.share)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serve_targets(folder, options.share, options.data) as url:
            config = write_config(folder, options.data.resolve(), url, options.targets)
            run = str(folder / "run")
            limit = str(options.samples)
            run_command("refresh", str(config), "--limit", limit, "--run-dir", run)
            found = run_command("detect", "recitation", run)
    targets = found["targets"]
    assert isinstance(targets, list)
    verdicts = Counter(
        (each["target"].partition(":")[2].partition("-")[0], each["verdict"]) for each in targets
    )
    for (kind, verdict), number in sorted(verdicts.items()):
        print(f"{kind:<10}{verdict:<16}{number:>4} of {options.targets}")
    for kind in KINDS:
        one = next(each for each in targets if f":{kind}-" in each["target"])
        print(f"{one['target']}: {one['reason']}")


if __name__ == "__main__":
    os.environ.pop("COREEVAL_HOME", None)
    main()
