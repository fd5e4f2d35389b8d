"""Work that one process at a time may do."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coreeval.errors import RunLocked


@contextmanager
def held(lock: Path, taken: RunLocked) -> Iterator[None]:
    """Hold a lock; the system lets go of it when a process dies.

    Raises:
        RunLocked: another process holds it, `taken` as it was given.
    """
    from filelock import FileLock, Timeout  # brings asyncio in; who only looks has no need of it

    try:
        with FileLock(lock, timeout=0):
            yield
    except Timeout:
        raise taken from None


def is_held(lock: Path) -> bool:
    """Return whether a process holds a lock; it is taken and let go of at once where none does."""
    if not lock.exists():
        return False
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return _is_held_anywhere(lock)
    descriptor = _opened(lock)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _opened(lock: Path) -> int:
    """Open a lock; to read it where it may not be written, as on a read-only medium."""
    try:
        return os.open(lock, os.O_RDWR)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return os.open(lock, os.O_RDONLY)


def _is_held_anywhere(lock: Path) -> bool:
    """Return the same where the system has another kind of lock."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
