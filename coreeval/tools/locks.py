"""Work that one process at a time may do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from coreeval.errors import RunLocked


@contextmanager
def held(lock: Path, taken: RunLocked) -> Iterator[None]:
    """Hold a lock; the system lets go of it when a process dies.

    Raises:
        RunLocked: another process holds it, `taken` as it was given.
    """
    try:
        with FileLock(lock, timeout=0):
            yield
    except Timeout:
        raise taken from None
