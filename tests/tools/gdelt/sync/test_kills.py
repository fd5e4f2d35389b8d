"""A sync that is killed, stopped or out of room: the next one loses nothing and ends the same."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from coreeval.tools.gdelt.own_files import DOWNLOADS
from tests.support import doomed_sync, worker
from tests.support.mirror_server import Answer, MirrorServer
from tests.tools.gdelt.sync.kit import (
    GKG,
    NOW,
    ROWS,
    asked,
    data_files,
    fill,
    gkg_file,
    gkg_zip,
    quarters,
    stamp,
    urls_of,
)

BATCHES = quarters(NOW - timedelta(hours=11), 40)
ALL = sorted(f"https://news.example/{stamp(at)}/{row}" for at in BATCHES for row in range(ROWS))
ROOT = Path(__file__).parents[4]


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A folder whose files have long names, so that their list needs room."""
    folder = tmp_path / "news" / ("long-" * 30)
    folder.mkdir(parents=True)
    for at in BATCHES:
        (folder / f"{stamp(at)}.gkg.csv.zip").write_bytes(gkg_zip(at))
    return tmp_path / "news"


@pytest.fixture
def server() -> Iterator[MirrorServer]:
    with MirrorServer().running() as running:
        fill(running, BATCHES)
        yield running


def start(*command: str | Path, trouble: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start a sync as a process, and a group of processes, of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.doomed_sync", *arguments(command, trouble)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        process_group=0,
    )  # fmt: skip


def forked(out: Path, *command: str | Path, trouble: tuple[str, ...] = ()) -> BaseProcess:
    """Start a sync in a process that has imported everything already; what it says is in `out`."""
    return worker.heard(doomed_sync.run, arguments(command, trouble), out=out)


def sync(*command: str | Path) -> tuple[int, dict[str, Any]]:
    """Run a sync in this process; return its exit code and the document that it prints."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        code = doomed_sync.run(arguments(command))
    return code, json.loads(out.getvalue())


def arguments(command: tuple[str | Path, ...], trouble: tuple[str, ...] = ()) -> list[str]:
    return ["--now", NOW.isoformat(), *trouble, "gdelt", "sync", *map(str, command), "--json"]


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a process; return its exit code and what it said."""
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out


def assert_whole(store: Path) -> None:
    """Assert that each article is there once, in files that are listed, and nothing besides."""
    assert urls_of(store) == ALL
    assert data_files(store) == {path for (path,) in asked(store, "SELECT path FROM segments")}
    assert not (store / DOWNLOADS).exists()


DEATHS = ["before:read:5", "before:write:1", "after:write:3", "before:commit:2", "after:commit:4"]


@pytest.mark.parametrize("death", DEATHS)
def test_a_kill_loses_nothing(tmp_path: Path, news: Path, death: str) -> None:
    store = tmp_path / "store"
    child = forked(tmp_path / "out", "--from", news, "--store", store, trouble=("--die", death))
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    committed = asked(store, "SELECT count(*) FROM files")[0][0]
    assert set(urls_of(store)) <= set(ALL) and len(urls_of(store)) == committed * ROWS
    code, done = sync("--from", news, "--store", store)
    assert (code, done["known_files"], done["files"]) == (0, committed, len(BATCHES) - committed)
    assert_whole(store)


def test_kills_at_any_moment(tmp_path: Path, server: MirrorServer) -> None:
    store, server.delay_s = tmp_path / "store", 0.05
    command = ("--since", "2026-10-05", "--feeds", "gkg", "--mirror", server.url, "--store", store)
    for patience in (0, 5, 12, 20):
        before = len(server.asked)
        process = forked(tmp_path / "out", *command)
        while len(server.asked) < before + patience and process.is_alive():
            time.sleep(0.01)
        process.kill()
        process.join()
    code, done = sync(*command)
    assert (code, done["failed"]) == (0, {})
    assert_whole(store)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_cleanly(
    tmp_path: Path, server: MirrorServer, number: signal.Signals
) -> None:
    store = tmp_path / "store"
    server.put(GKG.format(stamp(BATCHES[20])), Answer(hang=True))
    command = ("--since", "2026-10-05", "--feeds", "gkg", "--mirror", server.url, "--store", store)
    process = start(*command, trouble=("--apart",))
    while GKG.format(stamp(BATCHES[20])) not in server.asked:
        time.sleep(0.01)
    while not children(process.pid):
        time.sleep(0.01)
    os.killpg(process.pid, number)  # as a terminal and a service manager do
    code, out = ended(process)
    assert code == 130 and json.loads(out)["stopped"] is True
    kept = urls_of(store)
    assert kept and set(kept) < set(ALL)
    assert not (store / DOWNLOADS).exists()
    fill(server, BATCHES)
    code, done = sync(*command)
    assert (code, done["files"]) == (0, len(BATCHES) - len(kept) // ROWS)
    assert_whole(store)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A folder with files that take minutes to read: a row, and a billion empty ones."""
    folder = tmp_path / "endless"
    folder.mkdir()
    emptiness = gzip.compress(b"\n" * (16 << 20)) * 60
    for at in BATCHES[:2]:
        (folder / f"{stamp(at)}.gz").write_bytes(gzip.compress(gkg_file(at).encode()) + emptiness)
    return folder


def test_a_second_interrupt_ends_at_once(tmp_path: Path, endless: Path) -> None:
    process = start("--from", endless, "--store", tmp_path / "store", trouble=("--apart",))
    while not (reading := children(process.pid)):
        time.sleep(0.01)
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
    assert ended(process)[0] == 130
    assert not alive(reading)


def test_no_process_outlives_a_killed_sync(tmp_path: Path, endless: Path) -> None:
    process = start("--from", endless, "--store", tmp_path / "store", trouble=("--apart",))
    while len(reading := children(process.pid)) < len(list(endless.iterdir())):
        time.sleep(0.01)
    time.sleep(1)  # until they are in the midst of it
    process.kill()
    assert process.communicate(timeout=20) == ("", "")
    while alive(reading):
        time.sleep(0.01)


def children(pid: int) -> set[int]:
    """Return the processes that a process has started."""
    return {number for number, parent, _ in processes() if parent == pid}


def alive(pids: set[int]) -> set[int]:
    """Return those that are still at work; what only waits to be noticed is not."""
    return {number for number, _, state in processes() if number in pids and state[0] != "Z"}


def processes() -> list[tuple[int, int, str]]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in listed.splitlines())
    return [(int(pid), int(parent), state) for pid, parent, state in rows]


@pytest.mark.parametrize("full", ["segment", "store.db:14"])
def test_a_full_disk_is_one_message(tmp_path: Path, news: Path, full: str) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    child = forked(out, "--from", news, "--store", store, trouble=("--full", full))
    child.join(60)
    assert child.exitcode == 1
    told = out.read_text("utf-8")
    assert "Traceback" not in told
    said = json.loads(told[told.index("{\n") :])
    assert "disk is full" in said["error"]["message"]
    assert "free some space, then run the same command again" in said["error"]["hint"]
    assert str(store) in said["error"]["where"]
    code, done = sync("--from", news, "--store", store)
    assert code == 0 and done["files"] > 0
    assert_whole(store)
