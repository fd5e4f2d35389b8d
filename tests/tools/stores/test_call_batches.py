"""The batches of the call store: what is queued, reserved, sent, kept and put back."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.tools.stores.batch_records import LIVE, Batch, CollectedAnswer, QueuedRequest
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore, open_calls

NOW = datetime(2026, 11, 28, tzinfo=UTC)


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[CallStore]:
    with closing(open_calls(tmp_path / "calls.db", "run")) as store:
        yield store


def question(key: str, usd: float | None = 0.5, model: str = "openai:small") -> QueuedRequest:
    return QueuedRequest(
        key=key,
        endpoint="http://here",
        model=model,
        key_env="OPENAI_API_KEY",
        body=b'{"asks": "%b"}' % key.encode(),
        size=100,
        max_tokens=10,
        method="json_schema",
        plain_limit=True,
        most_usd=usd,
    )


async def begin(calls: CallStore, *keys: str, budget: float | None = 10.0) -> Batch | None:
    for key in keys:
        await calls.batches.queue(question(key))
    (length,) = calls.batches.queue_lengths()
    return await calls.batches.begin(length, keys, made_at=NOW, budget_usd=budget)


def collected(batch: Batch, calls: CallStore, key: str, usd: float | None) -> CollectedAnswer:
    request = calls.batches.requests_of(batch)[key]
    return CollectedAnswer(key=key, reservation=request.reservation, answer=b"said", usd=usd)


def call(key: str, usd: float) -> CallRecord:
    return CallRecord(
        key=key,
        draw=0,
        role="judge",
        request='{"messages": [], "schema": {}}',
        response="yes",
        valid=True,
        usd=usd,
    )


async def test_what_a_batch_may_cost_is_reserved_by_question_before_it_is_sent(
    calls: CallStore,
) -> None:
    batch = await begin(calls, "a", "b")

    assert batch and batch.state == "sending" and batch.total == 2
    assert calls.ledger.spent().unknown_usd == pytest.approx(1.0)
    found = calls.batches.find("a")
    assert found and found.is_sent and not calls.batches.queue_lengths()


async def test_a_batch_that_the_budget_does_not_cover_is_not_made(calls: CallStore) -> None:
    assert await begin(calls, "a", "b", budget=0.9) is None

    assert calls.ledger.spent().unknown_usd == 0
    assert calls.batches.open_batches() == []
    assert calls.batches.queue_lengths()[0].requests == 2


async def test_without_a_budget_it_is_reserved_too(calls: CallStore) -> None:
    assert await begin(calls, "a", budget=None)

    assert calls.ledger.spent().unknown_usd == 0.5


async def test_an_answer_costs_what_it_cost_and_its_call_settles_it(calls: CallStore) -> None:
    batch = await begin(calls, "a", "b")
    assert batch
    await calls.batches.keep(batch, [collected(batch, calls, "a", 0.125)], {"usd": 0.125})

    assert calls.ledger.spent().unknown_usd == pytest.approx(0.625)
    found = calls.batches.find("a")
    assert found and found.answer == b"said" and found.usd == 0.125
    await calls.put(call("a", 0.125), found.reservation, calls.batches.forget_writes("a"))
    assert calls.batches.find("a") is None
    spent = calls.ledger.spent()
    assert (spent.billed_usd, spent.unknown_usd) == (0.125, 0.5)


async def test_an_answer_of_unknown_cost_stays_reserved(calls: CallStore) -> None:
    batch = await begin(calls, "a")
    assert batch
    await calls.batches.keep(batch, [collected(batch, calls, "a", None)], {"usd": 0.0})

    assert calls.ledger.spent().unknown_usd == 0.5


async def test_a_free_failure_releases_its_reservation(calls: CallStore) -> None:
    batch = await begin(calls, "a")
    assert batch
    await calls.batches.keep(batch, [collected(batch, calls, "a", 0.0)], {"usd": 0.0})

    assert calls.ledger.spent().unknown_usd == 0


@pytest.mark.parametrize(("is_billed", "left"), [(False, 0.0), (True, 0.5)])
async def test_what_was_not_answered_is_put_back(
    calls: CallStore, is_billed: bool, left: float
) -> None:
    batch = await begin(calls, "a")
    assert batch
    wanted = calls.batches.requests_of(batch)
    await calls.batches.put_back(batch, wanted, reason="expired", to=LIVE, is_billed=is_billed)

    found = calls.batches.find("a")
    assert found and found.batch == LIVE and list(found.tries) == ["expired"]
    assert calls.ledger.spent().unknown_usd == left


async def test_putting_back_leaves_answers_alone(calls: CallStore) -> None:
    batch = await begin(calls, "a")
    assert batch
    wanted = calls.batches.requests_of(batch)
    await calls.batches.keep(batch, [collected(batch, calls, "a", 0.25)], {"usd": 0.25})
    await calls.batches.put_back(batch, wanted, reason="late")

    found = calls.batches.find("a")
    assert found and found.answer == b"said"


async def test_a_queue_is_read_within_both_limits(calls: CallStore) -> None:
    for key in "abcd":
        await calls.batches.queue(question(key))
    (length,) = calls.batches.queue_lengths()
    body = len(question("a").body)

    def read(most: int, most_bytes: int) -> list[str]:
        taken = calls.batches.read_queue(length, most=most, most_bytes=most_bytes)
        return [key for key, _ in taken]

    assert read(3, 1000) == ["a", "b", "c"]
    assert read(9, 2 * body) == ["a", "b"]
    assert read(9, 1) == ["a"]  # one that is too long alone is for the provider to judge


async def test_the_provider_ids_of_an_endpoint_are_those_of_all_payers(
    calls: CallStore, tmp_path: Path
) -> None:
    with closing(open_calls(tmp_path / "calls.db", "other run")) as other:
        for number, store in enumerate((calls, other)):
            batch = await begin(store, "a")
            assert batch
            await store.batches.update(batch, {"provider_id": f"msg-{number}"})
        await begin(calls, "b")  # it is not known whether the provider has it
        assert calls.batches.provider_ids("http://here") == {"msg-0", "msg-1"}
        assert calls.batches.provider_ids("http://there") == set()


async def test_only_what_this_process_asks_is_sent(calls: CallStore, tmp_path: Path) -> None:
    await calls.batches.queue(question("a"))
    with closing(open_calls(tmp_path / "calls.db", "other run")) as other:
        assert other.batches.queue_lengths() == []
        assert other.batches.find("a") is None
    stale = calls.batches.find("a")
    assert stale and calls.batches.is_queued_here(stale)
