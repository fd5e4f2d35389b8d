"""`python -m coreeval` is `coreeval`: a process that runs one command."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

OBJECTS_BETWEEN_ROUNDS = 100_000
"""The threshold of the garbage collector. Scanning imported objects, which are never freed, takes
an eighth of a run's start time; a higher threshold costs about 10 MB of memory."""


def run() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    gc.set_threshold(OBJECTS_BETWEEN_ROUNDS, 20, 10)
    # pydantic searches every installed distribution for plugins, which takes 0.1 to 0.2 s
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from coreeval.cli import main

        code = main()
    except KeyboardInterrupt:  # during imports, before main() can report it
        sys.stderr.write("error: stopped by Ctrl-C\n")
        code = 130
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process: run its exit handlers, but free no objects.

    Freeing spaCy, numpy and their objects takes 0.5 s of processor time, several seconds on a busy
    machine, and is not needed: all files are written and all threads have been told to end.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader is gone, or the stream was closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
