"""A refresh through Ray and PostgreSQL, once undisturbed and once with kills at random moments.

    ray start --head --disable-usage-stats    # with the packages of the extra ray
    python -m benchmarks.cluster [--samples 20000] [--workers 2] [--kills 20] [--latency 0.2]

The samples are the tweets of TweetEval's emotion task; beyond these, the same tweets with another
sentence. A server gives the answers of the rule-based roles. PostgreSQL is started in a temporary
folder. The kills of the second run are, in random order, of a worker, of PostgreSQL (as in a power
cut; it is started again) and of the command (it is resumed). "Sent twice" is the number of requests
that the second run sent beyond those of the first.
"""

import argparse
import csv
import hashlib
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from benchmarks.load import counts, serving
from benchmarks.throughput import CONFIG_VARIABLE, SHARED
from coreeval.tools.gdelt.local import open_folder
from tests.postgresql.server import Server, find_programs, make_server

TAILS = (
    "Again this year.",
    "People keep telling me that.",
    "Just saying it as I see it.",
    "And it is only Monday.",
    "Read that twice.",
)
BETWEEN_S = (15.0, 30.0)
"""The fewest and the most seconds between two kills."""
ACTOR = "ray::Samp"


def write_tweets(file: Path, samples: int) -> None:
    """Write a table of different tweets with their labels."""
    folder = SHARED / "tweeteval" / "emotion"
    names = dict(
        line.split("\t") for line in (folder / "mapping.txt").read_text().splitlines() if line
    )
    known = dict[str, str]()
    for split in ("test", "train", "val"):
        texts = (folder / f"{split}_text.txt").read_text().split("\n")
        labels = (folder / f"{split}_labels.txt").read_text().split("\n")
        pairs = ((text.strip(), label) for text, label in zip(texts, labels, strict=False))
        known |= {text: names[label.strip()].strip() for text, label in pairs if text and label}
    more = ((f"{text} {tail}", label) for tail in TAILS for text, label in known.items())
    rows = list(itertools.islice(itertools.chain(known.items(), more), samples))
    if len(rows) < samples:
        raise SystemExit(f"at most {len(rows)} samples")
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([("text", "label"), *rows])


def write_config(folder: Path, tweets: Path, news: Path, base_url: str, workers: int) -> Path:
    """Write the config of a refresh into a new folder; without workers, that of the server."""
    folder.mkdir()
    ray = {"engine": "ray", "ray": {"workers": workers, "address": "auto"}, "store": "postgresql"}
    config = {
        "name": "cluster",
        "task": "emotion",
        "dataset": {"format": "csv", "path": str(tweets)},
        "knowledge": {
            "path": str(news),
            "window": {"start": "2025-05-01", "end": "2026-10-31"},
            "min_precision": "crawl",
        },
        "models": {"default": {"model": "openai:stub", "base_url": base_url}},
        "run": {"concurrency": 128, "allow_unpriced": True} | (ray if workers else {}),
    }
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(config))
    return file


@dataclass(frozen=True)
class Refresh:
    """One refresh in a workspace of its own."""

    config: Path

    @property
    def run_dir(self) -> Path:
        """The run, which is the only one."""
        return max((self.config.parent / ".coreeval" / "runs" / "cluster").iterdir())

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the command, or resume the run if there is one."""
        begun = (self.config.parent / ".coreeval" / "runs").exists()
        what = ["resume", str(self.run_dir)] if begun else ["refresh", self.config.name]
        log = (self.config.parent / "log").open("ab")
        command = [sys.executable, "-m", "coreeval", *what]
        return subprocess.Popen(command, cwd=self.config.parent, stdout=log, stderr=log)

    def hash_outcomes(self) -> str:
        """Return a digest of the samples, their outcomes and the dataset."""
        command = [sys.executable, "-m", "coreeval", "trace", str(self.run_dir), "--json"]
        said = subprocess.run(command, capture_output=True, check=True, cwd=self.config.parent)
        digest = hashlib.sha256()
        for line in said.stdout.splitlines():
            if line.strip().startswith((b'"sample"', b'"outcome"', b'"excerpt"')):
                digest.update(line)
        for file in sorted((self.run_dir / "dataset").rglob("*.parquet")):
            digest.update(repr(pq.read_table(file).to_pylist()).encode())
        return digest.hexdigest()[:16]


def find_actors() -> list[int]:
    """Return the processes of Ray's actors."""
    said = subprocess.run(["pgrep", "-f", ACTOR], capture_output=True, text=True, check=False)
    return [int(pid) for pid in said.stdout.split()]


def run_killed(refresh: Refresh, server: Server, kills: int, draw: random.Random) -> list[str]:
    """Refresh to the end while processes are killed; return what was killed."""
    due = [("worker", "server", "command")[number % 3] for number in range(kills)]
    draw.shuffle(due)
    done, left = list[str](), iter(due)
    while True:
        process = refresh.start()
        while process.poll() is None:
            if not _is_running_after(process, draw.uniform(*BETWEEN_S)):
                break
            victim = next(left, None)
            if victim is not None and _kill(victim, process, server, draw):
                done.append(victim)
        if process.returncode in (0, 1):  # 1: some samples failed
            return done


def _is_running_after(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.5)
    return process.poll() is None


def _kill(
    victim: str, process: "subprocess.Popen[bytes]", server: Server, draw: random.Random
) -> bool:
    """Kill a process; return whether there was one."""
    if victim == "command":
        process.kill()
        process.wait()
    elif victim == "server":
        server.kill()
        server.start()
    elif actors := find_actors():
        os.kill(draw.choice(actors), 9)
    else:
        return False
    return True


@contextmanager
def _postgresql() -> Iterator[Server]:
    programs = find_programs()
    if programs is None:
        raise SystemExit("PostgreSQL's programs (initdb, pg_ctl) are needed")
    server = make_server(programs)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def main() -> None:
    """Print what both refreshes took, and whether their outcomes are the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=29)
    chosen = parser.parse_args()
    os.environ |= {"OPENAI_API_KEY": "k", "NO_COLOR": "1"}
    with TemporaryDirectory() as temporary, _postgresql() as postgresql:
        folder = Path(temporary)
        os.environ["COREEVAL_STORE_URL"] = postgresql.url
        tweets, news = folder / "tweets.csv", open_folder(SHARED / "gdelt", folder / "news")
        write_tweets(tweets, chosen.samples)
        asked = write_config(folder / "server", tweets, news, "http://127.0.0.1:1/v1", 0)
        os.environ[CONFIG_VARIABLE] = str(asked)
        arguments = ["--latency", str(chosen.latency), "--answers", "benchmarks.throughput:answers"]
        with serving("tests.support.llm_server", *arguments) as root:

            def refresh(name: str, run: Callable[[Refresh], object]) -> tuple[int, str]:
                where = (folder / name, tweets, news, f"{root}/v1", chosen.workers)
                one = Refresh(write_config(*where))
                before, clock = counts(root)["requests"], time.perf_counter()
                run(one)
                took, sent = time.perf_counter() - clock, counts(root)["requests"] - before
                print(f"{name:<12} {took:.0f} s   {sent} requests   {sent / took:.0f} a second")
                return sent, one.hash_outcomes()

            sent, outcomes = refresh("undisturbed", lambda one: one.start().wait())
            killed = list[str]()
            draw = random.Random(chosen.seed)
            again, same = refresh(
                "killed", lambda one: killed.extend(run_killed(one, postgresql, chosen.kills, draw))
            )
    total = {name: killed.count(name) for name in sorted(set(killed))}
    print(f"kills        {total}")
    print(f"outcomes     {'the same' if same == outcomes else 'DIFFERENT'}")
    print(f"sent twice   {again - sent}")


if __name__ == "__main__":
    main()
