"""A file of results written one by one, so a stop or a kill loses only the one in progress."""

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Generic, TypeVar

from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import RunCorrupt, RunLocked
from coreeval.schema import Value
from coreeval.tools.files import hold_lock
from coreeval.tools.stores.heartbeat import refuse_special_file

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result", bound=Value)
_BLOCK: Final = 1 << 16


class ResultFile(Generic[Key, Result]):
    """Results as JSON lines beneath a header.

    Several processes may append to it at the same time.

    Args:
        path: The file; its folder is made.
        header: The definition of the study, stored as the first line.
        result: The class of a result.
        key: Returns the key of a result.
        what: The name of the study in messages.
        fits: Returns whether a result has the required form; by default, all have.
    """

    def __init__(
        self,
        path: Path,
        header: Value,
        *,
        result: type[Result],
        key: Callable[[Result], Key],
        what: str,
        fits: Callable[[Result], bool] = lambda _: True,
    ) -> None:
        self.path, self._header, self._fits = path, header, fits
        self._result, self._key, self._what = result, key, what

    def read(self) -> dict[Key, Result]:
        """Return the results by key; a last line truncated by a kill is ignored.

        Raises:
            RunCorrupt: a line is damaged, the file belongs to another study, or it is a link or
                pipe.
            OSError: the file cannot be read, or is too large.
        """
        refuse_special_file(self.path)
        if not self.path.exists():
            return {}
        first, *lines = read_bytes(self.path, most_bytes=MOST_DATA_BYTES).split(b"\n")
        if lines or not self._write_header().startswith(first):
            self._check_header(first)
        found = dict[Key, Result]()
        for number, line in enumerate(lines[:-1], 2):
            try:
                result = self._result.model_validate_json(line)
                if not self._fits(result):
                    raise ValueError("it is a result for something else")
            except ValueError:
                raise RunCorrupt(
                    f"line {number} of the results of {self._what} is damaged",
                    where=str(self.path),
                    hint="delete the line; its result will be recomputed",
                ) from None
            found[self._key(result)] = result
        return found

    def _write_header(self) -> bytes:
        return self._header.model_dump_json().encode() + b"\n"

    def _check_header(self, line: bytes) -> None:
        """Raise `RunCorrupt` unless a first line is the header, ignoring the model's name."""
        try:
            found = type(self._header).model_validate_json(line)
        except ValueError:
            found = None
        if found is None or _describe_header(found) != _describe_header(self._header):
            raise RunCorrupt(
                f"line 1 is not the header of the results of {self._what}",
                where=str(self.path),
                hint="delete the file; its results will be recomputed",
            )

    def add(self, *results: Result) -> None:
        """Append results to the file, replacing a line truncated by a kill.

        Raises:
            RunLocked: another process holds the file for longer than writing takes.
        """
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock("file").parent.mkdir(parents=True, exist_ok=True)
        for path in (self.path, self._lock("file").parent, self._lock("file")):
            if path.is_symlink() or not path.is_dir():
                refuse_special_file(path)
        with FileLock(self._lock("file")), self.path.open("ab+") as file:
            whole = _find_end(file)
            file.truncate(whole)
            if not whole:
                file.write(self._write_header())
            for each in results:
                file.write(each.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """Yield whether this process, and no other, may compute a result or step with that name."""
        lock = self._lock(name)
        lock.parent.mkdir(parents=True, exist_ok=True)
        taken = RunLocked(
            "another process is using it", where=str(lock), hint="wait until it has finished"
        )
        held = hold_lock(lock, taken)
        try:
            held.__enter__()
        except RunLocked:
            yield False
            return
        try:
            yield True
        finally:
            held.__exit__(None, None, None)

    def _lock(self, name: str) -> Path:
        return self.path.parent / f"{self.path.stem}.locks" / f"{name}.lock"


def _describe_header(header: Value) -> dict[str, object]:
    return header.model_dump(exclude={"model"})


def _find_end(file: BinaryIO) -> int:
    """Return the end of the last complete line of a file."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
