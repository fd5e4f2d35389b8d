"""A process that reads files: offers come in, readings go out, for as long as somebody asks.

It ends with the process that started it, however that one ends: its input is closed then.
"""

import os
import pickle
import sys
import threading
import traceback
from contextlib import suppress
from importlib.abc import MetaPathFinder
from queue import SimpleQueue
from typing import IO

from coreeval.tools.gdelt.store.reading import Offer, Reading, read_content


class WithoutPandas(MetaPathFinder):
    """Keeps Arrow from importing pandas, where it is, only to see that an array is no series."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Find nothing; half of the time of starting is pandas.

        Raises:
            ModuleNotFoundError: it is pandas that is looked for.
        """
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def serve() -> None:
    """Read the files offered on standard input, and answer on standard output."""
    sys.meta_path.insert(0, WithoutPandas())
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # what else is said is no answer
    offers: SimpleQueue[Offer] = SimpleQueue()
    threading.Thread(target=_answer_all, args=(offers, answers), daemon=True).start()
    with suppress(EOFError):
        while True:
            offers.put(pickle.load(sys.stdin.buffer))
    os._exit(0)  # in the middle of a file, too


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
    """Return what a file holds, or the error that is to be raised where it is asked for."""
    try:
        return read_content(offer)
    except Exception as error:  # noqa: BLE001
        error.add_note("in a process that reads files:\n" + traceback.format_exc())
        return error
