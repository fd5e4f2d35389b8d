"""How much of a real run is not waiting for models.

    python -m benchmarks.waiting --data FOLDER [--samples 300] [--latency 0.2] [--in-flight 64]

FOLDER has tweeteval/emotion and gdelt as their publishers give them. The whole pipeline runs on its
first samples, with the offline roles behind a local server, so that every call is rendered, sent,
parsed, stored, checked and judged as in a paid run. Printed are the wall time and the process's CPU
time for each call, and the share of the samples' own time that passed outside of calls.
"""

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.volume import server, write_config


def main() -> None:
    """Run the pipeline once and print where its time went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--in-flight", type=int, default=64)
    chosen = parser.parse_args()
    data = chosen.data.resolve()
    dataset = {"format": "tweeteval", "path": str(data / "tweeteval/emotion")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        roles = write_config(folder / "roles", "emotion", dataset, data / "gdelt", "offline")
        with server(roles, chosen.latency) as url:
            model = {"model": "openai:roles", "base_url": f"{url}/v1"}
            config = write_config(folder / "wire", "emotion", dataset, data / "gdelt", model)
            run(config, folder / "first", 1, chosen.in_flight)  # the news is made ready once
            wall, cpu = run(config, folder / "run", chosen.samples, chosen.in_flight)
        told(folder / "run" / "run.db", chosen.samples, wall, cpu)


def run(config: Path, run_dir: Path, samples: int, in_flight: int) -> tuple[float, float]:
    """Refresh some samples in a process of its own; return its wall and CPU seconds."""
    command = [sys.executable, "-m", "coreeval", "refresh", str(config), "--json"]
    command += ["--limit", str(samples), "--run-dir", str(run_dir)]
    command += ["--set", f"run.concurrency={in_flight}", "--set", "detect.evaluate=false"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    json.loads(done.stdout)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


def told(store: Path, samples: int, wall: float, cpu: float) -> None:
    """Print what a run's own records say about its time."""
    with closing(sqlite3.connect(store)) as connection:
        in_steps, steps = connection.execute("SELECT sum(seconds), count(*) FROM steps").fetchone()
        in_calls, calls = connection.execute(
            "SELECT sum(seconds), count(*) FROM calls WHERE NOT cached"
        ).fetchone()
    print(f"{samples} samples, {steps} steps, {calls} calls: wall {wall:.1f} s, with start and end")
    print(f"cpu {cpu:.1f} s = {1000 * cpu / calls:.2f} ms a call")
    print(f"outside of calls: {1 - in_calls / in_steps:.1%} of the samples' {in_steps:.0f} s")


if __name__ == "__main__":
    main()
