"""What twenty kills at random moments cost: calls asked again, samples lost, seconds to go on.

    python -m benchmarks.kills [--kills 20] [--task emotion] [--latency 0.03] [--seed 7]
    python -m benchmarks.kills --workers 2 --latency 0.3

The bundled benchmark of 24 samples is refreshed by the command line, its roles behind a local
server. One run is left alone; each of the others is killed (SIGKILL) at a moment drawn between its
first call and its last, and resumed to its end. "Asked again" are requests that had been sent
before: those in flight at the kill may be, an answer that was stored never. "Goes on" is the time
from the start of `coreeval resume` until the server gets its first call, and its first new one.
With several workers, the command or one of its workers is killed, whichever is drawn; the command
goes on by itself after the death of a worker.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from benchmarks.volume import answered, get, run, server
from coreeval.graph.bundled import DATASETS, write_configs
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace

CONCURRENCY = 8
LOOK_EVERY_S = 0.005
WAIT_S = 300.0
Outcome = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Lab:
    """One run in a workspace of its own, with a model of its own: nothing of it is shared."""

    config: Path
    url: str

    @property
    def run_dir(self) -> Path:
        """Where the run is."""
        return self.config.parent / "run"

    @property
    def stored(self) -> int:
        """How many calls are in its call store."""
        file = Workspace(self.config.parent / ".coreeval").calls
        return answered(file) if file.exists() else 0

    @property
    def refresh(self) -> list[str]:
        """Its first command."""
        return ["refresh", str(self.config), "--run-dir", str(self.run_dir)]

    @property
    def resume(self) -> list[str]:
        """Every further one."""
        return ["resume", str(self.run_dir)]


@dataclass(frozen=True, kw_only=True)
class Killed:
    """What one kill cost."""

    after_s: float
    """When it was killed, from its first call."""
    stored: int
    in_flight: int
    asked_again: int
    samples: int
    first_s: float | None
    """From the start of `resume` to its first call; None where none was left to make."""
    first_new_s: float | None
    victim: str
    """`command` or `worker`."""
    same: bool
    """Whether outcomes, facts and published rows are those of the run that was left alone."""

    def __str__(self) -> str:
        first, new = (
            "   - " if seconds is None else f"{seconds:4.2f} s"
            for seconds in (self.first_s, self.first_new_s)
        )
        return (
            f"{self.victim:7} {self.after_s:5.2f} s   {self.stored:4} answered, "
            f"{self.in_flight:2} in flight   {self.asked_again:2} asked again   "
            f"{self.samples} samples   goes on after {first}, new {new}   "
            f"{'same outcomes' if self.same else 'OTHER OUTCOMES'}"
        )


def main() -> None:
    """Kill and resume, and print what each kill cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--task", choices=list(DATASETS), default="emotion")
    parser.add_argument("--latency", type=float, default=0.03, help="Seconds added to each answer.")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server(lab(folder / "any", options.task, "http://127.0.0.1:9", 0).config, 0.0):
            pass  # what it prepares is kept for the next
        kill_all(folder, options)


def kill_all(folder: Path, options: argparse.Namespace) -> None:
    """Leave one run alone, kill the others."""
    served = folder / "any" / "run.yaml"
    with server(served, options.latency) as url:
        task, workers = options.task, options.workers
        left_alone(lab(folder / "first", task, url, 0))  # the server makes each answer once
        alone = lab(folder / "alone", task, url, options.kills + 1, workers)
        seconds, expected = left_alone(alone), outcome(alone)
        calls = alone.stored
        print(f"alone: {calls} calls, {seconds:.2f} s from the first call to the last", flush=True)
        chance, kills = random.Random(options.seed), list[Killed]()
        for number in range(1, options.kills + 1):
            one = lab(folder / f"killed{number}", task, url, number, workers)
            victim = chance.choice(("command", "worker")) if options.workers > 1 else "command"
            kills.append(killed(one, chance.uniform(0, seconds), expected, victim))
            print(f"{number:3}  {kills[-1]}", flush=True)
    print(summary(kills))


def lab(folder: Path, task: str, url: str, number: int, workers: int = 1) -> Lab:
    """Write a config; the number makes its requests other ones than those of other runs."""
    folder.mkdir()
    written = next(path for path in write_configs(folder) if path.stem == task)
    raw = yaml.safe_load(written.read_text(encoding="utf-8"))
    model = {"model": "openai:offline-roles", "base_url": f"{url}/v1", "seed": number}
    raw |= {"models": {"default": model}, "run": {"concurrency": CONCURRENCY}}
    raw["run"]["workers"] = workers
    config = folder / "run.yaml"
    config.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return Lab(config=config, url=url)


def left_alone(one: Lab) -> float:
    """Run to the end; return the seconds from the first call to the last."""
    process = start(one.refresh)
    began = last = seen(one.url, "requests", 0, process)
    while moment := seen(one.url, "requests", get(f"{one.url}/counts")["requests"], process):
        last = moment
    assert began and last and process.wait(WAIT_S) == 0
    return last - began


def killed(one: Lab, after_s: float, expected: Mapping[str, object], victim: str) -> Killed:
    """Kill a run or one of its workers after its first call, and bring it to its end."""
    before = get(f"{one.url}/counts")
    process = start(one.refresh)
    seen(one.url, "requests", before["requests"], process)
    time.sleep(after_s)
    workers = workers_of(process.pid)
    if victim == "worker" and workers:
        os.kill(random.Random(after_s).choice(workers), signal.SIGKILL)
    else:
        process.kill()
        process.wait()
    time.sleep(0.1)  # what the dead process has sent arrives
    then, stored = get(f"{one.url}/counts"), one.stored
    if process.poll() is None:
        assert process.wait(WAIT_S) == 0
        first_s = first_new_s = None
    else:
        first_s, first_new_s = going_on(one, then)
    document, last = run(one.resume), get(f"{one.url}/counts")
    return Killed(
        after_s=after_s,
        stored=stored,
        in_flight=then["requests"] - before["requests"] - stored,
        asked_again=last["repeats"] - then["repeats"],
        samples=document["total"] - document["pending"],
        first_s=first_s,
        first_new_s=first_new_s,
        victim=victim,
        same=outcome(one) == expected,
    )


def workers_of(parent: int) -> list[int]:
    """Return the ids of a command's workers."""
    command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(parent)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "graph.worker" in line]


def going_on(one: Lab, then: Mapping[str, int]) -> tuple[float | None, float | None]:
    """Resume to the end; return when the first call came, and the first that is new."""
    began, process = time.perf_counter(), start(one.resume)
    first = seen(one.url, "requests", then["requests"], process)
    fresh = seen(one.url, "new", then["requests"] - then["repeats"], process)
    assert process.wait(WAIT_S) == 0
    return (first and first - began), (fresh and fresh - began)


def start(arguments: list[str]) -> "subprocess.Popen[bytes]":
    """Start a command."""
    command = [sys.executable, "-m", "coreeval", *arguments, "--json"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def seen(url: str, name: str, most: int, process: "subprocess.Popen[bytes]") -> float | None:
    """Return when the server has counted more; None where the process ends before."""
    while True:
        ended = process.poll() is not None
        counts = get(f"{url}/counts")
        counts["new"] = counts["requests"] - counts["repeats"]
        if counts[name] > most:
            return time.perf_counter()
        if ended:
            return None
        time.sleep(LOOK_EVERY_S)


def outcome(one: Lab) -> Outcome:
    """Return how each sample ended, with its facts, and the rows of each published file."""
    return outcome_of(one.run_dir)


def outcome_of(run_dir: Path) -> Outcome:
    """Return how each sample of a run ended, with its facts, and the rows of published files."""
    files = RunFiles(run_dir)
    with closing(RunStore.open(files.store, now=utc_now)) as store:
        ended: Outcome = {
            each.sample.id: each.result.model_copy(
                update={"facts": tuple(store.facts(each.sample.id))}
            )
            for each in store.sample_results()
        }
    rows = {
        file.parent.name: pq.read_table(file).to_pylist()
        for file in files.dataset.rglob("*.parquet")
    }
    return ended | rows


def summary(kills: list[Killed]) -> str:
    """Return all kills in one line."""
    new = [one.first_new_s for one in kills if one.first_new_s is not None]
    waits = f"new call after {statistics.median(new):.2f} s (at most {max(new):.2f})" if new else ""
    lost = sum(one.asked_again > one.in_flight for one in kills)
    return (
        f"{len(kills)} kills: {sum(one.same for one in kills)} with the same outcomes; "
        f"{sum(one.asked_again for one in kills)} calls asked again of "
        f"{sum(one.in_flight for one in kills)} in flight, {lost} times an answered one; {waits}"
    )


if __name__ == "__main__":
    os.environ.pop("COREEVAL_HOME", None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as where it is installed
    main()
