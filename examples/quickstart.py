"""Refresh the bundled emotion benchmark offline, and look at one updated sample.

    python examples/quickstart.py [FOLDER]

Nothing is asked of a model here: the roles are played by rules. For a model, write its name into
the config (`coreeval init` gives a commented one) and call the same function.
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from coreeval import refresh
from coreeval.graph.bundled import write_configs


def main(folder: Path) -> None:
    """Run it and print the counts and the first updated text beside its source."""
    config, *_ = write_configs(folder)
    done = refresh(config, limit=8)
    print(done.manifest.counts)
    for arm in ("updated", "provenance"):
        rows = pq.read_table(next((done.run_dir / "dataset" / arm).glob("*.parquet"))).to_pylist()
        print(arm, rows[0] if rows else "nothing")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "quickstart"))
