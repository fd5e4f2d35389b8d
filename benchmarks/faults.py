"""How well a run survives faulty and throttling endpoints, beside one that never fails.

    python -m benchmarks.faults [--samples 300] [--in-flight 64] [--latency 0.2] [--seeds 5]
                                [--only good faulty narrow limited]

Each sample is a row of 7 dependent calls over everything that a run has. `faulty` answers 5 % of
all requests with 429, 3 % with 500, drops 2 %, says 3 % in prose and cuts 1 % short; `narrow`
answers eight requests at a time and refuses the rest; `limited` answers 20 a second and says in its
headers how many are left. Delivered is a sample with seven stored, valid answers. Server and client
are processes of their own; the client is warmed before its clock starts.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.load import REPLY, Counts, Load, alone, counts, delivered, lost, reply, serving
from benchmarks.load import work as work_on
from tests.support.faults import Faulty
from tests.support.llm_server import Answers, Reply, Request, refused, serve

SHARES = {"throttled": 0.05, "broken": 0.03, "dropped": 0.02, "prose": 0.03, "cut JSON": 0.01}
AT_ONCE, A_SECOND = 8, 20
THIS = "benchmarks.faults"


@dataclass(frozen=True, kw_only=True)
class Survived:
    """What came of one load."""

    samples: int
    delivered: int
    wall_s: float
    counts: Counts
    """Requests, and those of them that a fault was made of, by its name."""
    lost: list[str]
    """Why samples failed."""


# -- endpoints ----------------------------------------------------------------------------------


class Narrow:
    """Answers so many requests at a time, and refuses what is more."""

    def __init__(self, latency_s: float) -> None:
        self.counts = {"refused": 0, "most at once": 0}
        self._latency_s = latency_s
        self._now = 0

    async def __call__(self, _request: Request) -> str | Reply:
        """Answer after a while, or refuse at once."""
        self.counts["most at once"] = max(self._now, self.counts["most at once"])
        if self._now >= AT_ONCE:
            self.counts["refused"] += 1
            return refused(429, "too many at once", Retry_After="1")
        self._now += 1
        await asyncio.sleep(self._latency_s)
        self._now -= 1
        return REPLY


class Limited:
    """Answers so many requests a second, and tells with each how many are left."""

    def __init__(self, latency_s: float) -> None:
        self.counts = {"refused": 0}
        self._latency_s = latency_s
        self._left, self._at = float(A_SECOND), time.monotonic()

    async def __call__(self, _request: Request) -> str | Reply:
        """Answer after a while, or refuse at once."""
        now = time.monotonic()
        self._left = min(A_SECOND, self._left + (now - self._at) * A_SECOND)
        self._at = now
        if self._left < 1:
            self.counts["refused"] += 1
            return refused(429, "too many a second", Retry_After="1", **self._headers())
        self._left -= 1
        headers = self._headers()
        await asyncio.sleep(self._latency_s)
        return Reply(content=REPLY, headers=headers)

    def _headers(self) -> dict[str, str]:
        full_in = (A_SECOND - self._left) / A_SECOND
        return {
            "x-ratelimit-limit-requests": str(A_SECOND),
            "x-ratelimit-remaining-requests": str(int(self._left)),
            "x-ratelimit-reset-requests": f"{full_in * 1000:.0f}ms",
        }


ENDPOINTS: dict[str, Callable[[float, int], tuple[Answers, float]]] = {
    "good": lambda latency_s, _seed: (reply, latency_s),
    "faulty": lambda latency_s, seed: (Faulty(reply, seed, SHARES), latency_s),
    "narrow": lambda latency_s, _seed: (Narrow(latency_s), 0.0),
    "limited": lambda latency_s, _seed: (Limited(latency_s), 0.0),
}
"""How each endpoint answers, and what the server adds to the time that this takes."""


# -- measuring ----------------------------------------------------------------------------------


def measured(load: Load) -> Survived:
    """Work through a load here, after a small one, and say what came of it."""
    server = load.base_url.removesuffix("/v1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = Load(base_url=load.base_url, samples=1, in_flight=1)
        asyncio.run(work_on(small, folder / "warm", name="w"))
        before, began = counts(server), time.perf_counter()
        asyncio.run(work_on(load, folder / "load"))
        wall_s, after = time.perf_counter() - began, counts(server)
        return Survived(
            samples=load.samples,
            delivered=delivered(folder / "load"),
            wall_s=wall_s,
            counts={key: number - before.get(key, 0) for key, number in after.items()},
            lost=lost(folder / "load"),
        )


def run(endpoint: str, options: argparse.Namespace, seed: int) -> Survived:
    """Start an endpoint and a client for it, each a process of its own."""
    told = ["--serve", endpoint, "--latency", str(options.latency), "--seed", str(seed)]
    with serving(THIS, *told) as url:
        load = ["--samples", str(options.samples), "--in-flight", str(options.in_flight)]
        said = alone(THIS, ["--base-url", f"{url}/v1", *load])
    return Survived(**json.loads(said.splitlines()[-1]))


def line(name: str, one: Survived, fault_free: Survived | None) -> str:
    """Return what came of a load in words."""
    requests = one.counts["requests"]
    ratio = f" = {one.wall_s / fault_free.wall_s:.2f} x fault-free" if fault_free else ""
    faults = ", ".join(
        f"{key} {number}" for key, number in one.counts.items() if key not in ("requests",)
    )
    return (
        f"{name:10} delivered {one.delivered}/{one.samples}   {requests} requests = "
        f"{requests / one.samples:.2f} a sample   wall {one.wall_s:.2f} s{ratio}   ({faults})"
    )


def main() -> None:
    """Let the endpoints take turns and print what came of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seeds", type=int, default=5, help="Runs of `faulty`, each its own.")
    parser.add_argument("--only", nargs="+", choices=list(ENDPOINTS), default=list(ENDPOINTS))
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--serve", choices=list(ENDPOINTS), help=argparse.SUPPRESS)
    parser.add_argument("--base-url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        answers, latency_s = ENDPOINTS[options.serve](options.latency, options.seed)
        asyncio.run(serve(0, answers, latency_s))
    elif options.base_url:
        load = Load(base_url=options.base_url, samples=options.samples, in_flight=options.in_flight)
        print(json.dumps(asdict(measured(load))))
    else:
        compare(options, options.only)


def compare(options: argparse.Namespace, endpoints: Sequence[str]) -> None:
    """Run each endpoint and print a line for each run."""
    fault_free = None
    for endpoint in endpoints:
        for seed in range(1, 1 + (options.seeds if endpoint == "faulty" else 1)):
            one = run(endpoint, options, seed)
            fault_free = one if endpoint == "good" else fault_free
            print(line(endpoint, one, fault_free), flush=True)
            for reason in one.lost:
                print(f"{'':10} lost: {reason}")


if __name__ == "__main__":
    main()
