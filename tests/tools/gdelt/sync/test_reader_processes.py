"""Files that processes of their own read: the same as in this one, within the same limits."""

import gzip
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from coreeval.errors import RunError
from coreeval.tools.gdelt.sync import intake, reader_processes
from coreeval.tools.gdelt.sync.file_reader import (
    MOST_UNPACKED_DOWNLOAD,
    Offer,
    Reading,
    read,
    read_content,
)
from coreeval.tools.gdelt.sync.intake import Delivery, read_deliveries
from coreeval.tools.gdelt.sync.reader_processes import PandasBlocker, ReaderProcesses
from coreeval.tools.gdelt.sync.sync import Around, SyncProgress, sync_folder
from tests.tools.gdelt.file_samples import listed, write, write_artlist
from tests.tools.gdelt.sync.kit import (
    NOW,
    aside_of,
    asked,
    data_files,
    event_line,
    gal_gz,
    gkg_file,
    gkg_zip,
    mention_line,
    noon,
    quarters,
    rows_of,
    stamp,
    urls_of,
)

ROOT = Path(__file__).parents[4]


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A folder with a file of each kind, bad rows, a damaged file and one that is no news."""
    folder = tmp_path / "news"
    folder.mkdir()
    for at in quarters(NOW - timedelta(hours=3), 6):
        (folder / f"{stamp(at)}.gkg.csv.zip").write_bytes(gkg_zip(at))
    (folder / f"{stamp(NOW)}.gal.json.gz").write_bytes(gal_gz(NOW))
    (folder / "cut.gz").write_bytes(gzip.compress(gkg_file(NOW, 500).encode())[:-300])
    write(folder / "bad.csv", *gkg_file(NOW, 2).splitlines(), "half a row", "caf\xe9\t")
    write(folder / f"{stamp(NOW)}.export.CSV", event_line(NOW, "https://news.example/1"))
    write(folder / f"{stamp(NOW)}.mentions.CSV", mention_line(NOW, "https://news.example/1"))
    write_artlist(folder / "list.json", listed("Gold is up", "https://a.example/1", stamp(NOW)))
    (folder / "notes.txt").write_text("nothing")
    return folder


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Popen[bytes]]]:
    """Read every file in a process of its own; the processes that were started."""
    started: list[Popen[bytes]] = []
    start = reader_processes._started

    def remembered() -> Popen[bytes]:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(reader_processes, "FEW", -1)
    monkeypatch.setattr(reader_processes, "_started", remembered)
    yield started
    assert all(process.returncode is not None for process in started)


def offered(path: Path) -> Offer:
    return Offer(path=path, name=path.name)


def found(reading: Reading) -> list[Any]:
    tally = reading.tally
    return [
        reading.offer, reading.feed, reading.md5, reading.size, reading.why, reading.batches,
        tally.rows, tally.bad, tally.aside, [table.to_pylist() for table in reading.articles],
        reading.signals.to_pylist() if reading.signals is not None else None,
    ]  # fmt: skip


def test_a_process_reads_what_this_one_reads(news: Path, apart: list[Popen[bytes]]) -> None:
    offers = [offered(file) for file in sorted(news.iterdir())]
    with ReaderProcesses() as several:
        for offer in offers:
            assert found(several.read(offer)) == found(read_content(offer))
    assert len(apart) == 1


def test_a_sync_comes_to_the_same(
    tmp_path: Path, news: Path, monkeypatch: pytest.MonkeyPatch, apart: list[Popen[bytes]]
) -> None:
    sync_folder(tmp_path / "apart", news, around=Around(now=noon))
    assert 0 < len(apart) <= intake.AT_ONCE
    monkeypatch.setattr(reader_processes, "FEW", 1 << 30)
    sync_folder(tmp_path / "here", news, around=Around(now=noon))
    assert len(apart) <= intake.AT_ONCE
    assert rows_of(tmp_path / "apart") == rows_of(tmp_path / "here")
    assert data_files(tmp_path / "apart") == data_files(tmp_path / "here")
    for table in ("files", "segments", "batches", "ignored"):
        query = f"SELECT * FROM {table}"
        assert asked(tmp_path / "apart", query) == asked(tmp_path / "here", query)
    for name in ("bad.csv", "cut.gz"):
        assert aside_of(tmp_path / "apart", name) == aside_of(tmp_path / "here", name)


def test_little_is_read_without_a_process(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(news.iterdir(), key=lambda file: file.stat().st_size)
    monkeypatch.setattr(reader_processes, "FEW", sum(file.stat().st_size for file in files[:-1]))
    with ReaderProcesses() as several:
        for file in files[:-1]:
            several.read(offered(file))
        assert not several._all
        several.read(offered(files[-1]))
        assert len(several._all) == 1


def test_a_bomb_stays_in_its_limits(tmp_path: Path, apart: list[Popen[bytes]]) -> None:
    mebibyte = gzip.compress(b" " * ((1 << 20) - 1) + b"\n")
    path = tmp_path / "bomb.gz"
    path.write_bytes(
        gzip.compress(gkg_file(NOW).encode()) + mebibyte * (MOST_UNPACKED_DOWNLOAD >> 20)
    )
    offer = Offer(path=path, name=path.name, feed="gkg", downloaded=True)
    with ReaderProcesses() as several:
        reading = read(offer, set(), several.read)
    assert (reading.tally.bad["too_large"], reading.articles) == (1, [])
    assert not path.exists()


def test_errors_keep_their_types(news: Path, apart: list[Popen[bytes]]) -> None:
    nameless = Offer(path=news / f"{stamp(NOW)}.gal.json.gz", name=None)  # type: ignore[arg-type]
    with ReaderProcesses() as several, pytest.raises(AttributeError, match="rpartition") as raised:
        several.read(nameless)
    assert "in stamp_in" in raised.value.__notes__[0]


def test_a_process_that_dies_loses_nothing(
    tmp_path: Path, news: Path, apart: list[Popen[bytes]]
) -> None:
    def watch(at: SyncProgress) -> None:
        if at.done == 2:
            for process in apart:
                process.kill()

    for at in quarters(NOW - timedelta(hours=9), 20):
        (news / f"{stamp(at)}.gkg.csv.zip").write_bytes(gkg_zip(at))
    store = tmp_path / "store"
    with pytest.raises(RunError, match=r"files ended early: signal 9[\s\S]*to continue") as died:
        sync_folder(store, news, around=Around(now=noon, watch=watch))
    assert (news / died.value.where).exists()
    sync_folder(store, news, around=Around(now=noon))
    sync_folder(tmp_path / "other", news, around=Around(now=noon))
    assert urls_of(store) == urls_of(tmp_path / "other")


def test_no_process_to_be_had(
    news: Path, monkeypatch: pytest.MonkeyPatch, apart: list[Popen[bytes]]
) -> None:
    monkeypatch.setattr(sys, "executable", str(news / "python"))
    with ReaderProcesses() as several, pytest.raises(RunError, match="cannot start a process"):
        several.read(offered(news / "bad.csv"))


def test_pandas_is_not_to_be_had_and_all_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "colorsys"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [PandasBlocker(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pandas")
    assert importlib.import_module("colorsys")


def test_a_script_needs_no_guard(tmp_path: Path, news: Path) -> None:
    """The main module of a program is not run again in the processes that it starts."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from coreeval.tools.gdelt.sync import reader_processes as readers\n"
        "from coreeval.tools.gdelt.sync.sync import sync_folder\n"
        "readers.FEW = -1\n"
        "print(sync_folder(*map(Path, sys.argv[1:])).counts.files)\n"
    )
    done = subprocess.run(
        [sys.executable, script, tmp_path / "store", news], capture_output=True, text=True,
        timeout=60, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "12\n", "")


def test_reading_runs_ahead_so_far_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "AHEAD", 3)
    taken = 0

    def offers() -> Iterator[Delivery]:
        nonlocal taken
        for number in range(10):
            taken += 1
            path = write(tmp_path / f"{number}.csv", *gkg_file(NOW).splitlines(), str(number))
            yield Delivery(offers=(offered(path),))

    for given, (delivery, (reading,)) in enumerate(read_deliveries(offers(), set())):
        assert taken - given <= 3 + 1
        assert reading.offer.name == delivery.offers[0].name == f"{given}.csv"
    assert taken == 10
