"""Speed beside the bare SDK: 300 samples of 7 dependent structured calls, 200 ms each.

    python -m benchmarks.throughput [--samples 300] [--repeats 3] [--latency 0.2] [--in-flight 64]

Ours runs with everything on: a LangGraph thread for each sample with its checkpoints, the call
store, the run store with its trace, pacing and retries. The bare SDK is its own asynchronous client
with pydantic reading the answers. Contestants take turns within one run; each is a process of its
own on one core, the server on another. The figures to compare are the ratios.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from coreeval.config import ModelConfig
from coreeval.graph.checkpoints import open_checkpoints
from coreeval.graph.pool import Stop, work_through
from coreeval.graph.record import InFlight, recorder
from coreeval.graph.state import SampleInput, SampleNode, SampleState, SampleUpdate
from coreeval.graph.threads import SampleThreads
from coreeval.models import AnswerShape, Asker, Exchange, close_models
from coreeval.models.purse import Purse
from coreeval.schema import Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.calls import open_calls
from coreeval.tools.stores.runs import RunStore

STEPS = 7
ARTICLE = "The council said on Monday that the new line would open in the spring of next year. " * 8
TOLD = (
    "You read a news article and the notes so far. Answer with one JSON object.\n\n" + ARTICLE[:600]
)
REPLY = json.dumps({"note": "The line opens in spring.", "place": "the city", "doubt": "none"})


class Note(BaseModel):
    """What each call answers."""

    note: str
    place: str
    doubt: str


@dataclass(frozen=True, kw_only=True)
class Load:
    """What every contestant is given."""

    base_url: str
    samples: int
    in_flight: int


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What one contestant took."""

    wall_s: float
    cpu_ms_per_call: float
    peak_mb: float


def answers(_request: dict[str, object]) -> str:
    """Answer as the server: always the same note."""
    return REPLY


def prompt(sample: int, step: int, before: str) -> list[dict[str, str]]:
    """Return what is asked in one step: another text for each sample and step."""
    said = f"Sample {sample}, step {step}.\n{before}"
    return [{"role": "system", "content": TOLD}, {"role": "user", "content": said}]


# -- contestants --------------------------------------------------------------------------------


async def bare_openai(load: Load) -> None:
    """Ask through openai.AsyncOpenAI and read with pydantic."""
    import openai

    form = {"name": "note", "strict": True, "schema": AnswerShape(Note).schema}
    client = openai.AsyncOpenAI(base_url=load.base_url, api_key="k", max_retries=0)

    create: Any = client.chat.completions.create  # its types know no schema made at run time

    async def ask(sample: int, step: int, before: str) -> str:
        done = await create(
            model="stub",
            messages=prompt(sample, step, before),
            max_completion_tokens=2048,
            response_format={"type": "json_schema", "json_schema": form},
        )
        return str(done.choices[0].message.content)

    await _bare(load, ask)
    await client.close()


async def bare_anthropic(load: Load) -> None:
    """Ask through anthropic.AsyncAnthropic and read with pydantic."""
    import anthropic

    form = {"type": "json_schema", "schema": AnswerShape(Note).schema}
    url = load.base_url.removesuffix("/v1")
    client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
    create: Any = client.messages.create

    async def ask(sample: int, step: int, before: str) -> str:
        told, said = prompt(sample, step, before)
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
    config = ModelConfig.model_validate({"model": "openai:stub", "base_url": load.base_url})
    await _ours(load, config)


async def ours_anthropic(load: Load) -> None:
    """Ask Anthropic's protocol through everything that a run has."""
    url = load.base_url.removesuffix("/v1")
    config = ModelConfig.model_validate({"model": "anthropic:stub", "base_url": url})
    await _ours(load, config)


async def _ours(load: Load, config: ModelConfig) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        calls = open_calls(folder / "calls.db", "throughput")
        stack.push_async_callback(asyncio.to_thread, calls.close)
        store = RunStore.open(folder / "run.db", now=utc_now)
        stack.push_async_callback(asyncio.to_thread, store.close)
        stack.push_async_callback(close_models)
        saver = await stack.enter_async_context(open_checkpoints(folder / "checkpoints.db"))
        store.add_samples(_samples(load.samples))
        purse = Purse(calls.ledger, {})
        exchange = Exchange(calls, purse, in_flight=load.in_flight, env={config.key_env: "k"})
        asker = exchange.asker(config, "composer")
        in_flight, stop = InFlight(utc_now), Stop()
        threads = SampleThreads(
            app=_graph(asker, store, in_flight).compile(checkpointer=saver),
            saver=saver,
            checkpoints=folder / "checkpoints.db",
            store=store,
            in_flight=in_flight,
            stop=stop,
            prefix="throughput",
            max_attempts=1,
            timeout_s=900,
        )

        async def work(sample_id: str) -> None:
            await threads.run(sample_id)

        await work_through(store.pending(), work, concurrency=load.in_flight, stop=stop)
        assert store.counts() == {"no_knowledge": load.samples}, store.counts()


def _samples(count: int) -> Iterator[Sample]:
    for number in range(count):
        yield Sample(id=str(number), fields={"text": "t"}, label=0, label_text="joy", split="test")


def _graph(
    asker: Asker, store: RunStore, in_flight: InFlight
) -> StateGraph[SampleState, None, SampleInput, SampleState]:
    """Return seven nodes in a row, each of them one call."""
    shape = AnswerShape(Note)
    wrap = recorder(store, in_flight, utc_now, "throughput")

    def node(step: int) -> SampleNode:
        async def asked(state: SampleState) -> SampleUpdate:
            before = state.get("composed", {}).get("note", "")
            messages = prompt(int(state["sample_id"]), step, before)
            note = await asker.ask(messages, shape)
            update = SampleUpdate(composed={"note": note.model_dump_json()})
            if step == STEPS - 1:
                update["outcome"] = "no_knowledge"
            return update

        return asked

    builder = StateGraph(SampleState, input_schema=SampleInput)
    names = [f"step{step}" for step in range(STEPS)]
    for step, name in enumerate(names):
        builder.add_node(name, wrap(name, node(step)))
    for one, other in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(one, other)
    return builder


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
    chosen = parser.parse_args()
    load = Load(base_url=chosen.base_url, samples=chosen.samples, in_flight=chosen.in_flight)
    if chosen.contestant:
        print(json.dumps(asdict(measure(CONTESTANTS[chosen.contestant], load))))
        return
    taken: dict[str, list[Taken]] = {name: [] for name in CONTESTANTS}
    with server(chosen.latency) as url:
        for _ in range(chosen.repeats):
            for name in CONTESTANTS:
                taken[name].append(run_alone(name, url, load))
    for name, runs in taken.items():
        print(row(name, runs, taken["bare " + name.split()[1]]))


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
    """Run one contestant in a process of its own on the last core."""
    command = [sys.executable, "-m", "benchmarks.throughput", "--contestant", name]
    command += ["--base-url", url, "--samples", str(load.samples)]
    command += ["--in-flight", str(load.in_flight)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, preexec_fn=lambda: pin(-1)
    )
    return Taken(**json.loads(done.stdout.splitlines()[-1]))


def pin(core: int) -> None:
    """Keep this process on one core, where there are several."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core]})


@contextmanager
def server(latency_s: float) -> Iterator[str]:
    """Run the answering server in a process of its own on the first core; yield its base_url."""
    command = [sys.executable, "-m", "tests.support.llm_server", "--latency", str(latency_s)]
    command += ["--answers", "benchmarks.throughput:answers"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: pin(0)
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


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
