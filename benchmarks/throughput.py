"""The path that users run: `coreeval refresh` on real tweets with real news, 200 ms an answer.

    python -m benchmarks.throughput [--samples 882] [--latency 0.2] [--in-flight 64] [--workers 1]
    python -m benchmarks.throughput --engine ray --workers 2    # in a Ray cluster that runs already
        [--store postgresql]    # in the database that COREEVAL_STORE_URL names
    python -m benchmarks.throughput --trivial    # nodes that only ask (benchmarks/trivial_nodes.py)

A server gives the answers of the rule-based team, each made once in a first pass that is not
measured. Then the same refresh is made in a new workspace (`asked`), and once more over the answers
that are stored there (`stored`), in a process of its own on one core, the server on another. Ideal
is calls x latency / in flight. Walls hold the start and the report. Several workers, and the server
with them, use all cores. The bare SDK asks as many
questions of its own on the same machine, so that two machines can be compared by ratios.
"""

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from benchmarks import trivial_nodes
from benchmarks.load import STEPS, Load, counts, pin, serving
from coreeval.config.load import load_config
from coreeval.tools.gdelt.local import open_folder
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import Reply, Request

SHARED = Path("../shared/data").resolve()
CONFIG_VARIABLE = "COREEVAL_BENCH_CONFIG"
_made: list[OfflineAnswers] = []


async def answers(request: Request) -> str | Reply:
    """Answer as the server: what the rule-based team says, made once for each request."""
    if not _made:
        config = Path(os.environ[CONFIG_VARIABLE])
        _made.append(OfflineAnswers(load_config(config), config.parent / "server"))
    return await _made[0](request)


def write_config(
    folder: Path,
    news: Path,
    base_url: str,
    in_flight: int,
    workers: int = 1,
    engine: str = "local",
    store: str = "sqlite",
) -> Path:
    """Write the config of the refresh into a new folder."""
    folder.mkdir(parents=True)
    config = {
        "name": "path",
        "task": "emotion",
        "dataset": {
            "format": "tweeteval",
            "path": str(SHARED / "tweeteval" / "emotion"),
            "split": "test",
        },
        "knowledge": {
            "path": str(news),
            "window": {"start": "2025-05-01", "end": "2026-10-31"},
            "min_precision": "crawl",
        },
        "models": {"default": {"model": "openai:stub", "base_url": base_url}},
        "run": {
            "concurrency": in_flight,
            "engine": engine,
            "workers": workers,
            "ray": {"workers": workers},
            "store": store,
            "allow_unpriced": True,
        },
    }
    file = folder / "path.yaml"
    file.write_text(yaml.safe_dump(config))
    return file


def refresh(config: Path, samples: int, workers: int, profile: str | None) -> None:
    """Refresh in this process, on the last core if it is the only one, and print what it took."""
    import gc

    from coreeval.__main__ import OBJECTS_BETWEEN_ROUNDS
    from coreeval.cli import main as coreeval

    gc.set_threshold(OBJECTS_BETWEEN_ROUNDS, 20, 10)

    if workers == 1:
        pin(-1)
    sys.argv = ["coreeval", "refresh", str(config), "--limit", str(samples), "--json"]
    cpu, clock = _cpu_s(), time.perf_counter()
    if profile:
        import cProfile

        made = cProfile.Profile(time.thread_time)  # load of other programs does not count
        code = made.runcall(coreeval)
        made.dump_stats(profile)
    else:
        code = coreeval()
    if code:
        raise SystemExit(code)
    wall, used = time.perf_counter() - clock, _cpu_s() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stderr.write(json.dumps({"wall_s": wall, "cpu_s": used, "peak_mb": peak}) + "\n")


def _cpu_s() -> float:
    """Return the seconds of processor time of this process and its processes that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def _run(
    config: Path, samples: int, workers: int = 1, profile: str | None = None
) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.throughput", "--config", str(config)]
    command += ["--samples", str(samples), "--workers", str(workers)]
    process = await asyncio.create_subprocess_exec(
        *command,
        *(["--profile", profile] if profile else []),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    lines = said.decode().splitlines()
    try:
        return dict(json.loads(lines[-1]))
    except (ValueError, IndexError):
        raise SystemExit("\n".join(lines[-20:])) from None


def main() -> None:
    """Print what both refreshes took, and the bare SDK."""
    if "--trivial" in sys.argv:
        trivial_nodes.main()
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trivial", action="store_true", help="nodes that do nothing but ask")
    parser.add_argument("--samples", type=int, default=882)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--profile", help="where a profile of the refresh over stored answers goes")
    parser.add_argument("--config", type=Path)
    chosen = parser.parse_args()
    if chosen.config:
        refresh(chosen.config, chosen.samples, chosen.workers, chosen.profile)
        return
    os.environ |= {"OPENAI_API_KEY": "k", "NO_COLOR": "1"}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        news = open_folder(SHARED / "gdelt", folder / "news")
        server = write_config(folder / "server", news, "http://127.0.0.1:1/v1", 1)
        os.environ[CONFIG_VARIABLE] = str(server)
        arguments = ["--latency", str(chosen.latency), "--answers", "benchmarks.throughput:answers"]
        with serving("tests.support.llm_server", *arguments) as root:
            asyncio.run(_measure(folder, news, root, chosen))
    _measure_bare(chosen)


def _measure_bare(chosen: argparse.Namespace) -> None:
    """Have the bare SDK ask three questions a sample, and print what that took."""
    load = Load(base_url="", samples=3 * chosen.samples // STEPS, in_flight=chosen.in_flight)
    arguments = ["--latency", str(chosen.latency), "--answers", "benchmarks.load:reply"]
    with serving("tests.support.llm_server", *arguments) as root:
        bare = trivial_nodes.run_alone("bare openai", f"{root}/v1", load)
    print(
        f"bare     cpu {bare.cpu_ms_per_call:.2f} ms a call (openai)   peak {bare.peak_mb:.0f} MB"
    )


async def _measure(folder: Path, news: Path, root: str, chosen: argparse.Namespace) -> None:
    size = (news, f"{root}/v1", chosen.in_flight)
    await _run(write_config(folder / "first", *size), chosen.samples)
    before = counts(root)
    config = write_config(folder / "asked", *size, chosen.workers, chosen.engine, chosen.store)
    asked = await _run(config, chosen.samples, chosen.workers)
    after = counts(root)
    stored = await _run(config, chosen.samples, chosen.workers, chosen.profile)
    calls = after["requests"] - before["requests"]
    ideal = calls * chosen.latency / chosen.in_flight
    print(
        f"asked    wall {asked['wall_s']:.1f} s for {calls} calls = {asked['wall_s'] / ideal:.2f} x"
        f" ideal   cpu {1000 * asked['cpu_s'] / calls:.2f} ms a call   peak {asked['peak_mb']:.0f}"
        f" MB   {calls / asked['wall_s']:.0f} calls/s   at most {after['most_open']} in flight"
    )
    print(
        f"stored   wall {stored['wall_s']:.1f} s   cpu"
        f" {1000 * stored['cpu_s'] / chosen.samples:.1f} ms a sample"
    )


if __name__ == "__main__":
    main()
