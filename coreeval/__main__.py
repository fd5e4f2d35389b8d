"""`python -m coreeval` is `coreeval`: a process of its own that runs one command."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

OBJECTS_BETWEEN_ROUNDS = 100_000
"""Of the garbage collector. What is imported stays; looking it over again and again is an eighth
of the time that a run takes to start; memory grows by some 10 MB."""


def run() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    gc.set_threshold(OBJECTS_BETWEEN_ROUNDS, 20, 10)
    # pydantic looks through every installed distribution for plugins, which takes 0.1 to 0.2 s
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from coreeval.cli import main

        code = main()
    except KeyboardInterrupt:  # while modules are imported, before main() tells of it
        sys.stderr.write("error: stopped by Ctrl-C\n")
        code = 130
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process: what was registered for its end is done, and no object is taken apart.

    Taking spaCy, numpy and what they hold apart takes 0.5 s of processor time, several seconds on a
    busy machine, and changes nothing: by now all files are written and all threads are told to end.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader has gone, or it was closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
