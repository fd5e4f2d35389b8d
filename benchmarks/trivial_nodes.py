"""Nodes that do nothing but ask, beside the bare SDK: 300 samples of 7 dependent structured calls.

    python -m benchmarks.throughput --trivial [--samples 300] [--repeats 3] [--latency 0.2]
        [--in-flight 64]

This is what LangGraph, stores and the HTTP stack cost alone. Ours runs with everything on: a
LangGraph thread for each sample with its checkpoints, the call store, the run store with its trace,
pacing and retries. The bare SDK is its own asynchronous client with pydantic reading the answers.
Contestants take turns within one run; each is a process of its own on one core, the server on
another. The figures to compare are the ratios. The server says how many requests were in flight at
most. Memory is that of the environment: install the package without extras for what it takes there.
"""

import argparse
import asyncio
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.load import SHAPE, STEPS, Load, Note, alone, counts, lost, prompt, serving, work


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What one contestant took."""

    wall_s: float
    cpu_ms_per_call: float
    peak_mb: float


# -- contestants --------------------------------------------------------------------------------


async def bare_openai(load: Load) -> None:
    """Ask through openai.AsyncOpenAI and read with pydantic."""
    import openai

    form = {"name": "note", "strict": True, "schema": SHAPE.schema}
    client = openai.AsyncOpenAI(base_url=load.base_url, api_key="k", max_retries=0)

    create: Any = client.chat.completions.create  # its types know no schema made at run time

    async def ask(sample: int, step: int, before: str) -> str:
        done = await create(
            model="stub",
            messages=prompt(str(sample), step, before),
            max_completion_tokens=2048,
            response_format={"type": "json_schema", "json_schema": form},
        )
        return str(done.choices[0].message.content)

    await _bare(load, ask)
    await client.close()


async def bare_anthropic(load: Load) -> None:
    """Ask through anthropic.AsyncAnthropic and read with pydantic."""
    import anthropic

    form = {"type": "json_schema", "schema": SHAPE.schema}
    url = load.base_url.removesuffix("/v1")
    client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
    create: Any = client.messages.create

    async def ask(sample: int, step: int, before: str) -> str:
        told, said = prompt(str(sample), step, before)
        done = await create(
            model="stub",
            system=told["content"],
            messages=[said],
            max_tokens=2048,
            output_config={"format": form},
        )
        return str(done.content[0].text)

    await _bare(load, ask)
    await client.close()


async def _bare(load: Load, ask: Callable[[int, int, str], Awaitable[str]]) -> None:
    waiting = iter(range(load.samples))

    async def worker() -> None:
        for sample in waiting:
            before = ""
            for step in range(STEPS):
                note = Note.model_validate_json(await ask(sample, step, before))
                before = note.model_dump_json()

    async with asyncio.TaskGroup() as group:
        for _ in range(load.in_flight):
            group.create_task(worker())


async def ours_openai(load: Load) -> None:
    """Ask through everything that a run has."""
    await _ours(load)


async def ours_anthropic(load: Load) -> None:
    """Ask Anthropic's protocol through everything that a run has."""
    url = load.base_url.removesuffix("/v1")
    await _ours(replace(load, base_url=url, model="anthropic:stub"))


async def _ours(load: Load) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await work(load, Path(folder) / "run")
        assert not lost(Path(folder) / "run")


CONTESTANTS: dict[str, Callable[[Load], Awaitable[None]]] = {
    "bare openai": bare_openai,
    "ours openai": ours_openai,
    "bare anthropic": bare_anthropic,
    "ours anthropic": ours_anthropic,
}


# -- measuring ----------------------------------------------------------------------------------


def main() -> None:
    """Let the contestants take turns and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--contestant", choices=sorted(CONTESTANTS))
    parser.add_argument("--base-url")
    parser.add_argument("--trivial", action="store_true")
    chosen = parser.parse_args()
    load = Load(base_url=chosen.base_url, samples=chosen.samples, in_flight=chosen.in_flight)
    if chosen.contestant:
        print(json.dumps(asdict(measure(CONTESTANTS[chosen.contestant], load))))
        return
    taken: dict[str, list[Taken]] = {name: [] for name in CONTESTANTS}
    arguments = ["--latency", str(chosen.latency), "--answers", "benchmarks.load:reply"]
    with serving("tests.support.llm_server", *arguments) as root:
        url = f"{root}/v1"
        for _ in range(chosen.repeats):
            for name in CONTESTANTS:
                taken[name].append(run_alone(name, url, load))
        most = counts(root)["most_open"]
    for name, runs in taken.items():
        print(row(name, runs, taken["bare " + name.split()[1]]))
    print(f"at most {most} requests in flight")


def measure(contestant: Callable[[Load], Awaitable[None]], load: Load) -> Taken:
    """Run a contestant here, warmed by a few samples, and say what it took."""
    asyncio.run(_awaited(contestant, Load(base_url=load.base_url, samples=2, in_flight=2)))
    cpu, clock = time.process_time(), time.perf_counter()
    asyncio.run(_awaited(contestant, load))
    wall, used = time.perf_counter() - clock, time.process_time() - cpu
    return Taken(
        wall_s=wall,
        cpu_ms_per_call=1000 * used / (load.samples * STEPS),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


async def _awaited(contestant: Callable[[Load], Awaitable[None]], load: Load) -> None:
    await contestant(load)


def run_alone(name: str, url: str, load: Load) -> Taken:
    """Run one contestant in a process of its own."""
    arguments = ["--contestant", name, "--base-url", url, "--samples", str(load.samples)]
    arguments += ["--in-flight", str(load.in_flight)]
    said = alone("benchmarks.trivial_nodes", arguments)
    return Taken(**json.loads(said.splitlines()[-1]))


def row(name: str, runs: list[Taken], bare: list[Taken]) -> str:
    """Return a line of the table: medians, spread of the walls, and what the bare SDK took."""
    wall, cpu = median(runs, "wall_s"), median(runs, "cpu_ms_per_call")
    walls = [one.wall_s for one in runs]
    return (
        f"{name:16} wall {wall:6.2f} s ({min(walls):.2f}-{max(walls):.2f})"
        f" = {wall / median(bare, 'wall_s'):.3f} x bare   cpu {cpu:.2f} ms/call"
        f" = bare {cpu - median(bare, 'cpu_ms_per_call'):+.2f}"
        f"   peak {median(runs, 'peak_mb'):.0f} MB"
    )


def median(runs: list[Taken], name: str) -> float:
    """Return the median of one figure."""
    return float(statistics.median(getattr(one, name) for one in runs))


if __name__ == "__main__":
    main()
