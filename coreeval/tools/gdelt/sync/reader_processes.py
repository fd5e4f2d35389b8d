"""Reads files in separate processes, since threads of one would wait for Python's lock.

The processes are not forked, import only what reading needs, and never import the program's main
module, so that any script may use news. They receive offers and return readings. A process ends
when its parent ends, even if the parent is killed, because its input is then closed.
"""

import os
import pickle
import sys
import threading
import traceback
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib.abc import MetaPathFinder
from queue import SimpleQueue
from subprocess import PIPE, Popen
from typing import IO, Self

from coreeval.errors import RunError
from coreeval.tools.gdelt.sync.file_reader import Offer, Reading, read_content
from coreeval.tools.processes import describe_ending, hold_signals

FEW = 64 << 20
"""The bytes of files to read in this process before starting others."""
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 28),
    "MIMALLOC_PURGE_DELAY": "-1",
}
"""Environment variables that let glibc and Arrow keep memory for the next file, which saves a
seventh of the time."""
_SERVE = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from coreeval.tools.gdelt.sync.reader_processes import serve; serve()"
)


class ReaderProcesses:
    """A pool of processes that read files for several threads, started once there are many files.

    Leaving the `with` block ends the processes immediately, including reads in progress.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Popen[bytes]] = []
        self._all: list[Popen[bytes]] = []
        self._size = 0
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over = True
        for process in self._all:
            with suppress(BrokenPipeError), process:
                process.kill()

    def read(self, offer: Offer) -> Reading:
        """Read one file.

        Raises:
            OSError: the file cannot be read.
            RunError: the reader process died, or none can be started.
        """
        process = self._take_process(offer.path.stat().st_size)
        if process is None:
            return read_content(offer)
        answer = _ask_process(process, offer)
        self._idle.append(process)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _take_process(self, size: int) -> Popen[bytes] | None:
        """Return a process to read `size` bytes; None if this process should read them."""
        with self._lock:
            if self._over:
                raise CancelledError
            self._size += size
            if self._size <= FEW:
                return None
            if not self._idle:
                self._all.append(_started())
                return self._all[-1]
            return self._idle.pop()


def _started() -> Popen[bytes]:
    try:
        with hold_signals():
            return Popen(
                [sys.executable, "-P", "-c", _SERVE, *sys.path],
                stdin=PIPE, stdout=PIPE, env={**os.environ, **KEEP_MEMORY},
            )  # fmt: skip
    except OSError as error:
        raise RunError(
            f"cannot start a process to read files: {error.strerror or error}",
            where=sys.executable,
            hint="raise this user's limits on processes or memory, then run the same command again",
        ) from None


def _ask_process(process: Popen[bytes], offer: Offer) -> Reading | Exception:
    """Return a process's answer about a file."""
    assert process.stdin and process.stdout
    try:
        pickle.dump(offer, process.stdin)
        process.stdin.flush()
        answer: Reading | Exception = pickle.load(process.stdout)
    except (BrokenPipeError, EOFError, pickle.UnpicklingError):
        raise RunError(
            f"a process that reads files ended early: {describe_ending(process.wait())}",
            where=offer.name,
            hint="the usual cause is too little memory; run the same command again to continue",
        ) from None
    return answer


class PandasBlocker(MetaPathFinder):
    """An import hook that blocks pandas, which Arrow imports only to check for a series."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Find nothing: importing pandas would take half of the startup time.

        Raises:
            ModuleNotFoundError: the module is pandas.
        """
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def serve() -> None:
    """Read the files requested on standard input, and write the results to standard output."""
    sys.meta_path.insert(0, PandasBlocker())
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # other output is not an answer
    offers: SimpleQueue[Offer] = SimpleQueue()
    threading.Thread(target=_answer_all, args=(offers, answers), daemon=True).start()
    with suppress(EOFError):
        while True:
            offers.put(pickle.load(sys.stdin.buffer))
    os._exit(0)  # even in the middle of a file


def _answer_all(offers: SimpleQueue[Offer], answers: IO[bytes]) -> None:
    try:
        while True:
            pickle.dump(_answer(offers.get()), answers, protocol=5)
            answers.flush()
    except BrokenPipeError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the end of this process tells the other one
        traceback.print_exc()
        os._exit(1)


def _answer(offer: Offer) -> Reading | Exception:
    """Return the contents of a file, or the error to raise in the requesting process."""
    try:
        return read_content(offer)
    except Exception as error:  # noqa: BLE001
        error.add_note("in a process that reads files:\n" + traceback.format_exc())
        return error
