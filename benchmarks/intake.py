"""How fast GKG files become segments, on files made from real rows.

    python -m benchmarks.intake --rows FILE [--files 48]

FILE has rows of GKG 2.1 with titles. Each generated file has 1,028 of them, as a quarter hour of
October 2026 had (research: gdelt §2), with names, numbers and addresses drawn anew, so that they
are packed as well as real files are: a row takes 13 to 14 kB, and 4 to 5 kB packed.
"""

import argparse
import random
import re
import resource
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from unittest import mock

import pyarrow.csv  # type: ignore[import-untyped]

from coreeval.tools.gdelt.rows import (
    ALL_NAMES,
    DATE,
    EXTRAS,
    GKG_COLUMNS,
    ORGANISATIONS,
    PERSONS,
    URL,
    read_lines,
)
from coreeval.tools.gdelt.sync import file_reader, reader_processes
from coreeval.tools.gdelt.sync.file_reader import Content, Offer, read, read_content
from coreeval.tools.gdelt.sync.reader_processes import ReaderProcesses
from coreeval.tools.gdelt.sync.sync import sync_folder
from tests.support.plain_gkg import read_gkg

ROWS = 1028
WAYS = {"threads": 1 << 60, "processes": -1}
"""How many bytes sync is told to read in its own process."""
GCAM = 17
_NAME = re.compile(rb"([^;,]+),(\d+)")
_TITLE = re.compile(rb"</PAGE_TITLE>")


def main() -> None:
    """Make the files, then read them in each way and print rows a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--files", type=int, default=48)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = list(written(folder / "news", titled(chosen.rows), chosen.files))
        packed = sum(file.stat().st_size for file in files)
        print(f"{len(files)} files of {ROWS:,} rows, {packed / len(files) / 1e6:.1f} MB packed")
        show_readers(files)
        for count in (4, 8, 16, len(files)):
            for way, few in WAYS.items():
                store, some = folder / f"{way}{count}", files[:count]
                work = partial(stored, store, some, few)
                show(f"{count} files to store, {way}", some, work)
        size = sum(file.stat().st_size for file in store.rglob("*.parquet"))
        print(f"{size / len(files) / ROWS:.0f} bytes a row in segments")


def show_readers(files: list[Path]) -> None:
    """Print how fast files become tables."""
    one = files[: max(len(files) // 8, 2)]
    show("plain Python reader, 1 thread", one, partial(in_threads, 1, one, plainly))
    show("bytes split by pyarrow.csv, 1 thread", one, partial(in_threads, 1, one, by_arrow))
    with mock.patch.object(file_reader, "isal_zlib", zlib):
        show("columnar with zlib, 1 thread", one, partial(in_threads, 1, one, columnar))
    for count in (1, 2):
        show(f"columnar, threads: {count}", files, partial(in_threads, count, files, columnar))
    for count in (1, 2):
        show(f"columnar, processes: {count}", files, partial(in_processes, count, files))


def show(what: str, files: list[Path], work: Callable[[], object]) -> None:
    """Print the rows a second of some work, and the processor time of a row."""
    began, spent = time.perf_counter(), processor_time()
    work()
    rows = ROWS * len(files)
    seconds, cpu = time.perf_counter() - began, processor_time() - spent
    print(f"{what:38} {rows / seconds:>8,.0f} rows/s {cpu / rows * 1e6:>8.1f} us a row", flush=True)


def processor_time() -> float:
    """Return the seconds that this process and those it waited for have used."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def in_threads(threads: int, files: list[Path], work: Callable[[Path], object]) -> None:
    """Do some work on each file."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, files))


def in_processes(count: int, files: list[Path]) -> None:
    """Read each file as sync does where there are many, starting the processes included."""
    with (
        mock.patch.object(reader_processes, "FEW", WAYS["processes"]),
        ReaderProcesses() as several,
    ):
        in_threads(count, files, partial(columnar, content=several.read))


def stored(store: Path, files: list[Path], few: int) -> None:
    """Bring some files into a store."""
    news = store.with_suffix(".news")
    news.mkdir()
    for file in files:
        (news / file.name).symlink_to(file)
    with mock.patch.object(reader_processes, "FEW", few):
        sync_folder(store, news)


def columnar(file: Path, content: Content = read_content) -> object:
    """Read a file as sync does."""
    return read(Offer(path=file, name=file.name), set(), content).articles


def plainly(file: Path) -> object:
    """Read a file row by row."""
    return list(read_gkg(file, file.name))


def by_arrow(file: Path) -> object:
    """Unpack a file and only split its columns, with Arrow's parser."""
    data = b"\n".join(line for group in file_reader.line_groups(file, 1 << 30) for line in group)
    names = [f"c{place}" for place in range(GKG_COLUMNS)]
    wanted = [names[place] for place in (1, 2, 4, 7, 10, 12, 14, 15, 23, 25, 26)]
    return pyarrow.csv.read_csv(
        pyarrow.BufferReader(data),
        read_options=pyarrow.csv.ReadOptions(column_names=names, use_threads=False,
                                             block_size=1 << 26),
        parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(names, pyarrow.binary())
        ),
    )  # fmt: skip


# -- the files ------------------------------------------------------------------------------------


def titled(path: Path) -> list[list[bytes]]:
    """Return the rows of a file that have a title."""
    rows = (line.split(b"\t") for line in read_lines(path))
    return [row for row in rows if len(row) == GKG_COLUMNS and b"<PAGE_TITLE>" in row[EXTRAS]]


def written(folder: Path, rows: list[list[bytes]], count: int) -> Iterator[Path]:
    """Write files as GDELT names and packs them; one row in some has a byte that is no UTF-8."""
    folder.mkdir()
    source = random.Random(7)
    for number in range(count):
        stamp = f"20261005{number // 4:02d}{number % 4 * 15:02d}00"
        made = [_varied(source.choice(rows), stamp.encode(), source) for _ in range(ROWS)]
        made[number] = made[number].replace(b"</PAGE_TITLE>", b" caf\xe9</PAGE_TITLE>")
        path = folder / f"{stamp}.gkg.csv.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{stamp}.gkg.csv", b"\n".join(made) + b"\n")
        yield path


def _varied(row: list[bytes], stamp: bytes, source: random.Random) -> bytes:
    """Return a row as another article would have it."""
    columns, number = list(row), b"%06d" % source.randrange(10**6)
    columns[0], columns[DATE], columns[URL] = stamp + b"-1", stamp, columns[URL] + number
    for place in (PERSONS, ORGANISATIONS, ALL_NAMES):
        columns[place] = _NAME.sub(_renaming(source), columns[place])
    scores = (score.partition(b":")[0] for score in columns[GCAM].split(b","))
    columns[GCAM] = b",".join(b"%b:%d" % (name, source.randrange(40)) for name in scores)
    columns[EXTRAS] = _TITLE.sub(b" " + number + b"</PAGE_TITLE>", columns[EXTRAS])
    return b"\t".join(columns)


def _renaming(source: random.Random) -> Callable[[re.Match[bytes]], bytes]:
    """Give more than half of the names of a row a name of their own, the same each time."""
    names: dict[bytes, bytes] = {}

    def renamed(found: re.Match[bytes]) -> bytes:
        name = found[1]
        if name not in names:
            names[name] = name + b" X%d" % source.randrange(4000) if source.random() < 0.6 else name
        return names[name] + b"," + found[2]

    return renamed


if __name__ == "__main__":
    main()
