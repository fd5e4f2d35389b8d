"""A refresh through batches beside a live one: outcomes, money, rounds, and kills.

    python -m benchmarks.batches [--samples 300] [--kills 20] [--seed 7]
    python -m benchmarks.batches --parked 2000 10000    # memory alone

Real tweets and news; the roles are rules behind a local server that speaks OpenAI's files and
batches (tests/support/batch_server.py) and answers a body in a batch as it answers it live. First
the run is made live, then through batches, one command a round. Then runs through batches are
killed (SIGKILL) at random moments, each command once, until there were enough kills. "Paid twice"
are questions that the server processed in more than one batch.

`--parked` measures the memory of runs that have so many made samples, all of which wait at their
first question: of the command that asks and sends it, and of the one that collects answers which
are none, asks again and sends that. The news is made searchable before. Below 25,000 samples the
slope holds what is bounded: the largest batch and caches.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.kills import outcome_of
from benchmarks.load import serving
from benchmarks.throughput import CONFIG_VARIABLE, SHARED, write_config
from coreeval.tools.gdelt.local import open_folder
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import RunFiles, Workspace

DEMO = Path(__file__).parents[1] / "examples" / "demo"
WINDOW = {"start": "2025-08-01", "end": "2026-10-01"}
PRICE = {"input": 2.0, "output": 8.0, "batch_input": 1.0, "batch_output": 4.0}
WAITING = 5
MOST_COMMANDS = 60


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A run in a workspace of its own, whose requests are like no other run's."""

    config: Path
    samples: int

    @property
    def run_dir(self) -> Path:
        """Where the run is."""
        return self.config.parent / "run"

    @property
    def calls(self) -> Path:
        """Its call store."""
        return Workspace(self.config.parent / ".coreeval").calls

    def command(self) -> list[str]:
        """Return the command that continues it."""
        start = ["refresh", str(self.config), "--run-dir", str(self.run_dir)]
        begun = RunFiles(self.run_dir).manifest.exists()
        words = ["resume", str(self.run_dir)] if begun else [*start, "--limit", str(self.samples)]
        return [sys.executable, "-m", "coreeval", *words, "--json"]


def make_trial(
    folder: Path, news: Path, url: str, samples: int, number: int, batch: object
) -> Trial:
    """Write the config of a run; the number makes its requests other ones than other runs'."""
    config = write_config(folder, news, url, 16)
    raw = yaml.safe_load(config.read_text())
    model = {"model": "openai:stub", "base_url": url, "seed": number, "price": PRICE}
    raw |= {"models": {"default": model}}
    raw["run"] |= {"batch": batch, "budget_usd": 1000.0}
    config.write_text(yaml.safe_dump(raw))
    return Trial(config=config, samples=samples)


def go_on(trial: Trial) -> dict[str, Any]:
    """Run one command to its end; return what it printed."""
    done = subprocess.run(trial.command(), capture_output=True, text=True, check=False)
    if done.returncode not in (0, WAITING):
        raise SystemExit(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    return dict(json.loads(done.stdout))


def finish(trial: Trial) -> tuple[dict[str, Any], int]:
    """Go on until the run is complete; return what the last command printed, and how many ran."""
    for number in range(1, MOST_COMMANDS):
        said = go_on(trial)
        if said["status"] == "complete":
            return said, number
    raise SystemExit("the run does not end")


def compare(folder: Path, news: Path, url: str, root: str, samples: int) -> dict[str, object]:
    """Make a run live and one through batches, and print what each took; return the outcomes."""
    live = make_trial(folder / "live", news, url, samples, 1, False)
    began = time.perf_counter()
    alone, _ = finish(live)
    print(
        f"live:    {alone['cost']['billed_calls']} calls, {alone['cost']['billed_usd']:.4f} USD, "
        f"{time.perf_counter() - began:.0f} s",
        flush=True,
    )
    trial = make_trial(folder / "batch", news, url, samples, 1, True)
    before, began = paid_in_batches(root), time.perf_counter()
    said, commands = finish(trial)
    inside, cost = (paid_in_batches(root) - before).total(), said["cost"]
    same = outcome_of(trial.run_dir) == outcome_of(live.run_dir)
    print(
        f"batches: {cost['billed_calls']} calls, {inside} in batches "
        f"({inside / cost['billed_calls']:.1%}), {cost['billed_usd']:.4f} USD "
        f"({cost['billed_usd'] / alone['cost']['billed_usd']:.3f} of live), {commands} commands, "
        f"{time.perf_counter() - began:.0f} s, {'same outcomes' if same else 'OTHER OUTCOMES'}",
        flush=True,
    )
    return outcome_of(live.run_dir)


def paid_in_batches(root: str) -> Counter[str]:
    """Return how often the server has processed each question in a batch, by its key."""
    with urllib.request.urlopen(f"{root}/counts", timeout=30) as answer:
        return Counter(json.load(answer)["paid_ids"])


def kill_many(
    folder: Path, news: Path, url: str, options: argparse.Namespace, expected: dict[str, object]
) -> None:
    """Kill commands at random moments until there were enough kills; print what came of it."""
    chance, kills, runs = random.Random(options.seed), Counter[str](), 0
    same = twice = lost = 0
    while kills.total() < options.kills:
        runs += 1
        batch = {"live_below": 0.0}
        trial = make_trial(folder / f"killed{runs}", news, url, options.samples, 1 + runs, batch)
        usual_s = 12.0
        for _ in range(MOST_COMMANDS):
            if kills.total() < options.kills:
                kills[kill_once(trial, chance.uniform(0.5, usual_s))] += 1
            began = time.perf_counter()
            said = go_on(trial)
            usual_s = time.perf_counter() - began
            if said["status"] == "complete":
                break
        same += outcome_of(trial.run_dir) == expected
        paid = paid_in_batches(url.removesuffix("/v1"))
        twice += sum(paid[key] > 1 for key in keys_of(trial))
        lost += said["counts"]["pending"]
        print(f"{kills.total()} kills in {runs} runs: {dict(kills)}", flush=True)
    print(
        f"{kills.total()} kills, {runs} runs: {same} with the same outcomes, "
        f"{twice} questions paid twice, {lost} samples lost"
    )


def kill_once(trial: Trial, after_s: float) -> str:
    """Start the next command, kill it, and return where that found its batches."""
    process = subprocess.Popen(
        trial.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after_s)
    ended = process.poll() is not None
    process.send_signal(signal.SIGKILL)
    process.wait()
    if ended or not trial.calls.exists():
        return "after its end" if ended else "before the first call"
    with closing(open_calls(trial.calls, payer_of(trial))) as calls:
        opened = calls.batches.open_batches()
    if any(batch.state == "sending" for batch in opened):
        return "while creating"
    return "with a batch open" if opened else "between batches"


def park(folder: Path, news: Path, url: str, samples: int) -> list[float]:
    """Send the first questions of samples, twice; return the peak of each command, in MiB."""
    folder.mkdir()
    chance = random.Random(samples)
    with (folder / "made.jsonl").open("w", encoding="utf-8") as file:
        for number in range(samples):
            words = " ".join(f"w{chance.randrange(10**6)}" for _ in range(15))
            file.write(json.dumps({"text": f"{number} {words}", "label": "joy"}) + "\n")
    config = {
        "name": "parked",
        "task": "emotion",
        "dataset": {"format": "jsonl", "path": str(folder / "made.jsonl")},
        "knowledge": {"path": str(news), "window": WINDOW, "min_precision": "crawl"},
        "models": {"default": {"model": "openai:stub", "base_url": url, "price": PRICE}},
        "run": {"concurrency": 16, "batch": {"live_below": 0.0}, "budget_usd": 1e6},
    }
    (folder / "parked.yaml").write_text(yaml.safe_dump(config))
    trial = Trial(config=folder / "parked.yaml", samples=samples)
    return [_peak_of(trial.command()) for _ in range(2)]


def _peak_of(command: list[str]) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != WAITING:
        raise SystemExit(f"exit code {process.returncode}: {said}")
    return used.ru_maxrss / 1024


def print_parked(folder: Path, news: Path, url: str, sizes: list[int]) -> None:
    """Print the memory of runs by their samples, and what 100,000 would take by the slope."""
    peaks = dict[int, list[float]]()
    for number in sizes:
        peaks[number] = park(folder / str(number), news, url, number)
        told = ", ".join(f"{peak:.0f} MiB" for peak in peaks[number])
        print(f"{number} samples parked: {told} (asked and sent; collected and sent)", flush=True)
    if len(sizes) > 1:
        few, many = min(sizes), max(sizes)
        for first, last in zip(peaks[few], peaks[many], strict=True):
            slope = (last - first) / (many - few)
            most = last + slope * (100_000 - many)
            print(f"  {slope * 2**20:.0f} bytes a sample: {most:.0f} MiB for 100,000")


def payer_of(trial: Trial) -> str:
    """Return the name under which a run pays; "" before it has a manifest."""
    from coreeval.runs.manifest import read_manifest

    file = RunFiles(trial.run_dir).manifest
    return read_manifest(file).payer if file.exists() else ""


def keys_of(trial: Trial) -> list[str]:
    """Return the keys of the calls that a run has stored."""
    with closing(open_calls(trial.calls, payer_of(trial))) as calls:
        return [record.key for record in calls.records()]


def main() -> None:
    """Print both runs, and what kills did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--killed-samples", type=int, default=24)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--parked", type=int, nargs="+")
    options = parser.parse_args()
    os.environ |= {"OPENAI_API_KEY": "k", "NO_COLOR": "1"}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.parked:
            made = open_folder(DEMO / "news", folder / "news")
            with serving("tests.support.batch_server", "--seconds", "0") as root:
                print_parked(folder, made, f"{root}/v1", options.parked)
            return
        news = open_folder(SHARED / "gdelt", folder / "news")
        server = write_config(folder / "server", news, "http://127.0.0.1:1/v1", 1)
        os.environ[CONFIG_VARIABLE] = str(server)
        arguments = ["--answers", "benchmarks.throughput:answers", "--looks", "1"]
        with serving("tests.support.batch_server", *arguments) as root:
            compare(folder, news, f"{root}/v1", root, options.samples)
            options.samples = options.killed_samples
            if options.kills:
                one = make_trial(folder / "one", news, f"{root}/v1", options.samples, 1, False)
                finish(one)
                kill_many(folder, news, f"{root}/v1", options, outcome_of(one.run_dir))


if __name__ == "__main__":
    os.environ.pop("COREEVAL_HOME", None)
    main()
