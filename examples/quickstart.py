"""Refresh the bundled emotion benchmark offline, and look at one updated sample.

    python examples/quickstart.py [FOLDER]

Nothing is asked of a model here: the roles are played by rules. For a model, write its name into
the config (`coreeval init` gives a commented one) and call the same functions.
"""

import sys
from pathlib import Path

import coreeval
from coreeval.graph.bundled import write_configs


def main(folder: Path) -> None:
    """Run it, print the counts, and print the first updated text beside its source."""
    config, *_ = write_configs(folder)
    print(coreeval.validate(config).summary)
    run = coreeval.refresh(config, limit=8)
    print(run)
    for sample in run.samples(outcomes=["accepted"])[:1]:
        print(sample["original_text"])
        print(sample["updated_text"])
        print(run.trace(str(sample["sample"])).facts)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "quickstart"))
