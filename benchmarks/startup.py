"""How long the command line takes to answer, beside a Python that does nothing.

    .venv/bin/python -m benchmarks.startup

Prints the median of five starts each, in milliseconds, and the ratio to the bare start.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROUNDS = 5
PROGRAM = str(Path(sys.executable).parent / "coreeval")
COMMANDS = ("demo", "init", "validate", "refresh", "resume", "retry", "status", "trace")


def median_ms(command: Sequence[str]) -> float:
    """Return the median wall time of a command, after one start that warms the disk cache."""
    return statistics.median([_once(command) for _ in range(ROUNDS + 1)][1:])


def _once(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measure and print."""
    bare = median_ms([sys.executable, "-c", "pass"])
    print(f"{'python -c pass':<26}{bare:>7.0f} ms")
    for command in ("", *COMMANDS):
        words = [word for word in (command, "--help") if word]
        took = median_ms([PROGRAM, *words])
        print(f"{' '.join(['coreeval', *words]):<26}{took:>7.0f} ms{took / bare:>7.1f} x")


if __name__ == "__main__":
    main()
