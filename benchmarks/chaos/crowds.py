"""Many at once: two syncs, people who look on, a stopped process, a thousand requests in flight."""

import re
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

from benchmarks.chaos.cases import Outcome, Score
from benchmarks.chaos.commands import (
    MOST,
    Place,
    begin,
    end,
    finish,
    place,
    run,
    run_came_to,
    start,
)
from benchmarks.chaos.moved_clock import HOUR_S, MovedClock
from benchmarks.chaos.works import Work, syncing, write_items
from tests.support.mirror_server import MirrorServer

A_SECOND: Final = 50
"""Requests of those who look on."""
ITEMS: Final = 500
SLOW_S: Final = 4.0
FEW_FILES: Final = 256


def two_syncs(folder: Path, chance: Random) -> Outcome:
    """Sync into one store with two processes at once, several times."""
    score = Score()
    with MirrorServer().running() as mirror, place(folder) as at:
        mirror.delay_s = 0.02
        work = syncing(at, mirror)
        at.keep()
        expected = work.came_to(finish(work.begin(at.out), at.out))
        for _ in range(3):
            at.restore()
            score.add("two syncs", both(at, work, expected, chance.uniform(0, 0.5)))
    return score.outcome()


def both(at: Place, work: Work, expected: object, apart_s: float) -> list[str]:
    """Sync twice at once; return what did not hold."""
    outs = [at.out, at.out.with_name("other.txt")]
    first = work.begin(outs[0])
    time.sleep(apart_s)
    second = work.begin(outs[1])
    codes = []
    for process in (first, second):
        process.join(120)
        codes.append(process.exitcode)
    said = [out.read_text("utf-8") for out in outs]
    problems = [] if 0 in codes else [f"neither ended well: {codes}"]
    for code, words in zip(codes, said, strict=True):
        if code != 0 and "another sync is at work" not in words:
            problems.append(f"exit code {code}: {words[-300:]}")
    if work.came_to({}) != expected:
        problems.append("the store is another one")
    return problems


# -- people who look on ---------------------------------------------------------------------------


def looked_at(folder: Path, _chance: Random) -> Outcome:
    """Run with and without pages and `status` being asked for meanwhile."""
    score = Score()
    with place(folder, latency_s=0.1) as at:
        given = ("refresh", at.config, "--run-dir", at.run)
        at.keep()
        run(at.out, *given)  # makes the news ready in the caches of the machine
        at.restore()
        began = time.perf_counter()
        run(at.out, *given)
        alone_s, expected = time.perf_counter() - began, run_came_to(at)
        at.restore()
        crowd = Crowd(at)
        began = time.perf_counter()
        process = begin(at.out, *given)
        with crowd.looking():
            finish(process, at.out)
            beside_s = time.perf_counter() - began
        for words in crowd.troubles:
            score.broken.append(words)
        score.tried += crowd.asked
        same = run_came_to(at) == expected
        score.add("the run", [] if same else ["it came to something else"])
    rate = crowd.asked / beside_s
    return score.outcome(
        f"{rate:.0f} requests a second; the run took {beside_s / alone_s:.2f} times as long"
    )


class Crowd:
    """Asks for pages of a run, and for its status, while it is written."""

    def __init__(self, at: Place) -> None:
        self.asked = 0
        self.troubles: list[str] = []
        self._at = at
        self._over = threading.Event()
        self._turn = threading.Lock()
        self._next = time.perf_counter()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look on while the block runs."""
        at, out = self._at, self._at.out.with_name("view.txt")
        while not (at.run / "manifest.json").exists():
            time.sleep(0.01)
        out.touch()
        viewer = begin(out, "view", at.run, "--port", "0", "--no-browser")
        while not (found := re.search(r'"address": "([^"]+)"', out.read_text("utf-8"))):
            assert viewer.is_alive(), out.read_text("utf-8")
            time.sleep(0.01)
        address = found[1].rstrip("/")
        workers = [threading.Thread(target=self._look, args=(address,)) for _ in range(6)]
        workers.append(threading.Thread(target=self._ask_status))
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            self._over.set()
            for worker in workers:
                worker.join()
            viewer.kill()
            viewer.join()

    def _look(self, address: str) -> None:
        pages = [address]
        while not self._over.is_set():
            with self._turn:
                self._next = max(self._next + 1 / A_SECOND, time.perf_counter() - 1)
                wait_s = self._next - time.perf_counter()
            time.sleep(max(0.0, wait_s))
            page = pages[self.asked % len(pages)]
            self.asked += 1
            try:
                with urlopen(page, timeout=60) as answer:
                    text = answer.read().decode()
            except HTTPError as error:
                if error.code >= 500:  # 404: the report is not written yet
                    self.troubles.append(f"{page}: {error.code} {error.read()[:200]!r}")
                continue
            if "database is locked" in text:
                self.troubles.append(f"{page}: database is locked")
            places = re.findall(r'href="(/run[^"#]*)"', text)
            root = re.match(r"https?://[^/]+", address)
            pages += [f"{root[0] if root else ''}{each.replace('&amp;', '&')}" for each in places]
            pages = list(dict.fromkeys(pages))[:200]

    def _ask_status(self) -> None:
        out = self._at.out.with_name("status.txt")
        while not self._over.is_set():
            self.asked += 1
            try:
                run(out, "status", self._at.run, well=(0, 1))
            except (RuntimeError, AttributeError, ValueError) as error:
                self.troubles.append(f"status: {error}")


# -- stopped --------------------------------------------------------------------------------------


def stopped_for_an_hour(folder: Path, chance: Random) -> Outcome:
    """Stop a run (SIGSTOP), let an hour pass on its clocks, and let it go on."""
    score, clock = Score(), MovedClock.made_in(folder / "clock")
    with place(folder, latency_s=0.2) as at:
        given = ("refresh", at.config, "--run-dir", at.run)
        at.keep()
        run(at.out, *given)
        expected, calls = run_came_to(at), len(at.answers.heard)
        for running_s in (HOUR_S, 0.0):  # a stopped process; a machine that slept
            at.restore()
            clock.move(0.0, 0.0)
            words = f"an hour, {running_s:.0f} s of it awake"
            moment = chance.randrange(calls // 4, 3 * calls // 4)
            score.add(words, stopped(at, clock, moment, running_s, expected, score))
    return score.outcome(f"{score.again} calls asked again")


def stopped(
    at: Place, clock: MovedClock, moment: int, running_s: float, expected: object, score: Score
) -> list[str]:
    """Stop a run at its n-th call; return what did not hold."""
    process = start(at.out, "refresh", at.config, "--run-dir", at.run,
                    environment=clock.environment)  # fmt: skip
    while len(at.answers.heard) < moment and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGSTOP)
    clock.move(HOUR_S, running_s)
    time.sleep(2)
    problems = []
    other = start(at.out.with_name("other.txt"), "resume", at.run, environment=clock.environment)
    code, said = other.wait(120), at.out.with_name("other.txt").read_text("utf-8")
    if code == 0 or "another process is using this run" not in said:
        problems.append(f"a second process was not refused: {code} {said[-300:]}")
    process.send_signal(signal.SIGCONT)
    try:
        end(process, at.out)
    except RuntimeError as error:
        return [*problems, str(error)]
    if run_came_to(at) != expected:
        problems.append("it came to something else")
    again = len(at.answers.heard) - at.stored
    score.again += again
    return problems + ([f"{again} calls asked again"] if again > MOST else [])


# -- a thousand in flight -------------------------------------------------------------------------


def many_in_flight(folder: Path, _chance: Random) -> Outcome:
    """Ask with 256 and 1,024 in flight, and with 1,024 where few files may be open."""
    score, told = Score(), list[str]()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    try:
        with place(folder, latency_s=SLOW_S) as at:
            for most, files in ((256, 4096), (1024, 4096), (1024, FEW_FILES)):
                at.restore("fresh")
                at.server.most_open = 0
                problems, measured = crowded(at, most, files)
                told.append(f"{most} in flight, {files} files allowed: {measured}")
                score.add(told[-1], problems)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return score.outcome("; ".join(told))


def crowded(at: Place, most: int, files: int) -> tuple[list[str], str]:
    """Ask about many items at once; return what did not hold, and what was measured."""
    config = write_items(at, ITEMS, most)
    process = start(at.out, "detect", "pcr", config, "--draws", "100", files=files)
    open_files, memory = 0, 0
    proc = Path(f"/proc/{process.pid}")
    while process.poll() is None:
        try:
            open_files = max(open_files, len(list((proc / "fd").iterdir())))
            found = re.search(r"VmHWM:\s+(\d+)", (proc / "status").read_text())
            memory = max(memory, int(found[1]) if found else 0)
        except OSError:
            break
        time.sleep(0.05)
    code, said = process.wait(), at.out.read_text("utf-8")
    asked, stored = len(at.answers.heard), at.stored
    measured = (
        f"exit {code}, {stored} of {4 * ITEMS} answered, {asked - stored} asked again, "
        f"{at.server.most_open} at once, {open_files} files, {memory // 1024} MB"
    )
    problems = []
    if (code == 0 and stored != 4 * ITEMS) or asked != stored:
        problems.append("calls were lost or asked twice")
    if code != 0 and (files > most or "open files" not in said):
        problems.append(f"exit code {code}: {' '.join(said[-600:].split())}")
    if open_files > 1.5 * most + 100:
        problems.append("more files than requests")
    return problems, measured
