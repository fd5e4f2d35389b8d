"""Loading the many modules that a run needs, in less time than Python takes by itself."""

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage while the block imports, nor ever in what it has imported.

    Modules stay for good, but the collector walks through all that are there again and again: a
    quarter of what LangGraph and the SDKs take to import.
    """
    known = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > known:
            gc.freeze()
            atexit.register(gc.unfreeze)  # extension modules are taken down like all others
        gc.enable()
