"""`python -m coreeval` is `coreeval`: a process of its own that runs one command."""

import gc
import os
import sys

OBJECTS_BETWEEN_ROUNDS = 100_000
"""Of the garbage collector. What is imported stays; looking it over again and again is an eighth
of the time that a run takes to start; memory grows by some 10 MB."""


def run() -> int:
    """Run the command line and return its exit code."""
    gc.set_threshold(OBJECTS_BETWEEN_ROUNDS, 20, 10)
    # pydantic looks through every installed distribution for plugins, which takes 0.1 to 0.2 s
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from coreeval.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
