"""The scheduler in the foreground: cron's times, not APScheduler's, and an end by signal."""

import os
import signal
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue

import pytest
from apscheduler.triggers.cron import CronTrigger

from coreeval.config import Config, load_config
from coreeval.config.schedule import parse_cron
from coreeval.errors import ConfigError, ModelUnusable
from coreeval.schedule import daemon
from coreeval.schedule.daemon import ConfigTimers, CronTimesTrigger
from coreeval.schedule.due import run_due
from coreeval.schedule.hooks import HookRunner
from tests.schedule.kit import WEEK, FakeSchedule

SUNDAY = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_weekday_1_is_monday() -> None:
    ours = CronTimesTrigger(parse_cron("0 3 * * 1", "UTC")).get_next_fire_time(None, SUNDAY)
    theirs = CronTrigger.from_crontab("0 3 * * 1", UTC).get_next_fire_time(None, SUNDAY)
    assert ours
    assert (ours.strftime("%a"), theirs.strftime("%a")) == ("Mon", "Tue")
    after = CronTimesTrigger(parse_cron("0 3 * * 1", "UTC")).get_next_fire_time(ours, SUNDAY)
    assert after == ours + WEEK


def test_an_alarm_rings_and_is_replaced(tmp_path: Path) -> None:
    rung = SimpleQueue[Path]()
    with ConfigTimers(rung.put) as alarms:
        alarms.call_again(tmp_path, timedelta(hours=1))
        alarms.set_times(tmp_path, parse_cron("0 3 * * 1", "UTC"))
        alarms.call_again(tmp_path, timedelta())
        assert rung.get(timeout=10) == tmp_path
        assert rung.empty()


def test_it_makes_up_what_was_missed_tries_again_and_ends_at_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "RETRY_AFTER", timedelta())
    office = FakeSchedule(tmp_path, error=ModelUnusable("no quota"))
    heard_before = signal.getsignal(signal.SIGTERM)
    endings = []
    for done in daemon.run_schedules([office.config], office.dependencies()):
        endings.append(done.ending)
        office.error = None
        if done.ending == "released":
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert endings == ["failed", "released"]
    assert office.releases == ["2026.47"]
    assert signal.getsignal(signal.SIGTERM) == heard_before


def test_it_outlives_a_fault_while_a_config_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "RETRY_AFTER", timedelta())
    office = FakeSchedule(tmp_path)
    reads = iter([True, False, False])  # at the start; as it falls due; as its timer is set

    def load(path: Path) -> Config:
        if not next(reads, True):
            raise RecursionError
        return load_config(path)

    monkeypatch.setattr("coreeval.schedule.plan.load_config", load)
    endings = []
    for done in daemon.run_schedules([office.config], office.dependencies()):
        endings.append(done.ending)
        if done.ending == "released":
            os.kill(os.getpid(), signal.SIGTERM)
    assert endings == ["failed", "released"]


def test_a_signal_ends_it_while_hooks_are_told(tmp_path: Path) -> None:
    hooks = {"success": [{"command": "kill -TERM $PPID; sleep 60", "timeout_s": 90}]}
    office = FakeSchedule(tmp_path, schedule={"cron": "0 3 * * MON", "hooks": hooks})
    found = replace(office.dependencies(), run_hooks=HookRunner())
    [done] = daemon.run_schedules([office.config], found)
    assert (done.ending, done.exit_code) == ("interrupted", 130)
    assert office.state.begun and office.state.begun.outcome == "interrupted"
    assert [each.ending for each in run_due([office.config], office.dependencies())] == ["released"]
    assert office.releases == ["2026.47"] and len(office.told) == 1


def test_an_interrupted_run_ends_it(tmp_path: Path) -> None:
    office = FakeSchedule(tmp_path, finishes=False)
    [done] = daemon.run_schedules([office.config], office.dependencies())
    assert done.ending == "interrupted"


def test_a_wrong_config_is_told_at_the_start(tmp_path: Path) -> None:
    office = FakeSchedule(tmp_path, schedule="0 3 * * MONN")
    with pytest.raises(ConfigError, match="not a valid day-of-week"):
        list(daemon.run_schedules([office.config], office.dependencies()))
