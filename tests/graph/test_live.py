"""Looking at a run from outside while it goes on: counts, money, what it waits for."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from coreeval.releases.live import Live, live
from coreeval.tools.stores.call_store import SpendingTotal, open_calls
from tests.graph.kit import Lab
from tests.support.llm_server import Reply

STALLED_AFTER_S = 0.3
PATIENCE_S = 20.0
PRICED = {"input": 5.0, "output": 50.0}


class Onlooker:
    """Looks at a run from another thread until it is stalled, as another process would."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.seen: Live | None = None
        self.ledger: SpendingTotal | None = None
        self.thread = threading.Thread(target=self.look)

    def look(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while not (self.seen and self.seen.stalled) and time.monotonic() < until:
            time.sleep(0.02)
            self.seen = live(self.lab.files.root)
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
    monkeypatch.setattr("coreeval.releases.live.STALLED_AFTER_S", STALLED_AFTER_S)
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
    assert (seen.spend.billed_usd, seen.spend.reserved_usd) == (paid.billed_usd, paid.unknown_usd)
    at_rest, cost = live(lab.files.root), lab.manifest.cost
    assert (at_rest.status, at_rest.pulse, at_rest.stalled) == ("complete", None, False)
    assert at_rest.counts == lab.manifest.counts
    assert at_rest.spend.billed_usd == pytest.approx(cost.billed_usd)
    assert at_rest.spend.billed_usd == pytest.approx(ledger(lab).billed_usd)
    assert at_rest.spend == replace(at_rest.spend, unpriced=0, reserved_usd=0, budget_usd=5.0)


def test_a_killed_run_shows_the_ledgers_sum_and_nothing_that_goes_on(killed: Lab) -> None:
    seen = live(killed.files.root)
    assert (seen.status, seen.pulse, seen.stuck, seen.idle_s) == ("killed", None, (), 0.0)
    assert seen.sign and seen.sign.pid
    assert seen.counts["pending"] > 0
    assert seen.spend.billed_usd == ledger(killed).billed_usd


def test_a_run_whose_call_store_is_gone_has_spent_nothing_that_is_known(killed: Lab) -> None:
    for file in Path(killed.workspace.root).glob("calls.db*"):
        file.unlink()
    assert live(killed.files.root).spend.billed_usd == 0.0
    assert not killed.workspace.calls.exists(), "looking made a store"
