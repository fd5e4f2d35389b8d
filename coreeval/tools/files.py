"""Files that are whole or not there, locks between processes, and Parquet by rows.

filelock and pyarrow are imported where they are used: `status` looks at a lock and needs neither.
"""

import errno
import itertools
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, Any, Final, Literal

from coreeval.errors import RunLocked


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; when the block ends well it takes the place of `path`.

    Raises:
        OSError: it cannot be written; the error names it, which that of a full disk does not.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _draft_of(path) as draft:
            try:
                yield draft
                with draft.open("rb") as written:
                    os.fsync(written.fileno())
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or str(path)
        raise


@contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """Give the first draft of a file that nobody is writing, empty.

    One that a killed process left is taken again, so that they do not pile up. Where the system
    has no such locks, each process has a draft of its own.
    """
    for number in itertools.count():
        draft = path.with_name(f".{path.name}.{number}.tmp")
        if special_kind(draft):  # CoreEval makes none, and what a link leads to would be emptied
            continue
        with draft.open("ab") as mine:
            state = _locked(mine, draft)
            if state == "mine":
                mine.truncate(0)
                yield draft
                return
        if state == "no locks":
            draft.unlink(missing_ok=True)
            yield path.with_name(f".{path.name}.{os.getpid()}.tmp")
            return


def _locked(mine: IO[bytes], draft: Path) -> Literal["mine", "taken", "no locks"]:
    """Lock a draft unless another process or thread has; it may have been renamed meanwhile."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(mine, LOCK_EX | LOCK_NB)
        same = os.path.samestat(os.fstat(mine.fileno()), draft.stat())
    except (BlockingIOError, FileNotFoundError):
        return "taken"
    except (ImportError, OSError):
        return "no locks"
    return "mine" if same else "taken"


def flush_tree(folder: Path) -> None:
    """See to it that the disk has a folder, and all files and folders in it.

    Raises:
        OSError: it does not take them.
    """
    for path in sorted(folder.rglob("*")):
        flush(path)
    flush(folder)


def flush(path: Path) -> None:
    """See to it that the disk has a file, or the names in a folder.

    Raises:
        OSError: it does not take them.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write text as one atomic replacement."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write JSON as one atomic replacement."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def hold_lock(lock: Path, taken: RunLocked) -> Iterator[None]:
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


def is_locked(lock: Path) -> bool:
    """Return whether a process holds a lock; it is taken and let go of at once where none does."""
    if not lock.exists():
        return False
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return _is_locked_elsewhere(lock)
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


def _is_locked_elsewhere(lock: Path) -> bool:
    """Return the same where the system has another kind of lock."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


ROW_GROUP = 5000
ParquetColumns = Mapping[str, Literal["string", "int64", "strings"]]
"""Kind of each column; `strings` is a list of them."""
ParquetRow = dict[str, Any]


def write_parquet(
    path: Path,
    columns: ParquetColumns,
    rows: Iterable[ParquetRow],
    *,
    metadata: Mapping[str, str] = {},
) -> int:
    """Stream rows into one file that appears only when it is whole; return their number."""
    import pyarrow as pa  # type: ignore[import-untyped]  # slow to import
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    types = {"string": pa.string(), "int64": pa.int64(), "strings": pa.list_(pa.string())}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    schema, count = schema.with_metadata(dict(metadata)), 0
    with replacing(path) as draft, pq.ParquetWriter(draft, schema) as writer:
        for chunk in _group_rows(rows):
            writer.write_table(pa.Table.from_pylist(chunk, schema=schema))
            count += len(chunk)
    return count


def read_parquet(path: Path) -> Iterator[ParquetRow]:
    """Stream the rows of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no Parquet file, or damaged.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROW_GROUP):
            yield from batch.to_pylist()


def select_parquet_rows(
    path: Path, *, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None
) -> list[ParquetRow]:
    """Return some columns, all if None, of the rows with these ids, all if None, in their order.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no Parquet file, damaged, or has other columns.
    """
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    import pyarrow.parquet as pq

    chosen = None if ids is None else pc.field("id").isin(pa.array(ids, pa.string()))
    named = None if columns is None else list(columns)
    table = pq.read_table(path, columns=named, filters=chosen, partitioning=None)
    rows: list[ParquetRow] = table.to_pylist()
    return rows


def _group_rows(rows: Iterable[ParquetRow]) -> Iterator[list[ParquetRow]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, ROW_GROUP)):
        yield chunk


def is_inside(name: str) -> bool:
    """Tell whether a path is relative to a folder and has no `..` that leads out of it."""
    path = PurePath(name)
    return bool(path.parts) and not path.anchor and ".." not in path.parts and "\0" not in name


def leads_through_link(folder: Path, name: str) -> bool:
    """Tell whether a file of a folder, or a folder on the way to it, is a link."""
    return special_kind_on_way(folder, name) == _LINK


def special_kind_on_way(folder: Path, name: str) -> str:
    """Return the first `special_kind` of a file of a folder and the folders on the way to it."""
    place = folder
    for part in PurePath(name).parts:
        place = place / part
        if kind := special_kind(place):
            return kind
    return ""


_LINK = "a link"


def special_kind(path: Path) -> str:
    """Return what a path is that is no regular file or folder; empty also where nothing is.

    To open a pipe is to wait for whoever writes into it, which may be for ever.
    """
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    if stat.S_ISLNK(mode):
        return _LINK
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def leads_out(folder: Path, name: str) -> bool:
    """Tell whether a path is none inside a folder, or comes to its file by a link."""
    return not is_inside(name) or leads_through_link(folder, name)


def is_plain_file(folder: Path, name: str) -> bool:
    """Tell whether a folder has a regular file of this name that no link leads to."""
    if leads_out(folder, name):
        return False
    try:
        return stat.S_ISREG((folder / name).lstat().st_mode)
    except (OSError, ValueError):
        return False


def special_files_among(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield what is no regular file or folder among some entries of a folder.

    What is below them and on the way there is looked at too; no link is followed.
    """
    for name in names:
        if leads_through_link(folder, str(PurePath(name).parent)):
            yield (folder / name).parent
        else:
            yield from _special_files_below(folder / name)


def _special_files_below(path: Path) -> Iterator[Path]:
    if special_kind(path):
        yield path
    elif path.is_dir():
        try:
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:  # another process has just deleted it
            return
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                yield from _special_files_below(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


MOST_UNPACKED: Final = 64 << 20
"""Bytes that one packed value of a store or cache may have: 64 MiB (own choice). Of what is kept so
the longest are answers, 1 MiB, and bodies of responses, 8 MiB."""


class TooLarge(ValueError):
    """A packed value has more bytes than are unpacked."""


def decompress_within(packed: bytes, most: int = MOST_UNPACKED) -> bytes:
    """Return what zlib has packed, and never hold more than is allowed.

    Raises:
        TooLarge: it is longer.
        ValueError: it is damaged.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(packed, most + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(content) > most:
        raise TooLarge(f"it has more than {most >> 20} MiB when unpacked")
    if not unpacking.eof:
        raise ValueError("its end is missing")
    return content
