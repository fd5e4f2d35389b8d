"""This machine's clock may be wrong, or set meanwhile: nothing is paid twice or waits for long."""

from datetime import timedelta

import pytest

from coreeval.graph import batch_rounds
from coreeval.graph.execute import RunHooks
from coreeval.graph.run import refresh, resume
from coreeval.models.anthropic_batches import AnthropicBatches
from coreeval.models.openai import OpenAIChat
from coreeval.tools.clock import utc_now
from tests.graph.kit import Lab, Undisturbed
from tests.graph.test_batch_rounds import FEW, PRICE, assert_as_live
from tests.support.fake_batches import FakeBatches, FakeProvider

RUN = {"concurrency": 4, "batch": {"live_below": 0}, "budget_usd": 50.0}
AFTER_S = 900.0


def hooks(*, hours_ahead: float = 0.0, waits: bool = False) -> RunHooks:
    """Return what a process takes whose clock is ahead."""
    ahead = timedelta(hours=hours_ahead)
    return RunHooks(first_look_s=0.01, waits=waits, now=lambda: utc_now() + ahead)


@pytest.mark.parametrize("hours_later", [-5, 0, 1, 5])
def test_a_batch_that_was_made_unseen_is_found_whatever_this_machines_clock_says(
    lab: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch, hours_later: float
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setattr(AnthropicBatches, "absent_after_s", 0.001)
    model = {
        "model": "anthropic:scripted",
        "base_url": lab.server.anthropic_url,
        "price": PRICE,
        "structured": "function_calling",
    }
    lab.write(models={"default": model}, run=RUN)
    lab.server.seconds, lab.server.faults.die_after_create = 0.0, 1
    refresh(lab.config, limit=FEW, run_dir=lab.files.root, around=hooks(hours_ahead=5))
    resume(lab.files.root, around=hooks(hours_ahead=5 + hours_later, waits=True))
    assert_as_live(lab, undisturbed)
    assert set(lab.server.paid_ids.values()) == {1} and lab.server.requests == []
    assert lab.manifest.cost.unknown_usd == 0


@pytest.fixture
def provider(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    found = FakeProvider(lab.server.url)
    endpoint = FakeBatches(found, absent_after_s=AFTER_S)
    monkeypatch.setattr(OpenAIChat, "open_batches", lambda _chat: endpoint)
    monkeypatch.setattr(batch_rounds, "LONGEST_LOOK_S", 0.01)
    lab.write(run={"concurrency": 4, "batch": {"live_below": 0}})
    return found


def test_absence_is_proved_by_the_providers_clock(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.breaks_before_create = 1
    refresh(lab.config, limit=FEW, run_dir=lab.files.root, around=hooks(hours_ahead=5))
    resume(lab.files.root, around=hooks(hours_ahead=10))
    assert provider.sizes == [], "it is this machine's clock alone that says that hours have gone"
    provider.clock_ahead = timedelta(seconds=AFTER_S + 1)
    resume(lab.files.root, around=hooks())
    assert provider.sizes == [FEW]
    resume(lab.files.root, around=hooks(waits=True))
    assert_as_live(lab, undisturbed)


def test_a_clock_of_the_provider_that_was_set_back_is_waited_for_once(
    lab: Lab, provider: FakeProvider
) -> None:
    provider.breaks_before_create, provider.clock_ahead = 1, timedelta(hours=5)
    refresh(lab.config, limit=FEW, run_dir=lab.files.root, around=hooks())
    for seconds, sizes in ((0.0, []), (AFTER_S - 10, []), (AFTER_S + 1, [FEW])):
        provider.clock_ahead = timedelta(seconds=seconds)
        resume(lab.files.root, around=hooks())
        assert provider.sizes == sizes
