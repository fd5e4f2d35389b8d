"""Hostile answers and endpoints."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.ssrf import CASES as REDIRECTS
from benchmarks.volume import get
from coreeval.graph.bundled import write_configs

TASK: Final = "emotion"
CONCURRENCY: Final = 8
LONGEST_MS: Final = 100.0
"""CPU milliseconds that no callback of the event loop may take because of an answer."""
MOST_MEMORY: Final = 1.2
"""Times the memory of a run whose answers are as they should be."""
WAIT_S: Final = 600


def hold_up(folder: Path, _chance: Random) -> Outcome:
    """Refresh the demo while every third answer is made to be read slowly."""
    plain, hostile = (_run(folder, kind) for kind in ("none", "texts"))
    longest = hostile["longest"][0]
    broken = list(_unlike(plain, hostile))
    if longest["ms"] > LONGEST_MS:
        broken.append(f"the event loop was held up for {longest['ms']:.0f} ms: {longest['what']}")
    usual = plain["longest"][0]["ms"]
    return Outcome(
        tried=hostile["hostile"],
        held=hostile["hostile"] if not broken else 0,
        measured=f"longest block {longest['ms']:.0f} ms (with good answers: {usual:.0f} ms)",
        broken=tuple(broken),
    )


def swell(folder: Path, _chance: Random) -> Outcome:
    """Refresh the demo while every third response is packed, endless, or has many parts."""
    plain, hostile = (_run(folder, kind) for kind in ("none", "bodies"))
    times = hostile["peak_kib"] / plain["peak_kib"]
    broken = list(_unlike(plain, hostile))
    if times > MOST_MEMORY:
        broken.append(f"it took {times:.2f} times the memory")
    return Outcome(
        tried=hostile["hostile"],
        held=hostile["hostile"] if not broken else 0,
        measured=f"peak memory {times:.2f} times that of a normal run",
        broken=tuple(broken),
    )


def _unlike(plain: Mapping[str, Any], hostile: Mapping[str, Any]) -> Iterator[str]:
    """Yield what says that a hostile run did not come to the end that it should."""
    if not hostile["hostile"]:
        yield "no answer was hostile"
    if hostile["samples"] != plain["samples"]:
        yield f"{hostile['samples']} of {plain['samples']} samples have an outcome"


def _run(folder: Path, kind: str) -> dict[str, Any]:
    """Refresh the demo behind a server, and return what it came to and took."""
    place = folder / kind
    place.mkdir()
    config = next(path for path in write_configs(place) if path.stem == TASK)
    figures = place / "figures.json"
    with _server(config, kind, folder / "answers") as url:
        raw = yaml.safe_load(config.read_text(encoding="utf-8"))
        model = {"model": "openai:offline-roles", "base_url": f"{url}/v1"}
        raw |= {"models": {"default": model}, "run": {"concurrency": CONCURRENCY}}
        wired = place / "wired.yaml"
        wired.write_text(yaml.safe_dump(raw), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.chaos.watched", str(figures)]
        command += ["refresh", str(wired), "--run-dir", str(place / "run"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
        counts = get(f"{url}/counts")
    told = json.loads(done.stdout or "{}").get("counts")
    found: dict[str, Any] = json.loads(figures.read_text(encoding="utf-8"))
    ended = sum(told.values()) if told else done.stderr[-300:]
    return found | {"hostile": counts["hostile"], "samples": ended}


@contextmanager
def _server(config: Path, kind: str, cache: Path) -> Iterator[str]:
    """Start a server of hostile answers; yield its URL."""
    command = [sys.executable, "-m", "benchmarks.chaos.hostile_server"]
    command += ["--config", str(config), "--kind", kind, "--cache", str(cache)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


CASES: tuple[Case, ...] = (
    Case(
        name="every third answer is made to be read slowly",
        promise=f"the event loop is held up for {LONGEST_MS:.0f} ms at most",
        attempt=hold_up,
    ),
    Case(
        name="every third response is packed, endless, or has millions of parts",
        promise=f"memory stays within {MOST_MEMORY} times that of a normal run",
        attempt=swell,
    ),
    *REDIRECTS,
)
