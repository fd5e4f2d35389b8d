"""How the news store behaves with a month of news: making parts, finding evidence, bytes.

    python -m benchmarks.knowledge [--days 30] [--articles 100000] [--seed 7] [--folder DIR]

Generates segments (benchmarks/news.py), makes parts of them, then asks. Each step runs in a process
of its own, so that its peak memory is its own. Cold means a fresh process, and the page cache
dropped for the store's files where the system lets us. Medians are over five repetitions.
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
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from benchmarks.news import COMMON, NAMES, START, World, ranks, segment
from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.store_catalog import StoreLayout
from coreeval.tools.gdelt.local import LocalKnowledge, open_local
from coreeval.tools.gdelt.sync.store_ledger import FileRow, LedgerEntry, SegmentRow, open_ledger

Figures = dict[str, object]
ENTITIES, TOPICS, K = 500, 100, 8
ROUNDS = 5
FEEDS = 97
"""Files that the generated rows say they are from."""


def main() -> None:
    """Run the steps and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--articles", type=int, default=100_000, help="pages a day")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--folder", type=Path, help="keep the store here, and take it if it is there"
    )
    parser.add_argument("--step", choices=sorted(STEPS))
    chosen = parser.parse_args()
    if chosen.step:
        print(json.dumps(STEPS[chosen.step](chosen.folder, chosen)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{chosen.days} days of {chosen.articles:,} pages, {os.cpu_count()} cores\n")
        print("| step | what | figure | load |\n|---|---|---|---|")
        for step in STEPS:
            report(step, folder, chosen)


def report(step: str, folder: Path, chosen: argparse.Namespace) -> None:
    """Run one step in a process of its own and print its figures, and how busy the machine was."""
    command = [sys.executable, "-m", "benchmarks.knowledge", "--step", step]
    for name in ("days", "articles", "seed"):
        command += [f"--{name}", str(getattr(chosen, name))]
    done = subprocess.run(
        [*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True, check=True
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    load = f"{os.getloadavg()[0]:.1f}"
    for name, figure in figures.items():
        print(f"| {step} | {name} | {figure} | {load} |", flush=True)


def list_segments(store: Path, listed: Mapping[str, tuple[str, int]]) -> None:
    """List files and segments as an intake would have, once."""
    files = [
        FileRow(
            id=number, name=f"{number:02d}.gkg.csv.zip", feed="gkg", batch=None, size=0,
            md5=str(number), state="read", rows=0, articles=0, read_at=0,
        )
        for number in range(FEEDS)
    ]  # fmt: skip
    with open_ledger(StoreLayout(store).ledger) as ledger:
        known = {segment.path for segment in ledger.segments()}
        segments = [SegmentRow(path, *told) for path, told in listed.items() if path not in known]
        ledger.commit(LedgerEntry(files=[] if ledger.files() else files, segments=segments))


def generate(store: Path, chosen: argparse.Namespace) -> Figures:
    """Write the segments, a day each, unless they are there."""
    world = World.made(chosen.seed)
    listed = {}
    for day in range(chosen.days):
        name = f"{START + timedelta(days=day):%Y-%m-%d}"
        path = store / "segments" / name / "00000001-00000000.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True)
            pq.write_table(segment(world, day, chosen.articles), path, compression="zstd")
        listed[path.relative_to(store).as_posix()] = name, pq.read_metadata(path).num_rows
    list_segments(store, listed)
    rows = sum(count for _, count in listed.values())
    return {"rows": rows, "MB a day": round(megabytes(store / "segments") / chosen.days, 1)}


def make_parts(store: Path, chosen: argparse.Namespace) -> Figures:
    """Make parts of all segments."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = compact(store)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "parts": made.parts,
        "rows a second": int(made.rows / wall),
        "rows a second of processor time": int(made.rows / cpu),
        "seconds": round(wall, 1),
        "most memory, MB": peak(),
        "MB a day": round(megabytes(store / "parts") / chosen.days, 1),
    }


def ask_cold(store: Path, chosen: argparse.Namespace) -> Figures:
    """Open the store and ask for all entities, once."""
    dropped = drop_cache(store)
    names, queries = entities(chosen)
    start = time.perf_counter()
    with open_local(store, store) as opened:
        opening = time.perf_counter() - start
        found = ask(opened, queries, chosen)
    return {
        "page cache": "dropped" if dropped else "not dropped",
        "to open, ms": round(1000 * opening, 1),
        f"{len(names)} names, seconds": round(time.perf_counter() - start, 2),
        "pieces of evidence": found,
        "most memory, MB": peak(),
    }


def ask_warm(store: Path, chosen: argparse.Namespace) -> Figures:
    """Ask again and again."""
    names, queries = entities(chosen)
    described = topics(chosen)
    with open_local(store, store) as opened:
        ask(opened, queries, chosen)
        return {
            f"{len(names)} names, seconds": median(lambda: ask(opened, queries, chosen)),
            f"{len(names)} names, seconds of processor time": median(
                lambda: ask(opened, queries, chosen), clock=time.process_time
            ),
            "one name, ms": in_ms(median(*[single(opened, one, chosen) for one in queries[:40]])),
            f"{TOPICS} topics, seconds": median(lambda: ask(opened, described, chosen)),
            "commonest names, seconds": median(lambda: opened.names(window(chosen))),
            "coverage, ms": in_ms(median(lambda: opened.coverage(window(chosen)))),
            "most memory, MB": peak(),
        }


def single(
    opened: LocalKnowledge, query: EntityQuery, chosen: argparse.Namespace
) -> Callable[[], int]:
    """Return what asks for one name."""
    return lambda: ask(opened, [query], chosen)


def ask(opened: LocalKnowledge, queries: Sequence[EntityQuery], chosen: argparse.Namespace) -> int:
    """Ask once; return how many pieces of evidence were found."""

    async def found() -> int:
        answer = await opened.fetch(queries, window(chosen), K)
        return sum(len(evidence) for evidence in answer.by_query.values())

    return asyncio.run(found())  # of what it returns, asyncio.run makes a repr at its end


def window(chosen: argparse.Namespace) -> Window:
    """Return the window that holds all days."""
    return Window(start=START - timedelta(days=1), end=START + timedelta(days=chosen.days))


def entities(chosen: argparse.Namespace) -> tuple[list[str], list[EntityQuery]]:
    """Return names as the news has them: half by how often they are named, half any."""
    world, source = World.made(chosen.seed), np.random.default_rng(chosen.seed)
    common = dict.fromkeys(ranks(source, 1.02, NAMES, 10 * ENTITIES).tolist())
    numbers = [*islice(common, ENTITIES // 2), *source.integers(0, NAMES, ENTITIES)]
    names = [world.names[number].as_py() for number in islice(dict.fromkeys(numbers), ENTITIES)]
    return names, [EntityQuery(id=f"q{at}", text=name) for at, name in enumerate(names)]


def topics(chosen: argparse.Namespace) -> list[EntityQuery]:
    """Return descriptions of four words, common and less common ones."""
    world, source = World.made(chosen.seed), np.random.default_rng(chosen.seed)
    first = source.integers(20, len(COMMON.split()), TOPICS)
    rest = source.integers(100, 3000, (TOPICS, 3))
    texts = [" ".join(world.words[int(word)].as_py() for word in (one, *others))
             for one, others in zip(first, rest, strict=True)]  # fmt: skip
    return [EntityQuery(id=f"t{at}", text=text, rung="concept") for at, text in enumerate(texts)]


def median(*works: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the median of the seconds that pieces of work take, each done several times."""
    took = []
    for work in works:
        for _ in range(ROUNDS):
            start = clock()
            work()
            took.append(clock() - start)
    return round(statistics.median(took), 4)


def in_ms(seconds: float) -> float:
    """Return milliseconds."""
    return round(1000 * seconds, 1)


def drop_cache(store: Path) -> bool:
    """Ask the system to forget the store's files; tell whether it can be asked."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in (store / "parts").rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def megabytes(folder: Path) -> float:
    """Return what a folder holds."""
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1)


def peak() -> int:
    """Return the most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


STEPS: dict[str, Callable[[Path, argparse.Namespace], Figures]] = {
    "generate": generate,
    "compact": make_parts,
    "cold": ask_cold,
    "warm": ask_warm,
}

if __name__ == "__main__":
    main()
