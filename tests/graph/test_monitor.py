"""How fast a run goes, what it waits for, and that it says so when nothing moves."""

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from coreeval.graph.cost_meter import CostMeter
from coreeval.graph.monitor import (
    FEWEST,
    RECENT_S,
    SHORTEST_S,
    Monitor,
    Progress,
    RateMeter,
    WorkerReport,
)
from coreeval.graph.recorder import InFlight
from coreeval.models.activity import ActiveCalls
from coreeval.runs.status import RunStatus, read_status
from coreeval.tools.stores.call_ledger import SpendingTotal
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.heartbeat import ProgressSnapshot, RoleSpeed, Spend, Wait
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import heartbeat
from tests.graph.kit import Lab
from tests.support.llm_server import Reply

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPENT = Spend(billed_usd=0.25, reserved_usd=0.0, unpriced=0, budget_usd=1.0)


class Hours:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.second = 0.0

    def __call__(self) -> float:
        return self.second

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.second)


@pytest.fixture
def hours() -> Hours:
    return Hours()


@pytest.fixture
def store(tmp_path: Path, hours: Hours) -> Iterator[RunStore]:
    store = RunStore.open(tmp_path / "run.db", now=hours.now)
    yield store
    store.close()


def monitor_of(hours: Hours, told: list[Progress]) -> Monitor:
    in_flight, active_calls = InFlight(hours.now, hours), ActiveCalls(hours)
    return Monitor(told.append, in_flight, active_calls, lambda: SPENT, hours)


def test_a_rate_counts_what_ended_at_once(hours: Hours) -> None:
    told = list[Progress]()
    monitor = monitor_of(hours, told)
    for second in range(5):
        hours.second = float(second)
        monitor.on_progress(Progress(stage="embed", done=256 * second, total=9850))
    assert told[-1].pulse and told[-1].pulse.per_minute == 256 * 60


def test_what_ends_in_a_moment_has_no_rate(hours: Hours) -> None:
    meter = RateMeter(hours)
    meter.count(33)
    hours.second = 0.1
    assert meter.per_minute() is None
    hours.second = SHORTEST_S
    assert meter.per_minute() == 33 * 60 / SHORTEST_S


def test_a_rate_is_of_late(hours: Hours) -> None:
    meter = RateMeter(hours)
    for second in range(600):  # one a second for ten minutes
        hours.second = float(second)
        assert (meter.per_minute() is None) == (second < FEWEST)
        meter.count()
    rate = meter.per_minute()
    assert rate and 59 < rate < 61
    for second in range(600, 1200, 10):  # then one in ten
        hours.second = float(second)
        meter.count()
    rate = meter.per_minute()
    assert rate and 5.7 < rate < 6.3
    hours.second = 10_000.0
    rate = meter.per_minute()
    assert rate is not None and rate < 60 / RECENT_S, "what was fast once counts for ever"


def test_samples_are_counted_and_what_was_done_before_is_not(hours: Hours) -> None:
    told: list[Progress] = []
    monitor = monitor_of(hours, told)
    monitor.on_progress(Progress(stage="refresh", done=500, total=600))
    for number in range(1, 31):
        hours.second = 2.0 * number
        monitor.on_progress(Progress(stage="refresh", done=500 + number, total=600))
    pulse = told[-1].pulse
    assert pulse and (pulse.done, pulse.total) == (530, 600)
    assert pulse.per_minute == 30 and pulse.left_s == 140
    monitor.on_progress(Progress(stage="stopping", note="finishing"))
    monitor.on_progress(Progress(stage="refresh", done=531, total=600))
    assert told[-1].pulse and told[-1].pulse.per_minute, "a stop began the count anew"
    monitor.on_progress(Progress(stage="evaluate", done=1, total=9))
    assert told[-1].pulse and told[-1].pulse.per_minute is None


def test_nothing_is_left_of_a_stage_that_is_done(hours: Hours) -> None:
    told: list[Progress] = []
    monitor = monitor_of(hours, told)
    for number in range(1, FEWEST + 3):
        hours.second = 1.0 * number
        monitor.on_progress(Progress(stage="refresh", done=number, total=FEWEST + 2))
    pulse = told[-1].pulse
    assert pulse and pulse.per_minute
    assert (pulse.done, pulse.left_s) == (FEWEST + 2, 0)


async def test_a_beat_says_that_nothing_moves_and_what_it_waits_for(
    hours: Hours, store: RunStore
) -> None:
    told: list[Progress] = []
    monitor = monitor_of(hours, told)
    monitor.on_progress(
        Progress(stage="refresh", done=3, total=9, note="a note", counts={"failed": 3})
    )
    monitor.in_flight.enter("a", "retrieve")
    monitor.in_flight.enter("b", "compose")
    with monitor.active_calls.track("composer", "openai:m") as call:
        call.move_to("answer")
        hours.second = 90.0
        await monitor.beat(store)
    last = told[-1]
    assert (last.stage, last.done, last.counts, last.note) == ("refresh", 3, {"failed": 3}, "")
    assert last.pulse and last.pulse.spend == SPENT
    assert (last.pulse.idle_s, last.pulse.sent) == (90.0, 1)
    waits = [(wait.cause, wait.who, wait.seconds) for wait in last.pulse.waits]
    assert waits == [("news", "retrieve", 90.0), ("answer", "openai:m", 90.0)]
    assert await store.history.flush_steps()
    (beat,) = store.rows(select(heartbeat))
    assert ProgressSnapshot.of(beat["pulse"]) == last.pulse
    assert set(beat["in_flight"]) == {"a", "b"}
    hours.second = 95.0
    monitor.in_flight.leave("a")
    assert monitor.pulse().idle_s == 0.0
    assert [(wait.cause, wait.who) for wait in monitor.pulse().waits] == [("step", "compose")]


def test_news_that_are_fetched_for_all_samples_are_waited_for(hours: Hours) -> None:
    told: list[Progress] = []
    monitor = monitor_of(hours, told)
    monitor.on_progress(Progress(stage="gather", total=9, note="bigquery: 2 GB"))
    hours.second = 70.0
    (wait,) = monitor.pulse().waits
    assert (wait.cause, wait.seconds, wait.reason) == ("news", 70.0, "bigquery: 2 GB")


STALLED_AFTER_S = 0.3
PATIENCE_S = 20.0
PRICED = {"input": 5.0, "output": 50.0}


class Onlooker:
    """Looks at a run from another thread until it is stalled, as another process would."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.seen: RunStatus | None = None
        self.ledger: SpendingTotal | None = None
        self.thread = threading.Thread(target=self.look)

    def look(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while not (self.seen and self.seen.stalled) and time.monotonic() < until:
            time.sleep(0.02)
            self.seen = read_status(self.lab.files.root)
        self.ledger = ledger(self.lab)


def ledger(lab: Lab) -> SpendingTotal:
    calls = open_calls(lab.workspace.calls, lab.manifest.payer)
    try:
        return calls.ledger.spent()
    finally:
        calls.close()


def test_a_run_that_is_throttled_says_so_and_its_money_is_the_ledgers(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.graph.monitor.BEAT_EVERY_S", 0.05)
    monkeypatch.setattr("coreeval.runs.status.STALLED_AFTER_S", STALLED_AFTER_S)
    model = {"model": "openai:scripted", "base_url": lab.server.url, "price": PRICED}
    lab.write(models={"default": model}, run={"concurrency": 1, "budget_usd": 5.0})
    onlooker = Onlooker(lab)

    def throttle() -> Reply:
        onlooker.thread.start()
        return Reply(status=429, headers={"retry-after": "2"}, content="slow down")

    lab.trap("composition", 1, throttle)
    lab.refresh(limit=4)
    onlooker.thread.join()
    seen, paid = onlooker.seen, onlooker.ledger
    assert seen and seen.pulse and seen.sign and paid
    assert (seen.status, seen.ended_at, seen.stalled) == ("running", "", True)
    assert seen.counts["total"] == 4 == seen.ended + seen.counts["pending"]
    assert (seen.pulse.stage, seen.pulse.total) == ("refresh", 4)
    causes = {wait.cause for wait in seen.pulse.waits}
    assert "throttled" in causes
    assert paid.billed_usd > 0
    told = (paid.billed_usd, paid.unknown_usd)
    assert (seen.spend.billed_usd, seen.spend.reserved_usd) == pytest.approx(told)
    at_rest, cost = read_status(lab.files.root), lab.manifest.cost
    assert (at_rest.status, at_rest.pulse, at_rest.stalled) == ("complete", None, False)
    assert at_rest.counts == lab.manifest.counts
    assert at_rest.spend.billed_usd == pytest.approx(cost.billed_usd)
    assert at_rest.spend.billed_usd == pytest.approx(ledger(lab).billed_usd)
    assert at_rest.spend == replace(at_rest.spend, unpriced=0, reserved_usd=0, budget_usd=5.0)


def test_a_killed_run_shows_the_ledgers_sum_and_nothing_that_goes_on(killed: Lab) -> None:
    seen = read_status(killed.files.root)
    assert (seen.status, seen.pulse, seen.stuck, seen.idle_s) == ("killed", None, (), 0.0)
    assert seen.sign and seen.sign.pid
    assert seen.counts["pending"] > 0
    assert seen.spend.billed_usd == ledger(killed).billed_usd


def test_a_run_whose_call_store_is_gone_has_spent_nothing_that_is_known(killed: Lab) -> None:
    for file in Path(killed.workspace.root).glob("calls.db*"):
        file.unlink()
    assert read_status(killed.files.root).spend.billed_usd == 0.0
    assert not killed.workspace.calls.exists(), "looking made a store"


def report(pid: int, answers: int, *, seconds: float, idle_s: float = 0.0) -> WorkerReport:
    waits = (Wait(cause="answer", who="m", number=2, seconds=seconds),)
    roles = (RoleSpeed(role="composer", model="m", answers=answers, mean_s=seconds),)
    positions = {f"s{pid}": {"node": "compose", "since": NOW.isoformat()}}
    return WorkerReport(
        pid=pid, host="h", idle_s=idle_s, sent=3, roles=roles, waits=waits, positions=positions
    )


def test_workers_are_one_run(hours: Hours, store: RunStore) -> None:
    monitor = monitor_of(hours, [])
    monitor.update_worker(1, 0, report(12, answers=10, seconds=1.0))
    hours.second = 5.0
    monitor.update_worker(1, 4, report(12, answers=30, seconds=1.0, idle_s=2.0))
    monitor.update_worker(0, 7, report(11, answers=10, seconds=5.0, idle_s=4.0))
    hours.second = 6.0
    pulse = monitor.pulse()
    assert pulse.sent == 6
    assert pulse.roles == (RoleSpeed(role="composer", model="m", answers=40, mean_s=2.0),)
    assert pulse.waits == (Wait(cause="answer", who="m", number=4, seconds=5.0),)
    assert pulse.idle_s == 3.0
    assert [(one.number, one.pid, one.ended, one.age_s) for one in pulse.workers] == [
        (0, 11, 7, 1.0),
        (1, 12, 4, 1.0),
    ]
    assert [one.per_second for one in pulse.workers] == [0.0, 4.0]
    asyncio.run(monitor.beat(store))
    store.submit([]).result()  # the beat before it is committed
    (beat,) = store.rows(select(heartbeat))
    assert set(beat["in_flight"]) == {"s11", "s12"}
    assert ProgressSnapshot.of(beat["pulse"]).workers == pulse.workers
    monitor.forget_worker(1)
    hours.second = 7.0
    assert [one.number for one in monitor.pulse().workers] == [0]


def spend(usd: float, budget_usd: float | None = None) -> Spend:
    return Spend(billed_usd=usd, reserved_usd=0.0, unpriced=0, budget_usd=budget_usd)


def test_a_forecast_is_what_ended_samples_cost_times_those_left() -> None:
    meter = CostMeter()
    meter.add(500, spend(10.0))  # kept from a release, or of an earlier process
    assert meter.forecast(500, 600, spend(10.0)) is None
    for number in range(1, 5):
        meter.add(500 + 10 * number, spend(10.0 + number))
    found = meter.forecast(540, 600, spend(14.0, 19.0))
    assert found is not None
    assert found.usd == pytest.approx(20.0) and found.exceeds_budget
    assert found.low_usd == found.high_usd == found.usd, "all cost the same"
    enough = meter.forecast(540, 600, spend(14.0, 21.0))
    assert enough is not None and enough.exceeds_budget is False
    meter.add(550, spend(17.0))
    wider = meter.forecast(550, 600, spend(17.0))
    assert wider is not None and wider.exceeds_budget is None
    assert 17.0 <= wider.low_usd < wider.usd < wider.high_usd


def test_the_interval_covers_what_a_stage_costs_in_the_end() -> None:
    chance, inside, tries = random.Random(7), 0, 400
    for _ in range(tries):
        costs = [chance.expovariate(100.0) for _ in range(400)]
        meter, paid = CostMeter(), 0.0
        meter.add(0, spend(0.0))
        for done, usd in enumerate(costs[:100], start=1):
            paid += usd
            if done % 5 == 0:
                meter.add(done, spend(paid))
        found = meter.forecast(100, 400, spend(paid))
        assert found is not None
        inside += found.low_usd <= sum(costs) <= found.high_usd
    assert 0.9 < inside / tries < 0.99


def test_nothing_that_costs_nothing_has_a_forecast() -> None:
    meter = CostMeter()
    for number in range(10):
        meter.add(10 * number, spend(0.0))
    assert meter.forecast(90, 100, spend(0.0)) is None


async def test_that_the_budget_will_not_suffice_is_told_once(hours: Hours, store: RunStore) -> None:
    told, paid = list[Progress](), [0.0]
    in_flight, active_calls = InFlight(hours.now, hours), ActiveCalls(hours)
    monitor = Monitor(told.append, in_flight, active_calls, lambda: spend(paid[0], 5.0), hours)
    monitor.on_progress(Progress(stage="refresh", done=0, total=100))
    for number in range(8):
        hours.second, paid[0] = 60.0 * number, 1.0 * number / 2
        monitor.on_progress(Progress(stage="refresh", done=5 * number, total=100))
        await monitor.beat(store)
    notes = [one.note for one in told if one.note]
    assert len(notes) == 1
    assert "expected to cost about 10.00 USD by the end of the refresh stage" in notes[0]
    assert "more than the budget of 5.00 USD" in notes[0] and "--budget" in notes[0]
    pulse = told[-1].pulse
    assert pulse and pulse.cost and pulse.cost.exceeds_budget
    assert pulse.left_s == pytest.approx(13 * 60, rel=0.2)
    assert pulse.ends_at.startswith("2026-03-01T12:") and pulse.ends_at.endswith("+00:00")
    assert ProgressSnapshot.of(asdict(pulse)) == pulse
