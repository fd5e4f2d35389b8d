"""How fast a large run can be looked at: lists, figures, stories, pages, `coreeval status`.

    python -m benchmarks.viewer [--samples 100000] [--keep FOLDER]

Aims on one core: any page of any filter within 200 ms, a sample within 100 ms, `coreeval status` as
a process within 300 ms, and no more than 400 MB. Ten steps for each sample on average; the call
store has the texts of the first few. `--keep` leaves the run there and takes it up again.
"""

import argparse
import multiprocessing
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.generated_run import generate
from coreeval.runs.history import read_sample_history
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_queries import SampleFilter, SampleListing
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.app import create_app
from coreeval.viewer.rendering import build_run_url, build_sample_url

TIMES = 5
LOST = SampleFilter(on_original="right", on_updated="wrong")
WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
Job = Callable[[], object]


def main() -> None:
    """Time everything and print it; on a machine that is busy with more, CPU is what compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="Folder of a run that is kept or found there.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.keep or Path(scratch)
        run, began, cpu = folder / "run", time.perf_counter(), _cpu()
        if not run.exists():
            _generate(folder, chosen.samples)
            wall, used = time.perf_counter() - began, _cpu() - cpu
            print(f"written in {wall:.0f} s, {1000 * used / chosen.samples:.2f} ms CPU a sample")
        size = RunFiles(run).store.stat().st_size / 2**20
        print(f"{chosen.samples} samples, run.db {size:.0f} MB")
        _time_data(run, chosen.samples)
        _time_pages(run, chosen.samples)
        _time_status(run)
        print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _generate(folder: Path, samples: int) -> None:
    """Generate the run in a process of its own, whose memory is not counted."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        process.submit(generate, folder, samples).result()


def _time_data(run: Path, samples: int) -> None:
    files = RunFiles(run)
    with closing(RunStore.open(files.store, now=utc_now)) as store:
        _print("data", _listings(store.listing, samples))
        with closing(open_calls(run.parent / ".coreeval" / "calls.db")) as calls:
            _print(
                "story",
                {
                    "with calls": lambda: read_sample_history(store, calls, "emotion/test/3"),
                    "calls gone": lambda: read_sample_history(
                        store, calls, f"emotion/test/{samples}"
                    ),
                },
            )


def _listings(listing: SampleListing, samples: int) -> Mapping[str, Job]:
    middle, half = f"emotion/test/{samples // 2}", samples // 2
    place = listing.page(sort="usd", offset=half, limit=1).first
    rejected = SampleFilter(outcomes=("rejected_facts", "rejected_form"))
    return {
        "first page": listing.page,
        "last page": lambda: listing.page(offset=samples - 50),
        "by cost, descending": lambda: listing.page(sort="usd", descending=True),
        "by cost, the middle": lambda: listing.page(sort="usd", offset=half),
        "by cost, what follows": lambda: listing.page(sort="usd", after=place),
        "by cost, the last page": lambda: listing.page(sort="usd", offset=samples - 50),
        "by id": lambda: listing.page(sort="sample"),
        "rejected": lambda: listing.page(rejected),
        "wrong on updated": lambda: listing.page(LOST),
        "wrong on updated, of one": lambda: listing.page(
            LOST.model_copy(update={"target": "openai:middle"})
        ),
        "one cause": lambda: listing.page(SampleFilter(cause="headline_run")),
        **_searches(listing, samples),
        "neighbours": lambda: listing.neighbours(middle),
        "neighbours, by cost": lambda: listing.neighbours(middle, sort="usd", descending=True),
        "neighbours, text": lambda: listing.neighbours(middle, SampleFilter(text="festival")),
        "overview": listing.overview,
    }


def _searches(listing: SampleListing, samples: int) -> Mapping[str, Job]:
    """Return searches by the index, and without it as in a run of an earlier version."""
    texts = {"many": "festival", "few": f"test/{samples - 7}", "none": "nobody wrote this"}
    jobs = dict[str, Job]()
    for name, text in texts.items():
        search = partial(listing.page, SampleFilter(text=text))
        jobs[f"text, {name}"] = search
        jobs[f"text, {name}, all read"] = partial(_without_index, search)
    return jobs


def _without_index(job: Job) -> None:
    with patch("coreeval.tools.stores.run_search.can_index", return_value=False):
        job()


def _time_pages(run: Path, samples: int) -> None:
    """Time the pages without a socket, then over HTTP."""
    app = create_app([run])
    (key,) = app.state.catalog.find_runs()
    inside = TestClient(app, base_url="http://127.0.0.1")
    _print("page", {name: partial(_get, inside, url) for name, url in _urls(key, samples)})
    with served(app) as url, httpx2.Client(base_url=url) as outside:
        _print("HTTP", {name: partial(_get, outside, url) for name, url in _urls(key, samples)})


def _urls(key: str, samples: int) -> Iterator[tuple[str, str]]:
    listed, middle = build_run_url(key, "samples"), f"emotion/test/{samples // 2}"
    yield "runs", "/"
    yield "a run", build_run_url(key)
    yield "samples", listed
    yield "samples, by cost", f"{listed}?sort=-usd"
    yield "samples, wrong on updated", f"{listed}?on_original=right&on_updated=wrong"
    yield "targets", build_run_url(key, "targets")
    yield (
        "targets, of one",
        build_run_url(key, "targets", target="openai:middle", on_updated="wrong"),
    )
    yield "samples, text", f"{listed}?text=festival"
    yield "a sample", build_sample_url(key, middle)
    yield "a sample with calls", build_sample_url(key, "emotion/test/3")
    yield "a sample, of a text", build_sample_url(key, middle, "text=festival")


def _get(client: httpx2.Client | TestClient, url: str) -> None:
    client.get(url).raise_for_status()


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve pages on a free port of loopback for the block; return their address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def _time_status(run: Path) -> None:
    command = [sys.executable, "-m", "coreeval", "status", str(run)]
    _print("process", {"status": lambda: subprocess.run(command, check=True, capture_output=True)})


def _print(what: str, jobs: Mapping[str, Job]) -> None:
    for name, job in jobs.items():
        walls, cpus = zip(*_timed(job), strict=True)
        print(f"{what:<8} {name:<24} median {median(walls):7.1f} ms   CPU {median(cpus):6.1f} ms")


def _timed(job: Job) -> Iterator[tuple[float, float]]:
    """Yield wall and CPU milliseconds of a few goes, with those of processes that it started."""
    for _ in range(TIMES):
        began, cpu = time.perf_counter(), _cpu()
        job()
        yield 1000 * (time.perf_counter() - began), 1000 * (_cpu() - cpu)


def _cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in WHO)


if __name__ == "__main__":
    main()
