"""`coreeval status` from another shell: what goes on, what it waits for, and watching it."""

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from filelock import FileLock

from coreeval.cli import status as module
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.heartbeat import (
    CostForecast,
    ProgressSnapshot,
    RoleSpeed,
    Spend,
    Wait,
    WorkerSnapshot,
)
from coreeval.tools.stores.run_store import RunStore
from tests.cli.kit import Shell

GOING = ProgressSnapshot(
    stage="refresh",
    done=3,
    total=5,
    per_minute=14.0,
    left_s=130.0,
    sent=8,
    roles=(RoleSpeed(role="composer", model="openai:x", answers=9, mean_s=4.1),),
)
REASON = "HTTP 429\n\x1b[2J"
THROTTLED = Wait(cause="throttled", who="openai:x", number=8, seconds=71, reason=REASON)


@pytest.fixture
def running(finished: Path, shell: Shell) -> Iterator[Path]:
    """Return a run that this process holds the lock of."""
    run = Path(shutil.copytree(finished, shell.folder / "run"))
    with FileLock(run / "run.lock"):
        yield run


def beat(run: Path, pulse: ProgressSnapshot, ago_s: float = 0.0) -> None:
    """Leave a sign of life some time ago, with a sample that went into a step then."""
    then = utc_now() - timedelta(seconds=ago_s)
    store = RunStore.open(run / "run.db", now=lambda: then)
    store.beat({"a\nb": {"node": "compose", "since": then.isoformat()}}, pulse)
    store.close()


def test_a_run_that_goes_on(shell: Shell, running: Path) -> None:
    beat(running, GOING)
    words = shell("status", running).out
    assert "running: 5 of 5 samples have ended" in words
    assert "refresh 3/5, 14/min, 2 minutes left, 8 in flight, slowest: composer 4.1 s" in words
    assert "no progress" not in words and "stuck" not in words
    told = shell("status", running, "--json").document
    assert (told["status"], told["stalled"], told["stuck"]) == ("running", False, [])
    assert told["pulse"]["roles"] == [
        {"role": "composer", "model": "openai:x", "answers": 9, "mean_s": 4.1}
    ]
    assert set(told["spend"]) == {"billed_usd", "reserved_usd", "unpriced", "budget_usd"}


def test_when_a_run_ends_and_what_it_will_have_cost(shell: Shell, running: Path) -> None:
    cost = CostForecast(usd=12.5, low_usd=11.0, high_usd=14.0, exceeds_budget=True)
    beat(running, replace(GOING, ends_at="2026-03-01T14:05+00:00", cost=cost))
    words = shell("status", running).out
    assert "2 minutes left (ends at about 2026-03-01 14:05 UTC)" in words
    assert "12.5 USD expected at the end (11 to 14, more than the budget)" in words
    told = shell("status", running, "--json").document["pulse"]
    assert told["ends_at"] == "2026-03-01T14:05+00:00"
    assert told["cost"]["usd"] == 12.5 and told["cost"]["exceeds_budget"]
    beat(running, replace(GOING, cost=replace(cost, exceeds_budget=False)))
    assert "(11 to 14, within the budget)" in shell("status", running).out


def test_what_each_worker_does(shell: Shell, running: Path) -> None:
    quiet = WorkerSnapshot(number=0, pid=11, host="a\nb", ended=2, per_second=9.5, sent=3)
    waits = WorkerSnapshot(number=1, pid=12, host="c", age_s=40.0, waits=(THROTTLED,))
    beat(running, replace(GOING, workers=(quiet, waits)))
    lines = shell("status", running).out.splitlines()
    assert "  worker 1 (process 11 on a b): 2 samples, 9.5 calls/s, 3 in flight" in lines
    (second,) = [line for line in lines if "worker 2" in line]
    assert "openai:x: throttled by its endpoint" in second
    assert second.endswith("silent for 40 s")
    told = shell("status", running, "--json").document["pulse"]["workers"]
    assert [each["pid"] for each in told] == [11, 12]


def test_a_run_that_makes_no_progress_says_so_and_what_it_waits_for(
    shell: Shell, running: Path
) -> None:
    beat(running, replace(GOING, idle_s=70.0, waits=(THROTTLED,)))
    said = shell("status", running)
    assert said.code == 0
    assert "no progress for 7" in said.out
    waits = (
        "  openai:x: throttled by its endpoint, 8 requests waiting, "
        "the longest for 71 s: HTTP 429 �[2J"
    )
    assert waits in said.out.splitlines()
    beat(running, GOING, ago_s=700.0)  # a process that hangs leaves no sign either
    said = shell("status", running)
    assert "last activity 12 minutes ago" in said.out
    assert "no progress for 12 minutes" in said.out and "unknown" in said.out
    assert "stuck: a b in the compose step since" in said.out
    assert shell("status", running, "--json").document["stalled"]


def test_watching_ends_with_the_run(
    shell: Shell, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(finished, shell.folder / "run"))
    lock = FileLock(run / "run.lock", thread_local=False)
    lock.acquire()
    beat(run, GOING)
    monkeypatch.setattr(module, "WATCH_EVERY_S", 0.05)
    timer = threading.Timer(0.2, lock.release)
    timer.start()
    said = shell("status", run, "--watch")
    timer.join()
    assert said.code == 0
    assert said.out.count("running: 5 of 5") >= 2
    assert said.out.count("complete: 5 of 5") == 1
    assert "\x1b" not in said.out, "a file is no terminal"


class Statements(list[str]):
    """The statements of all SQLite connections that are opened meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        connect = sqlite3.connect

        def traced(path: str, *, uri: bool = False, timeout: float = 5) -> sqlite3.Connection:
            connection = connect(path, uri=uri, timeout=timeout)
            connection.set_trace_callback(self.append)
            return connection

        monkeypatch.setattr(sqlite3, "connect", traced)


def test_watching_four_workers_takes_a_statement_for_each_look(
    shell: Shell, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(finished, shell.folder / "run"))
    lost = (
        "UPDATE results SET outcome = 'failed' WHERE sample_id IN (SELECT id FROM samples LIMIT 1)"
    )
    with sqlite3.connect(run / "run.db") as file:
        file.execute(lost)
        file.execute("INSERT INTO bad_rows VALUES (9, 'x.txt', 9, 'no label', 'x')")
    file.close()
    spend = Spend(billed_usd=0.5, reserved_usd=0.0, unpriced=0)
    workers = tuple(
        WorkerSnapshot(number=number, pid=11 + number, host="c", per_second=1.5 + number)
        for number in range(4)
    )
    beat(run, replace(GOING, workers=workers, spend=spend))
    statements, looks = Statements(monkeypatch), 9
    lock = FileLock(run / "run.lock", thread_local=False)
    lock.acquire()
    slept = list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == looks:
            lock.release()

    monkeypatch.setattr(time, "sleep", sleep)
    said = shell("status", run, "--watch")
    assert said.out.count("worker 4 (process 14 on c): 0 samples, 4.5 calls/s") == looks
    assert said.out.count("  failed: ") == said.out.count("  bad row: ") == looks + 1
    assert set(slept) == {module.WATCH_EVERY_S}
    once = 2  # the lists of failed samples and bad rows, which are read again if they grow
    asked = [each for each in statements if "sqlite_master" not in each]  # the schema is checked
    assert len(asked) == looks + 1 + once
    assert (looks + 1) / sum(slept) <= 1, "a statement a second at most"


def test_workers_are_silent_as_long_as_the_process_that_speaks_for_them(
    shell: Shell, running: Path
) -> None:
    worker = WorkerSnapshot(number=0, pid=11, host="c", age_s=1.0, per_second=9.5)
    beat(running, replace(GOING, workers=(worker,)), ago_s=50.0)
    (line,) = [line for line in shell("status", running).out.splitlines() if "worker 1" in line]
    assert line.endswith("silent for 51 s")


def test_watching_is_for_people(shell: Shell, finished: Path) -> None:
    said = shell("status", finished, "--watch", "--json")
    assert (said.code, said.error["kind"]) == (2, "usage")


def test_a_complete_run_says_whether_its_arms_are_comparable(
    shell: Shell, finished: Path, tmp_path: Path
) -> None:
    assert (
        "arms:    It is not yet clear whether the updated arm is comparable"
        in shell("status", finished).out
    )
    run = Path(shutil.copytree(finished, tmp_path / "copy"))
    report = json.loads((run / "report.json").read_text("utf-8"))
    sentences = ["one\nline\x1b[2J", "two", "three", "four", "five"]
    report["comparability"] |= {"verdict": "not_comparable", "sentences": sentences}
    (run / "report.json").write_text(json.dumps(report), "utf-8")
    said = shell("status", run).out
    assert "arms:    The updated arm is not comparable" in said
    assert "         one line\ufffd[2J\n" in said and "four" not in said
    assert "and 2 more differences: see the report" in said
    assert shell("status", run, "--json").document["comparability"]["sentences"] == sentences


@pytest.mark.parametrize("report", ["", "[]", "{}", '{"comparability": null}', None])
def test_a_report_that_does_not_say_it_is_passed_over(
    shell: Shell, finished: Path, tmp_path: Path, report: str | None
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "copy"))
    (run / "report.json").unlink()
    if report is not None:
        (run / "report.json").write_text(report, "utf-8")
    said = shell("status", run)
    assert said.code == 0 and "arms:" not in said.out
    assert shell("status", run, "--json").document["comparability"] is None


def test_a_status_imports_little(shell: Shell, finished: Path) -> None:
    """SQLAlchemy, LangGraph and the schema take longer to import than a status may take."""
    program = (
        "import sys; from coreeval.cli import main; code = main(['status', sys.argv[1]]);"
        "heavy = {'sqlalchemy', 'langgraph', 'asyncio', 'coreeval.schema', 'yaml', 'filelock'};"
        "print(sorted(heavy & set(sys.modules)), code)"
    )
    command = [sys.executable, "-c", program, str(finished)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[] 0"


def test_a_replay_that_was_killed_is_replayed_again(shell: Shell, copied: Path) -> None:
    manifest = json.loads((copied / "manifest.json").read_text())
    killed = manifest | {"status": "running", "ended_at": ""}
    for cassette, line in (("", "coreeval resume"), ("abc", "coreeval cassette replay FILE")):
        (copied / "manifest.json").write_text(json.dumps(killed | {"cassette": cassette}))
        words = shell("status", copied).out
        assert line in words and words.count(" coreeval ") == 1
