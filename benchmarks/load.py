"""What faults are thrown at: samples of dependent calls through everything that a run has."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from coreeval.config import ModelConfig
from coreeval.graph.checkpoints import open_checkpoints
from coreeval.graph.pool import Stop, run_pool
from coreeval.graph.recorder import InFlight, build_recorder
from coreeval.graph.state import SampleInput, SampleNode, SampleState, SampleUpdate
from coreeval.graph.threads import SampleThreads
from coreeval.models import ModelClient, ModelPool, OutputSchema, close_models
from coreeval.models.budget import Budget
from coreeval.schema import Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore

STEPS = 7
ARTICLE = "The council said on Monday that the new line would open in the spring of next year. " * 8
TOLD = (
    "You read a news article and the notes so far. Answer with one JSON object.\n\n" + ARTICLE[:600]
)
REPLY = json.dumps({"note": "The line opens in spring.", "place": "the city", "doubt": "none"})
Counts = dict[str, int]


class Note(BaseModel):
    """What each call answers."""

    note: str
    place: str
    doubt: str


SHAPE = OutputSchema(Note)


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much is asked of whom."""

    base_url: str
    samples: int
    in_flight: int
    model: str = "openai:stub"


def reply(_request: dict[str, object]) -> str:
    """Answer as the server: always the same note."""
    return REPLY


def prompt(sample: str, step: int, before: str) -> list[dict[str, str]]:
    """Return what is asked in one step: another text for each sample and step."""
    said = f"Sample {sample}, step {step}.\n{before}"
    return [{"role": "system", "content": TOLD}, {"role": "user", "content": said}]


# -- working ------------------------------------------------------------------------------------


async def work(load: Load, folder: Path, *, name: str = "s") -> None:
    """Bring samples through their steps; what came of it is in the folder.

    Args:
        load: How much is asked of whom.
        folder: Where calls.db, run.db and checkpoints.db are made.
        name: Begins each sample's id, so that two loads ask different questions.
    """
    folder.mkdir()
    config = ModelConfig.model_validate({"model": load.model, "base_url": load.base_url})
    async with AsyncExitStack() as stack:
        calls = open_calls(folder / "calls.db", "load")
        stack.push_async_callback(asyncio.to_thread, calls.close)
        store = RunStore.open(folder / "run.db", now=utc_now)
        stack.push_async_callback(asyncio.to_thread, store.close)
        stack.push_async_callback(close_models)
        saver = await stack.enter_async_context(open_checkpoints(folder / "checkpoints.db"))
        store.add_samples(_samples(load.samples, name))
        exchange = ModelPool(calls, Budget(calls.ledger, {}), in_flight=load.in_flight, env={})
        in_flight, stop = InFlight(utc_now), Stop()
        graph = _graph(exchange.open_client(config, "composer"), store, in_flight)
        threads = SampleThreads(
            app=graph.compile(checkpointer=saver),
            saver=saver,
            checkpoints=folder / "checkpoints.db",
            store=store,
            in_flight=in_flight,
            stop=stop,
            prefix="load",
            max_attempts=1,
            timeout_s=900,
        )

        async def sample(sample_id: str) -> None:
            await threads.run(sample_id)

        await run_pool(store.pending(), sample, concurrency=load.in_flight, stop=stop)


def _samples(count: int, name: str) -> Iterator[Sample]:
    for number in range(count):
        yield Sample(
            id=f"{name}{number}", fields={"text": "t"}, label=0, label_text="joy", split="test"
        )


def _graph(
    client: ModelClient, store: RunStore, in_flight: InFlight
) -> StateGraph[SampleState, None, SampleInput, SampleState]:
    """Return seven nodes in a row, each of them one call."""
    wrap = build_recorder(store, in_flight, utc_now, "load")

    def node(step: int) -> SampleNode:
        async def asked(state: SampleState) -> SampleUpdate:
            before = state.get("composed", {}).get("note", "")
            note = await client.ask(prompt(state["sample_id"], step, before), SHAPE)
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


# -- what came of it ----------------------------------------------------------------------------


def delivered(folder: Path) -> int:
    """Return how many samples have an outcome and a valid answer, read anew, for every step."""
    steps = Counter[str]()
    with closing(open_calls(folder / "calls.db")) as calls:
        for record in calls.records():
            if record.valid:
                SHAPE.parse(record.response)
                asked = json.loads(record.request)["messages"][1]["content"]
                steps[asked.split(",")[0].removeprefix("Sample ")] += 1
    with closing(RunStore.open(folder / "run.db", now=utc_now)) as store:
        done = [one.sample.id for one in store.sample_results(["no_knowledge"])]
    return sum(steps[sample_id] == STEPS for sample_id in done)


def lost(folder: Path) -> list[str]:
    """Return why samples failed."""
    with closing(RunStore.open(folder / "run.db", now=utc_now)) as store:
        return [one.result.reason for one in store.sample_results(["failed"])]


# -- processes ----------------------------------------------------------------------------------


def pin(core: int) -> None:
    """Keep this process on one core, where there are several."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core]})


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[str]:
    """Run a module that serves in a process of its own on the first core; yield its URL."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: pin(0)
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        yield said if said.startswith("http://") else f"http://127.0.0.1:{int(said)}"
    finally:
        process.terminate()
        process.wait()


def alone(module: str, arguments: Sequence[str]) -> str:
    """Run a module to its end in a process of its own on the last core; return what it said."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=lambda: pin(-1)
    )
    return done.stdout


def counts(url: str) -> Counts:
    """Return what a server has counted."""
    with urllib.request.urlopen(f"{url}/counts", timeout=30) as answer:
        return dict(json.load(answer))
