"""What ends a run, what a server may ask for, and what is found out about a model once."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime
from pathlib import Path

import pytest

from coreeval.config import ModelConfig, PriceConfig
from coreeval.errors import (
    CoreEvalError,
    CredentialError,
    ModelCallError,
    ModelUnusable,
    RunError,
)
from coreeval.models import ModelClient, ModelPool, Retry
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.models.conftest import KEY, MakeClient, Naps
from tests.models.survival import GOOD, JOY, asked, bodies, method_of, records
from tests.support.exchanges import exchange
from tests.support.llm_server import Answers, LLMServer, Reply, Request, refused, script
from tests.support.worker import filling


def quota(status: int = 429) -> Reply:
    return Reply(status=status, error={"message": "no credit", "code": "insufficient_quota"})


def good_for(count: int, then: Reply) -> Answers:
    """Answer so many requests well, and no more."""
    return script(*[GOOD] * count, then)


# -- what ends a run ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (quota(), ModelUnusable),
        (quota(403), ModelUnusable),
        (Reply(error={"message": "no credit", "code": "insufficient_quota"}), ModelUnusable),
        (Reply(error={"message": "no credit", "code": 402}), ModelUnusable),
        (refused(402), ModelUnusable),
        (refused(404, "no such model"), ModelUnusable),
        (refused(401, f"revoked: {KEY}"), CredentialError),
        (Reply(error={"message": f"revoked: {KEY}", "code": "401"}), CredentialError),
        (refused(403, "not your key"), CredentialError),
    ],
)
async def test_what_no_retry_brings_back_is_asked_once(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    naps: Naps,
    reply: Reply,
    error: type[CoreEvalError],
) -> None:
    server.answers = good_for(4, reply)
    client = make_client(max_in_flight=1)
    said = await asyncio.gather(
        *(asked(client, number) for number in range(10)), return_exceptions=True
    )
    assert said[:4] == [JOY] * 4 and {type(one) for one in said[4:]} == {error}
    assert len(set(bodies(server.requests))) == len(server.requests) == 10 and list(naps) == []
    assert [one.valid for one in records(store)] == [True] * 4
    told = said[-1]
    assert isinstance(told, CoreEvalError) and told.where == server.url and told.hint
    assert KEY not in str(told)

    server.answers = script(GOOD)
    again = make_client()
    assert [await asked(again, number) for number in range(10)] == [JOY] * 10
    assert len(server.requests) == 16


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"message": "bad", "code": {"a": 1}, "type": ["b"], "param": 3}}',
        '{"error": "bad"}',
        '{"error": null, "detail": [{"msg": "bad"}]}',
        '{"detail": "bad"}',
        "bad",
        f'{{"message": "bad", "code": 400, "key": "{KEY}"}}',
    ],
)
async def test_what_a_server_said_is_told_whatever_its_form(
    make_client: MakeClient, server: LLMServer, body: str
) -> None:
    server.answers = script(Reply(status=400, body=body))
    with pytest.raises(ModelCallError, match="bad") as caught:
        await asked(make_client())
    assert len(server.requests) == 1 and KEY not in str(caught.value)


# -- how long a server may let us wait ----------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.5),
        ("0.25", 0.75),
        (None, 0.75),
        ("soon", 0.75),
        ("nan", 0.75),
        ("Wed, 01 Jan 2020 00:00:00 +99999999999999999999", 0.75),
        ("-5", 0.5),
        ("Wed, 01 Jan 2020 00:00:00 GMT", 0.5),
        ("1e9", 120.5),
        ("Fri, 01 Jan 2500 00:00:00 GMT", 120.5),
        ("9" * 300, 120.5),
        ("9" * 400, 0.75),
    ],
)
async def test_retry_after(
    server: LLMServer, store: CallStore, naps: Naps, header: str | None, seconds: float
) -> None:
    told = {"Retry_After": header} if header else {}
    server.answers = script(refused(429, "slow down", **told), GOOD)
    assert await asked(patient(server, store, naps)) == JOY
    assert list(naps) == pytest.approx([seconds], abs=0.01)


def patient(server: LLMServer, store: CallStore, naps: Naps) -> ModelClient:
    """Return a client whose waits are no matter of chance."""
    retry = Retry(sleep=naps.sleep, jitter=lambda: 0.5)
    config = ModelConfig(model="openai:stub", base_url=server.url)
    return exchange(store, retry=retry).open_client(config, "extractor")


def jumping(hours: float) -> type[datetime]:
    """Return a wall clock that jumps by so many hours at each second look at it."""

    class Jumping(datetime):
        looks = 0

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Jumping":
            cls.looks += 1
            moved = datetime.now(tz) + (cls.looks % 2) * timedelta(hours=hours)
            return cls.fromtimestamp(moved.timestamp(), tz)

    return Jumping


@pytest.mark.parametrize("hours", [-100_000, -1, 1, 100_000])
async def test_a_clock_that_jumps_neither_hangs_nor_turns_back(
    server: LLMServer, store: CallStore, naps: Naps, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    for module in ("tools.http", "models.rate_limit", "models.client"):
        monkeypatch.setattr(f"coreeval.{module}.datetime", jumping(hours))
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    limits = {
        "anthropic-ratelimit-requests-remaining": "1",
        "anthropic-ratelimit-requests-reset": (datetime.now(UTC) + timedelta(hours=9)).isoformat(),
    }
    server.answers = script(
        *[refused(429, "slow down", Retry_After=soon)] * 4, Reply(content=GOOD, headers=limits)
    )
    began = time.monotonic()
    assert await asyncio.wait_for(asked(patient(server, store, naps)), 20) == JOY
    assert len(naps) == 4 and all(0 <= nap <= 120.5 for nap in naps)
    (kept,) = records(store)
    assert 0 <= kept.seconds <= time.monotonic() - began


# -- what is found out about a model ------------------------------------------------------------

SAID: dict[str, Callable[[str], Reply]] = {
    "object": lambda what: refused(400, f"{what} is not supported with this model"),
    "words": lambda what: Reply(status=400, error=f"'{what}' must be 'none'"),
    "detail": lambda what: Reply(
        status=422, body=json.dumps({"detail": [{"loc": [what], "msg": "extra fields"}]})
    ),
    "plain": lambda what: Reply(status=400, body=f"unknown field {what}"),
}


def takes_no(said: Callable[[str], Reply], *unknown: str) -> Answers:
    """Refuse requests that have one of these keys."""

    def answer(request: Request) -> str | Reply:
        return next((said(name) for name in unknown if name in request), Reply(content=GOOD))

    return answer


@pytest.mark.parametrize("said", SAID.values(), ids=SAID.keys())
@pytest.mark.parametrize(
    ("unknown", "refusals", "method"),
    [
        (["response_format"], 1, "function_calling"),
        (["tools"], 0, "json_schema"),
        (["response_format", "tools"], 3, "text"),
    ],
)
async def test_a_method_that_is_refused_is_tried_once_and_never_by_a_later_process(
    server: LLMServer,
    tmp_path: Path,
    said: Callable[[str], Reply],
    unknown: list[str],
    refusals: int,
    method: str,
) -> None:
    server.answers = takes_no(said, *unknown)
    for process in range(2):
        with_store = open_calls(tmp_path / "calls.db")
        client = opened(server, with_store)
        assert [await asked(client, 2 * process + n) for n in range(2)] == [JOY] * 2
        kept = list(with_store.records())
        with_store.close()
    assert [one.method for one in kept] == [method] * 4
    assert sorted(len(one.tries.splitlines()) for one in kept) == [0, 0, 0, refusals]
    assert len(server.requests) == 4 + refusals


def opened(server: LLMServer, store: CallStore) -> ModelClient:
    config = ModelConfig(model="openai:stub", base_url=server.url)
    return exchange(store).open_client(config, "extractor")


async def test_many_at_once_find_out_together(make_client: MakeClient, server: LLMServer) -> None:
    server.answers = takes_no(SAID["object"], "response_format")
    client = make_client()
    assert await asyncio.gather(*(asked(client, number) for number in range(20))) == [JOY] * 20
    methods = [method_of(request) for request in server.requests]
    assert methods.count("function_calling") == 20 and methods.count("json_schema") <= 20
    assert len(set(bodies(server.requests))) == len(server.requests)


async def test_where_no_method_is_left_the_question_fails_and_says_why(
    make_client: MakeClient, server: LLMServer, store: CallStore
) -> None:
    server.answers = script(SAID["object"]("response_format"))
    with pytest.raises(ModelCallError, match="response_format is not supported"):
        await asked(make_client())
    methods = [method_of(request) for request in server.requests]
    assert methods == ["json_schema", "function_calling", "json_mode", "text"]
    with pytest.raises(ModelCallError):
        await asked(make_client(structured="json_mode"), 1)
    assert len(server.requests) == 5


@pytest.mark.parametrize("known", [None, "no", "yes"])
@pytest.mark.parametrize(
    ("unknown", "taken"),
    [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")],
)
async def test_the_name_of_the_limit_is_found_out_be_it_remembered_wrongly(
    server: LLMServer, tmp_path: Path, known: str | None, unknown: str, taken: str
) -> None:
    server.answers = takes_no(
        lambda name: refused(400, f"Unsupported parameter: '{name}'. Use '{taken}' instead."),
        unknown,
    )
    with closing(open_calls(tmp_path / "calls.db")) as before:
        before.learn(server.url, "stub", {"plain_limit": known} if known else {})
    store = open_calls(tmp_path / "calls.db")
    client = opened(server, store)
    assert [await asked(client, number) for number in range(3)] == [JOY] * 3
    first_is_plain = known != "no"
    assert len(server.requests) == 3 + (first_is_plain == (unknown == "max_tokens"))
    assert all(taken in request for request in server.requests[-3:])
    store.close()
    with closing(open_calls(tmp_path / "calls.db")) as after:
        left = after.ability(server.url, "stub").get("plain_limit")
    assert left == ("yes" if taken == "max_tokens" else "no") or (left is None and not known)


async def test_where_neither_name_is_taken_the_question_fails(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = takes_no(SAID["object"], "max_tokens", "max_completion_tokens")
    client = make_client()
    for number, requests in ((0, 2), (1, 3)):
        with pytest.raises(ModelCallError, match="is not supported"):
            await asked(client, number)
        assert len(server.requests) == requests


# -- money --------------------------------------------------------------------------------------

PRICE = PriceConfig(input=1.0, output=1.0)


def paid(server: LLMServer, store: CallStore, budget_usd: float = 1.0) -> ModelClient:
    """Return a client of a priced model with a budget."""
    config = ModelConfig(model="openai:stub", base_url=server.url, price=PRICE, max_tokens=100)
    connected: ModelPool = exchange(store, budget_usd=budget_usd)
    return connected.open_client(config, "extractor")


async def test_an_answer_whose_tokens_nobody_counted_counts_as_spent_at_worst(
    server: LLMServer, store: CallStore
) -> None:
    body = {"choices": [{"message": {"content": GOOD}}], "usage": None}
    server.answers = script(Reply(body=json.dumps(body)))
    assert await asked(paid(server, store)) == JOY
    spent = store.ledger.spent()
    assert spent.billed_usd == 0 and spent.unknown_usd > 0


async def test_a_request_that_was_refused_costs_nothing_and_one_that_broke_off_may(
    server: LLMServer, store: CallStore
) -> None:
    server.answers = script(refused(400, "bad"))
    client = paid(server, store)
    with pytest.raises(ModelCallError):
        await asked(client)
    server.answers = script(refused(404, "bad"))
    with pytest.raises(ModelUnusable):
        await asked(client, 1)
    assert await settled(store) == (0, 0)
    server.answers = script(Reply(error={"message": "broke", "code": 402}))
    with pytest.raises(ModelUnusable):
        await asked(client, 2)
    billed, unknown = await settled(store)
    assert billed == 0 and unknown > 0


async def settled(store: CallStore) -> tuple[float, float]:
    """Return what is billed and what is unknown, once all that was submitted is written."""
    last = await store.ledger.reserve("last", 0.0)
    spent = store.ledger.spent()
    assert last and last.usd == 0.0
    return spent.billed_usd, spent.unknown_usd


async def test_where_no_money_can_be_put_aside_nothing_is_asked_and_nobody_waits(
    server: LLMServer, tmp_path: Path
) -> None:
    server.answers = script(GOOD)
    path = tmp_path / "calls.db"
    open_calls(path).close()
    with filling("calls.db:1"):
        with closing(open_calls(path, "another run")) as other, pytest.raises(RunError):
            while True:
                await other.ledger.reserve("key", 1.0)
        with closing(open_calls(path)) as store:
            client = paid(server, store, budget_usd=0.001)
            waiting = asyncio.gather(*(asked(client, n) for n in range(30)), return_exceptions=True)
            said = await asyncio.wait_for(waiting, 20)
    assert {type(one) for one in said} == {RunError}
    assert all("disk is full" in str(one) for one in said)
    assert server.requests == []
