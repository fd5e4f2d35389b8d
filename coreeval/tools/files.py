"""Atomic files, locks between processes, and rows of Parquet files.

filelock and pyarrow are imported only if needed: `status` checks a lock without them.
"""

import errno
import itertools
import json
import math
import os
import secrets
import shutil
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path, PurePath
from typing import IO, Any, Final, Literal, NamedTuple

from coreeval.errors import RunLocked
from coreeval.tools.chunks import chunks
from coreeval.tools.parquet_pages import read_pages


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a draft path to write to; it replaces `path` if the block succeeds.

    The rights and the group of an existing file stay.

    Raises:
        OSError: it cannot be written; the error names the path, even if the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _draft_of(path) as draft:
            try:
                rights = _copy_rights(path, draft)
                yield draft
                with draft.open("rb") as written:
                    os.fsync(written.fileno())
                if rights is not None and not rights & stat.S_IWUSR:
                    draft.chmod(rights)
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or str(path)
        raise


def _copy_rights(path: Path, draft: Path) -> int | None:
    """Give a draft the rights and the group of the file that it replaces, and return the rights.

    The draft stays writable. None is returned if there is no file, or the disk has no rights.
    """
    with suppress(OSError):
        found = path.stat()
        draft.touch()
        if sys.platform != "win32":
            with suppress(OSError):  # a group that the user does not belong to
                os.chown(draft, -1, found.st_gid)
        rights = found.st_mode & 0o777
        draft.chmod(rights | stat.S_IRUSR | stat.S_IWUSR)
        return rights
    return None


@contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """Yield the first draft of a file that no other writer uses, emptied.

    A draft left by a killed process is reused, so that drafts do not pile up. If the system has no
    such locks, each process has its own draft.
    """
    for number in itertools.count():
        draft = path.with_name(f".{path.name}.{number}.tmp")
        if special_kind(draft):  # CoreEval creates no links, and the link's target would be emptied
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


_DRAFT_FOLDER: Final = ".coreeval-draft-"
"""The prefix of the names of draft folders and their locks, which may be deleted."""


@contextmanager
def draft_folder(place: Path) -> Iterator[Path]:
    """Yield a new folder next to `place` to write into; delete it if it is still there afterwards.

    The drafts of killed processes in the same folder are deleted first. A draft in use has a locked
    file of its name beside it; if the system has no such locks, no draft of others is deleted.

    Raises:
        OSError: the folder cannot be created.
    """
    delete_left_drafts(place.parent)
    while True:
        draft = place.with_name(f"{_DRAFT_FOLDER}{secrets.token_hex(6)}")
        lock = draft.with_suffix(".lock")
        try:
            with lock.open("xb") as mine:
                if _locked(mine, lock) == "taken":  # by a process that deletes drafts
                    continue
                try:
                    draft.mkdir()
                    yield draft
                finally:
                    shutil.rmtree(draft, ignore_errors=True)
                return
        finally:
            lock.unlink(missing_ok=True)


def delete_left_drafts(folder: Path) -> None:
    """Delete the draft folders in a folder whose writers have died."""
    for lock in folder.glob(f"{_DRAFT_FOLDER}*.lock"):
        if not is_plain_file(folder, lock.name):
            continue
        with suppress(OSError), lock.open("rb+") as left:
            if _locked(left, lock) == "mine":
                draft = lock.with_suffix("")
                if not special_kind(draft):
                    shutil.rmtree(draft, ignore_errors=True)
                lock.unlink()


def _locked(mine: IO[bytes], draft: Path) -> Literal["mine", "taken", "no locks"]:
    """Lock a draft unless another process or thread has; it may have been renamed in between."""
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
    """Flush a folder, and all files and folders in it, to the disk.

    Raises:
        OSError: the disk cannot be written to.
    """
    for path in sorted(folder.rglob("*")):
        flush(path)
    flush(folder)


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk; Windows flushes neither by reading it.

    Raises:
        OSError: the disk cannot be written to.
    """
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write text to a file atomically."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Add lines to a file, all or none; on return they survive a power failure.

    If the last line has no newline, one is added.

    Raises:
        OSError: the file cannot be written; it is as it was.
    """
    added = "".join(f"{line}\n" for line in lines).encode()
    with path.open("ab+", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(-1, os.SEEK_END)
            added = (b"" if file.read(1) == b"\n" else b"\n") + added
        try:
            while added:
                added = added[file.write(added) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(size)
            raise


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write JSON to a file atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


MOST_INTEGER: Final = 2**63 - 1
"""The largest integer that SQLite and Parquet hold."""


def parse_json(content: bytes) -> object:
    """Return the value of a JSON document that somebody else may have written.

    Raises:
        ValueError: it is not JSON in UTF-8, or has a number that is infinite or beyond 64 bits.
    """
    from pydantic_core import from_json

    value = from_json(content, allow_inf_nan=False)
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            rest.extend(one.values())
        elif isinstance(one, list):
            rest.extend(one)
        elif isinstance(one, float) and not isfinite(one):
            raise ValueError("a number is infinite")
        elif isinstance(one, int) and abs(one) > MOST_INTEGER:
            raise ValueError("a number needs more than 64 bits")
    return value


@contextmanager
def hold_lock(lock: Path, taken: RunLocked, *, wait_s: float = 0) -> Iterator[None]:
    """Hold a lock; the system releases it when the process dies.

    Raises:
        RunLocked: another process holds it, for longer than `wait_s` seconds; `taken` is raised.
    """
    from filelock import FileLock, Timeout  # imports asyncio, which a mere check does not need

    try:
        with FileLock(lock, timeout=wait_s):
            yield
    except Timeout:
        raise taken from None


def is_locked(lock: Path) -> bool:
    """Return whether a process holds a lock, by acquiring and releasing it if none does."""
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
    """Open a lock, read-only if it is not writable, as on a read-only medium."""
    try:
        return os.open(lock, os.O_RDWR)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return os.open(lock, os.O_RDONLY)


def _is_locked_elsewhere(lock: Path) -> bool:
    """Return whether a process holds a lock, on systems with another kind of lock."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


ROW_GROUP = 5000
ParquetColumns = Mapping[str, Literal["string", "int64", "strings"]]
"""The type of each column; `strings` is a list of strings."""
ParquetRow = dict[str, Any]


def write_parquet(
    path: Path,
    columns: ParquetColumns,
    rows: Iterable[ParquetRow],
    *,
    metadata: Mapping[str, str] = {},
) -> int:
    """Stream rows into one file that appears only when complete; return the number of rows."""
    import pyarrow as pa  # type: ignore[import-untyped]  # slow to import
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    types = {"string": pa.string(), "int64": pa.int64(), "strings": pa.list_(pa.string())}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    schema, count = schema.with_metadata(dict(metadata)), 0
    with replacing(path) as draft, pq.ParquetWriter(draft, schema) as writer:
        for chunk in chunks(rows, ROW_GROUP):
            writer.write_table(pa.Table.from_pylist(chunk, schema=schema))
            count += len(chunk)
    return count


def read_parquet(path: Path) -> Iterator[ParquetRow]:
    """Stream the rows of a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a Parquet file, or is damaged.
    """
    for part in read_parquet_parts(path):
        yield from part.to_pylist()


def read_parquet_parts(path: Path, most_bytes: float = math.inf) -> Iterator[Any]:
    """Stream the rows of a file as record batches of at most `MOST_ROW_BYTES` of values.

    A few kilobytes can encode terabytes: the same long text in each row.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a Parquet file, is damaged, a row has more than
            `MOST_ROW_BYTES` of values, or all rows together have more than `most_bytes`.
    """
    total = 0
    with open_parquet_bounded(path) as file:
        for batch in read_batches(file, ROW_GROUP):
            sizes = measure_rows(batch)
            total += sum(sizes)
            if total > most_bytes:
                raise ValueError(f"its rows have more than {most_bytes:,} bytes of values")
            if max(sizes, default=0) > MOST_ROW_BYTES:
                raise ValueError(f"a row has more than {MOST_ROW_BYTES >> 20} MiB of values")
            if sum(sizes) <= MOST_ROW_BYTES:
                yield batch
            else:
                yield from (batch.slice(row, 1) for row in range(batch.num_rows))


class ParquetSize(NamedTuple):
    """The columns of a file and its size in memory."""

    schema: Any
    rows: int
    bytes: int


def measure_parquet(path: Path) -> ParquetSize:
    """Return the columns of a file and its size in memory, without holding all of it there.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a Parquet file, or is damaged.
    """
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    rows = size = 0
    for part in read_parquet_parts(path):
        rows, size = rows + part.num_rows, size + part.cast(schema).nbytes
    return ParquetSize(schema, rows, size)


MOST_ROW_BYTES: Final = 64 << 20
"""The most bytes of values in one row: as many as a line of JSON may have."""
MOST_SELECTED_BYTES: Final = 1 << 30
"""The most bytes of values in memory at once (own choice: a million rows of 1,000 bytes)."""
_VALUE: Final = 16
"""The bytes counted for each value, list and struct beside the texts in it; Python takes more."""


ALLOWED_ROWS: Final = 100_000
"""The number of rows that a file of any size may have; beyond it, each row must take at least a
byte."""
ALLOWED_LIST_VALUES: Final = 1 << 26
"""The number of values that the lists in a row group may have, which Arrow decodes at once; beyond
it, each value must take at least a byte of the file."""


def open_parquet_bounded(path: Path, columns: Collection[str] | None = None) -> Any:  # noqa: ANN401
    """Open a file so that a text shared by many rows is read once.

    A few kilobytes can encode thousands of rows with the same megabytes: read batches of
    `limit_batch` rows, and call `measure_rows` before creating the values of a batch.

    Args:
        path: The file.
        columns: The columns that will be read, others may have any type; None for all columns.

    Raises:
        OSError: the file cannot be read, has many more rows or values than bytes, unpacks to more
            than 100 times its size, has a damaged page, or a column has a type that is not read.
        ValueError: the file is not a Parquet file, or is damaged.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        rows = file.metadata.num_rows
        if rows > max(ALLOWED_ROWS, path.stat().st_size):
            raise OSError(f"it declares {rows:,} rows, which is more than its number of bytes")
        group = file.metadata.row_group(0) if file.metadata.num_row_groups else None
        leaves = [group.column(at) for at in range(file.metadata.num_columns)] if group else []
        texts = [one.path_in_schema for one in leaves if one.physical_type == "BYTE_ARRAY"]
    opened = pq.ParquetFile(path, read_dictionary=texts)
    try:
        _refuse_types(opened, columns)
        _refuse_long_columns(path, opened, columns)
    except BaseException:
        opened.close()
        raise
    return opened


def _refuse_types(file: Any, columns: Collection[str] | None) -> None:  # noqa: ANN401
    for field in file.schema_arrow:
        if columns is not None and field.name not in columns:
            continue
        if (width := _width(field.type)) is None or width > MOST_ROW_BYTES:
            raise OSError(
                f"the column {field.name!r} has the type {str(field.type)[:100]}; "
                "write it as texts, numbers, dates, or lists or structs of them"
            )


def _refuse_long_columns(
    path: Path,
    file: Any,  # noqa: ANN401 - pyarrow has no types
    columns: Collection[str] | None,
) -> None:
    """Refuse a file by the headers of its pages; the footer may say less than they."""
    read = None if columns is None else tuple(f"{name}." for name in columns)
    leaves = {
        at: leaf
        for at in range(len(file.schema))
        if (leaf := file.schema.column(at)) and (read is None or f"{leaf.path}.".startswith(read))
    }
    size, in_lists, plain = path.stat().st_size, Counter[int](), Counter[int]()
    for found in read_pages(path, file.metadata, list(leaves)):
        leaf = leaves[found.index]
        if leaf.max_repetition_level:
            in_lists[found.group] += found.values * max(1, leaf.length // 8)
            if (values := in_lists[found.group]) > max(ALLOWED_LIST_VALUES, size):
                raise OSError(f"its lists have {values:,} values, which is more than its bytes")
        else:
            plain[found.index] += found.values
            if (values := plain[found.index]) > max(ALLOWED_ROWS, size):
                raise OSError(f"it has {values:,} rows, which is more than its number of bytes")


def read_batches(file: Any, most: int, columns: Sequence[str] | None = None) -> Iterator[Any]:  # noqa: ANN401
    """Yield batches of at most `limit_batch` rows from a file that `open_parquet_bounded` opened.

    No batch spans two row groups: Arrow cannot join their lists of texts.
    """
    size = limit_batch(file, most, columns)
    for group in range(file.metadata.num_row_groups):
        yield from file.iter_batches(size, row_groups=[group], columns=columns)


def limit_batch(file: Any, most: int, columns: Collection[str] | None = None) -> int:  # noqa: ANN401
    """Return the number of rows to read at a time from a file that `open_parquet_bounded` opened.

    It is at most `most`, and smaller if the rows are wide.
    """
    fields = (each for each in file.schema_arrow if columns is None or each.name in columns)
    width = sum(_width(field.type) or 0 for field in fields)
    return max(1, min(most, MOST_ROW_BYTES // max(1, width)))


def _width(kind: Any, *, in_list: bool = False) -> int | None:  # noqa: ANN401
    """Return the bytes that Arrow reserves for each value of a type, even if it is null.

    Return None for a type that is not read, which includes a list of fixed size in another list.
    """
    import pyarrow as pa

    is_a = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type, in_list=in_list)
    if is_a.is_dictionary(kind):
        return 8 if _is_text(kind.value_type) else None
    if is_a.is_fixed_size_list(kind):
        inner = _width(kind.value_type)
        return None if in_list or inner is None else inner * kind.list_size
    if is_a.is_struct(kind) or is_a.is_map(kind) or is_a.is_list(kind) or is_a.is_large_list(kind):
        inside = in_list or not is_a.is_struct(kind)
        parts = [_width(kind.field(at).type, in_list=inside) for at in range(kind.num_fields)]
        known = [each for each in parts if each is not None]
        return None if len(known) < len(parts) else sum(known) if is_a.is_struct(kind) else 8
    if is_a.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    plain = is_a.is_primitive(kind) or is_a.is_decimal(kind) or is_a.is_null(kind)
    return 32 if plain or _is_text(kind) else None


def _is_text(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa

    kinds = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(pa.types, f"is_{each}")(kind) for each in kinds)


def measure_rows(batch: Any) -> list[int]:  # noqa: ANN401 - pyarrow has no types
    """Return the bytes of the values in each row, without creating the values."""
    import numpy as np

    total = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        total += _value_sizes(column)
    sizes: list[int] = total.tolist()
    return sizes


def _value_sizes(column: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the bytes of each value of a column: its texts, and `_VALUE` for each value in it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    is_a, kind = pa.types, column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _value_sizes(column.storage)
    own = np.full(len(column), _VALUE, dtype=np.int64)
    if is_a.is_struct(kind):
        return sum((_value_sizes(part) for part in column.flatten()), own)
    if is_a.is_map(kind):
        column = column.cast(pa.list_(kind.field(0).type))
    if is_a.is_nested(kind):
        inner = np.concatenate([[0], np.cumsum(_value_sizes(column.flatten()))])
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        return own + inner[ends] - inner[ends - lengths]
    if is_a.is_fixed_size_binary(kind):
        return own + kind.byte_width
    if is_a.is_dictionary(kind):
        lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    elif _is_text(kind):
        lengths = pc.binary_length(column)
    else:
        return own
    return own + pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64)


def select_parquet_rows(
    path: Path, *, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None
) -> list[ParquetRow]:
    """Return rows by id, in file order.

    All columns are returned if `columns` is None, and all rows if `ids` is None.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a Parquet file, is damaged, has other columns, or the rows have
            more than `MOST_SELECTED_BYTES` of values.
    """
    rows, size = list[ParquetRow](), 0
    needed = list(dict.fromkeys([*(columns or ()), *(["id"] if ids is not None else [])]))
    wanted = None if columns is None else needed
    with open_parquet_bounded(path, wanted) as file:
        most = limit_batch(file, ROW_GROUP, wanted)
        if missing := sorted(set(needed) - set(file.schema_arrow.names)):
            raise ValueError(f"it has no column {missing[0]!r}")
        for group in range(file.metadata.num_row_groups):
            if ids is not None and not _has_any(file, group, ids):
                continue
            for batch in file.iter_batches(most, row_groups=[group], columns=wanted):
                chosen = batch if ids is None else batch.filter(_is_chosen(batch, ids))
                size += sum(measure_rows(chosen))
                if size > MOST_SELECTED_BYTES:
                    raise ValueError(f"it has more than {MOST_SELECTED_BYTES >> 30} GiB of values")
                kept = chosen if columns is None else chosen.select(list(columns))
                rows += kept.to_pylist()
    return rows


def _has_any(file: Any, group: int, ids: Sequence[str]) -> bool:  # noqa: ANN401
    """Return whether a group of rows has one of the ids."""
    batches = file.iter_batches(ROW_GROUP, row_groups=[group], columns=["id"])
    return any(_is_chosen(batch, ids).true_count for batch in batches)


def _is_chosen(batch: Any, ids: Sequence[str]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return for each row whether its id is among those chosen."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.column("id")
    if not pa.types.is_dictionary(column.type):
        raise ValueError("its ids are not strings")
    known = pc.is_in(column.dictionary, pa.array(ids, pa.string()))
    return pc.fill_null(pc.take(known, column.indices), False)


def path_to_text(path: PurePath | str) -> str:
    r"""Return a path as text that can be stored: a byte that is not UTF-8 becomes `\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_inside(name: str) -> bool:
    """Return whether a path is relative and does not leave its folder by `..`."""
    path = PurePath(name)
    return bool(path.parts) and not path.anchor and ".." not in path.parts and "\0" not in name


def leads_through_link(folder: Path, name: str) -> bool:
    """Return whether a file in a folder, or a folder on its path, is a link."""
    return special_kind_on_way(folder, name) == LINK


def special_kind_on_way(folder: Path, name: str) -> str:
    """Return the kind of the first link or special file on a file's path; '' if there is none."""
    place = folder
    for part in PurePath(name).parts:
        place = place / part
        if kind := special_kind(place):
            return kind
    return ""


LINK: Final = "a link"
"""The kind of a link; see `special_kind`."""


def special_kind(path: Path) -> str:
    """Return the kind of a path that is not a regular file or folder, otherwise "".

    It is "" too if nothing exists there. Opening a pipe could wait for a writer forever.
    """
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    if stat.S_ISLNK(mode):
        return LINK
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def leads_out(folder: Path, name: str) -> bool:
    """Return whether a path is not inside a folder, or reaches its file through a link."""
    return not is_inside(name) or leads_through_link(folder, name)


def iter_tree(root: Path) -> Iterator[Path | OSError]:
    """Yield a path and all below it, each folder before its contents, without following links.

    A folder that cannot be read is followed by the error, which also stands for a path that is too
    long. Folders may be nested however deeply.
    """
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            is_folder = path.is_dir() and not path.is_symlink()
            yield path
            if is_folder:
                waiting += sorted(path.iterdir(), reverse=True)
        except OSError as error:
            yield error


def is_plain_file(folder: Path, name: str) -> bool:
    """Return whether a folder has a regular file of this name that is not reached by a link."""
    if leads_out(folder, name):
        return False
    try:
        return stat.S_ISREG((folder / name).lstat().st_mode)
    except (OSError, ValueError):
        return False


def special_files_among(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the special files among some entries of a folder: neither regular files nor folders.

    The entries' contents and the folders on the way to them are checked too; links are not
    followed.
    """
    for name in names:
        if leads_through_link(folder, str(PurePath(name).parent)):
            yield (folder / name).parent
        else:
            yield from _special_files_below(folder / name)


def _special_files_below(path: Path) -> Iterator[Path]:
    if special_kind(path):
        yield path
        return
    folders = [str(path)] if path.is_dir() else []
    while folders:  # they may be nested however deeply
        try:
            with os.scandir(folders.pop()) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:  # another process has just deleted it
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


MOST_UNPACKED: Final = 64 << 20
"""The most decompressed bytes of one value in a store or cache: 64 MiB (own choice). The longest
such values are answers, 1 MiB, and response bodies, 8 MiB."""


class TooLarge(ValueError):
    """The compressed value has more bytes than may be decompressed."""


def decompress_within(packed: bytes, most: int = MOST_UNPACKED) -> bytes:
    """Decompress zlib data without ever holding more bytes than the limit.

    Raises:
        TooLarge: the data are longer than the limit.
        ValueError: the data are damaged.
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
