"""Where a refresh of millions of samples on many workers meets its next wall.

    python -m benchmarks.scale                      # 10 million samples on 100 workers
    python -m benchmarks.scale --workers 2 --in-flight 32 --latency 0.2 --call-ms 16
    python -m benchmarks.scale --held 100000        # what a process holds of all samples

The simulation is of events: a worker asks one call after another of each open sample; between two
answers it computes (one at a time, as the interpreter does), then the call is stored by a server
that commits groups. Costs come from benchmarks.throughput. A part of the samples is simulated; the
rate in the middle half is what a long run has. `--held` builds what the driver and each worker
really hold and prints bytes and seconds a sample.
"""

import argparse
import heapq
import itertools
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coreeval.agents.events import deal_events
from coreeval.config.run import RunConfig
from coreeval.graph.label_batches import divide_samples
from coreeval.graph.sample_groups import GroupQueue, group_samples
from coreeval.schema import Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is refreshed, by whom, and what each step costs."""

    samples: int
    workers: int
    in_flight: int
    """The most requests in flight of one worker."""
    calls: float
    """The calls a sample, in the mean."""
    latency_s: float
    call_ms: float
    """The processor time of a worker for one call, everything included."""
    store_ms: float
    """The processor time of the store's server for one call."""
    store_cores: int
    per_minute: float | None
    """The most calls a minute of all workers; None for no limit."""


class Workers:
    """Simulated workers on one store.

    Args:
        plan: What they do.
        samples: The samples to be simulated.
    """

    def __init__(self, plan: Plan, samples: int) -> None:
        self._plan, self._left = plan, samples
        self._chance = random.Random(7)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._free_at = [0.0] * plan.workers
        self._store_free_at = [0.0] * plan.store_cores
        self._asking = [0] * plan.workers
        self._queues = [deque[int]() for _ in range(plan.workers)]
        self._next_permit = 0.0
        self.answered: list[float] = []
        """When each call was stored."""

    def run(self) -> float:
        """Return the calls a second in the middle half of the run."""
        for worker in range(self._plan.workers):
            for _ in range(self._plan.in_flight + self._plan.in_flight // 4):
                self._begin_sample(0.0, worker)
        while self._events:
            at, _, do = heapq.heappop(self._events)
            do(at)
        times = sorted(self.answered)
        first, last = times[len(times) // 4], times[3 * len(times) // 4]
        return len(times) / 2 / (last - first)

    def _at(self, moment: float, do: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._order), do))

    def _begin_sample(self, now: float, worker: int) -> None:
        if self._left == 0:
            return
        self._left -= 1
        whole = int(self._plan.calls)
        calls = whole + (self._chance.random() < self._plan.calls - whole)
        self._compute(now, worker, calls)

    def _compute(self, now: float, worker: int, calls: int) -> None:
        if calls == 0:
            self._begin_sample(now, worker)
            return
        begun = max(now, self._free_at[worker])
        self._free_at[worker] = begun + self._plan.call_ms / 1000
        self._at(self._free_at[worker], lambda at: self._ask(at, worker, calls))

    def _ask(self, now: float, worker: int, calls: int) -> None:
        if self._asking[worker] >= self._plan.in_flight:
            self._queues[worker].append(calls)
            return
        self._asking[worker] += 1
        sent = now
        if self._plan.per_minute:
            sent = max(now, self._next_permit)
            self._next_permit = sent + 60 / self._plan.per_minute
        took = self._plan.latency_s * self._chance.lognormvariate(-0.08, 0.4)
        self._at(sent + took, lambda at: self._store(at, worker, calls))

    def _store(self, now: float, worker: int, calls: int) -> None:
        self._asking[worker] -= 1
        if self._queues[worker]:
            self._ask(now, worker, self._queues[worker].popleft())
        core = min(range(len(self._store_free_at)), key=self._store_free_at.__getitem__)
        done = max(now, self._store_free_at[core]) + self._plan.store_ms / 1000
        self._store_free_at[core] = done
        self.answered.append(done)
        self._at(done, lambda at: self._compute(at, worker, calls - 1))


def find_limits(plan: Plan) -> dict[str, float]:
    """Return the calls a second that each part of the system can do at most."""
    limits = {
        "workers' processors": plan.workers * 1000 / plan.call_ms,
        "requests in flight": plan.workers * plan.in_flight / plan.latency_s,
    }
    if plan.store_ms:
        limits["store's processors"] = plan.store_cores * 1000 / plan.store_ms
    if plan.per_minute:
        limits["calls a minute"] = plan.per_minute / 60
    return limits


CALL_BYTES, SAMPLE_BYTES = 1_100, 4_300
"""Bytes on disk of a call and of a sample's rows (measured; docs/scale.md)."""


def simulate(plan: Plan, samples: int) -> None:
    """Print what limits a plan, the simulated rate, and what the whole of it takes."""
    for name, most in sorted(find_limits(plan).items(), key=lambda each: each[1]):
        print(f"  {name:<22}{most:>12,.0f} calls/s at most")
    rate = Workers(plan, min(samples, plan.samples)).run()
    hours = plan.samples * plan.calls / rate / 3600
    size = plan.samples * (plan.calls * CALL_BYTES + SAMPLE_BYTES) / 1e9
    print(f"  {'simulated':<22}{rate:>12,.0f} calls/s")
    print(
        f"  {plan.samples:,} samples, {plan.samples * plan.calls:,.0f} calls: {hours:,.1f} h, "
        f"{size:,.1f} GB of stores, {plan.workers * plan.call_ms * rate / plan.workers / 1000:.1f} "
        "cores of workers at work"
    )


# -- what is held -------------------------------------------------------------------------------


def _make_samples(number: int) -> Iterator[Sample]:
    words = "a tweet of some twenty words about the weather and the trains on this day of november"
    for n in range(number):
        text = {"text": f"{words} {n}"}
        yield Sample(id=f"test:{n}", split="test", fields=text, label=0, label_text="joy")


def _measure_held(part: str, number: int, folder: Path) -> None:
    """Build what a process holds of all samples, and print what it took."""
    with RunStore.open(folder / "run.db", now=utc_now) as store:
        if part == "store":
            store.add_samples(_make_samples(number))
            return
        before, clock = _resident(), time.process_time()
        held: object
        match part:
            case "driver: groups":
                held = group_samples(store, RunConfig())
            case "driver: queue":
                ids = store.pending()
                numbers = {one: n // 10 for n, one in enumerate(ids)}
                before, clock = _resident(), time.process_time()
                held = GroupQueue(ids, numbers, {})
            case "driver: dealing events":
                chance = random.Random(1)
                wanted = {
                    one: [f"event {chance.randrange(number // 4)}" for _ in range(20)]
                    for one in store.pending()
                }
                before, clock = _resident(), time.process_time()
                held = deal_events(wanted, reuse=3, each=8, seed=7)
            case _:
                held = divide_samples(store.sample_ids(), 10)
        used, seconds = _resident() - before, time.process_time() - clock
        print(json.dumps({"bytes": used / number, "us": seconds / number * 1e6, "n": bool(held)}))


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


PARTS = ("driver: groups", "driver: queue", "driver: dealing events", "worker: batches")


def print_held(number: int) -> None:
    """Print what each part holds a sample, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("store", *PARTS):
            command = [sys.executable, "-m", "benchmarks.scale", "--part", part, "--held"]
            done = subprocess.run(
                [*command, str(number), "--folder", folder], capture_output=True, check=True
            )
            if done.stdout:
                found = json.loads(done.stdout)
                print(f"  {part:<26}{found['bytes']:>8,.0f} bytes{found['us']:>8.1f} us a sample")


def main() -> None:
    """Simulate a plan, or print what processes hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--simulated", type=int, default=60_000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--calls", type=float, default=4.9)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--call-ms", type=float, default=6.3)
    parser.add_argument("--store-ms", type=float, default=0.3)
    parser.add_argument("--store-cores", type=int, default=8)
    parser.add_argument("--per-minute", type=float)
    parser.add_argument("--held", type=int, help="samples whose memory is measured")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        _measure_held(chosen.part, chosen.held, chosen.folder)
    elif chosen.held:
        print_held(chosen.held)
    else:
        plan = Plan(
            samples=chosen.samples,
            workers=chosen.workers,
            in_flight=chosen.in_flight,
            calls=chosen.calls,
            latency_s=chosen.latency,
            call_ms=chosen.call_ms,
            store_ms=chosen.store_ms,
            store_cores=chosen.store_cores,
            per_minute=chosen.per_minute,
        )
        simulate(plan, chosen.simulated)


if __name__ == "__main__":
    main()
