"""What calls cost, over the wire: known, put aside, settled, written off, given back."""

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from coreeval.config import METHODS
from coreeval.errors import BudgetSpent, CoreEvalError, ModelCallError, NoValidAnswer
from coreeval.models import CallRef, InvalidAnswer, OutputSchema
from coreeval.models.dispatch import LiveDispatcher
from coreeval.tools.catalogs import MILLION, Price
from coreeval.tools.stores.call_ledger import SpendingTotal
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import Connect
from tests.models.kit import GOOD, SHAPE, Answer, Crowded, Taking, ask, asked, client_of
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, Request, refused, script

PATIENCE_S = 20.0
PRICE = {"input": 10, "output": 1000, "cached_input": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file of the `store`."""
    return tmp_path / "calls.db"


def counted(prompt: int, completion: int, cached: int = 0) -> Reply:
    """Return an answer with these tokens."""
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return Reply(body=json.dumps({"choices": [{"message": {"content": GOOD}}], "usage": usage}))


LONG = "a " * 500
"""A text that may have a thousand tokens."""
NOT_COUNTED = Reply(body=json.dumps({"choices": [{"message": {"content": GOOD}}]}))


async def test_a_call_costs_what_its_tokens_cost(
    connect: Connect, server: LLMServer, store: CallStore
) -> None:
    server.answers = script(counted(1000, 100, cached=600))
    call = await ask(client_of(connect(), server, price=PRICE), LONG)
    assert call.usd == pytest.approx((400 * 10 + 600 * 1 + 100 * 1000) / 1e6)
    assert (call.prompt_tokens, call.cached_tokens, call.completion_tokens) == (1000, 600, 100)
    (kept,) = store.records()
    assert (kept.usd, kept.cached_tokens) == (call.usd, 600)


@pytest.mark.parametrize(
    ("price", "reply"), [(None, counted(1000, 100)), (PRICE, NOT_COUNTED)], ids=["price", "tokens"]
)
async def test_what_is_not_known_is_not_free(
    connect: Connect, server: LLMServer, price: object, reply: Reply
) -> None:
    server.answers = script(reply)
    assert (await ask(client_of(connect(), server, price=price), LONG)).usd is None


@pytest.mark.parametrize("prompt", [1, 20_000_000])
@pytest.mark.parametrize("completion", [1, 400, 401, 20_000_000])
async def test_tokens_that_a_request_cannot_have_had_are_charged_as_what_was_put_aside(
    connect: Connect, server: LLMServer, store: CallStore, path: Path, prompt: int, completion: int
) -> None:
    """Thoughts may go beyond the longest answer, but not by any number."""
    server.answers = script(counted(prompt, completion))
    asked = connect(budget_usd=1)
    client = client_of(asked, server, price=PRICE, max_tokens=100)
    call = await ask(client)
    assert isinstance(client.dispatcher, LiveDispatcher)
    notes = client.dispatcher.active_calls.count_notes()
    if (prompt, completion) in {(1, 1), (1, 400)}:
        assert call.usd == pytest.approx((10 * prompt + 1000 * completion) / 1e6)
        assert (open_in(path), notes) == ([], [])
        return
    assert (call.usd, call.prompt_tokens, call.completion_tokens) == (None, 0, 0)
    (put_aside,) = open_in(path)
    assert store.ledger.spent() == SpendingTotal(billed_usd=0.0, unknown_usd=put_aside)
    assert 0.1 < put_aside < 0.2
    odd = (
        "20000000 prompt tokens for"
        if prompt > 1
        else f"{completion} completion tokens, with a maximum of 100"
    )
    (note,) = notes
    assert odd in note


async def test_prices_of_a_table_are_found_by_the_models_name(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = script(counted(1000, 0))
    told = Price(input=5, output=1, as_of=date(2026, 1, 1), source="s")
    client = client_of(exchange(store, prices={"openai:stub": told}), server)
    assert (await ask(client, LONG)).usd == pytest.approx(0.005)


def open_in(path: Path) -> list[float]:
    """Return the reservations that another process would see."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        return [usd for (usd,) in reader.execute("SELECT usd FROM reservations")]


async def test_a_request_is_paid_for_in_the_file_before_it_is_sent_and_once_it_is_answered(
    connect: Connect, server: LLMServer, store: CallStore, path: Path
) -> None:
    seen = list[list[float]]()

    def answers(_request: Request) -> Reply:
        seen.append(open_in(path))
        return counted(1000, 10)

    server.answers = answers
    client = client_of(connect(budget_usd=5), server, price=PRICE, max_tokens=1000)
    call = await ask(client, LONG)
    ((put_aside,),) = seen
    assert call.usd is not None and 1.0 < put_aside < 1.2 and call.usd < put_aside
    assert open_in(path) == []
    assert store.ledger.spent() == SpendingTotal(billed_usd=call.usd, unknown_usd=0.0)


@pytest.mark.parametrize("words", ["joy", "\u559c\u60a6"], ids=["ascii", "not ascii"])
@pytest.mark.parametrize("method", METHODS)
async def test_the_reservation_covers_the_prompt_whatever_way_the_endpoint_is_asked(
    connect: Connect, server: LLMServer, path: Path, method: str, words: str
) -> None:
    """A token of the prompt stands for a byte at least."""
    labels = [f"{words} {number}" for number in range(50)]
    shape = OutputSchema(Answer, name="answer", choices={"label": labels})
    seen = list[tuple[int, float]]()

    def answers(request: Request) -> str:
        seen.append((prompt_bytes(request), sum(open_in(path))))
        return json.dumps({"label": labels[0]})

    server.answers = answers
    price = {"input": MILLION, "output": 0}
    client = client_of(connect(budget_usd=1e9), server, price=price, structured=method)
    await client.ask(asked(), shape)
    ((size, put_aside),) = seen
    assert put_aside >= size


def prompt_bytes(request: Request) -> int:
    """Return the bytes that a request's words and its schema have."""
    messages = request["messages"]
    assert isinstance(messages, list)
    forms = [request[name] for name in ("response_format", "tools") if name in request]
    words = [*(message["content"] for message in messages), *map(dumps, forms)]
    return sum(len(one.encode()) for one in words)


def dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("budget", [0.15, 0.5])
async def test_a_budget_is_kept_by_many_at_once_and_what_was_answered_is_kept(
    connect: Connect, server: LLMServer, store: CallStore, budget: float
) -> None:
    server.answers = Crowded(seconds=0.005)
    client = client_of(connect(budget_usd=budget), server, price=PRICE, max_tokens=100)
    async with asyncio.timeout(PATIENCE_S):
        ended = await asyncio.gather(
            *(ask(client, str(n)) for n in range(200)), return_exceptions=True
        )
    answered = [one for one in ended if isinstance(one, CallRef)]
    assert {type(one) for one in ended} == {CallRef, BudgetSpent}
    assert len(answered) == len(server.requests) == len(list(store.records()))
    told = store.ledger.spent()
    assert told.billed_usd == pytest.approx(sum(one.usd or 0 for one in answered))
    assert told.unknown_usd == 0 and told.billed_usd <= budget
    assert told.billed_usd > budget - 0.2, "it stopped too early"


async def test_more_budget_lets_the_run_go_on_over_what_was_answered(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = script(counted(0, 100))
    texts = [str(number) for number in range(12)]
    first = client_of(connect(budget_usd=0.75), server, price=PRICE, max_tokens=100)
    done = await asyncio.gather(*(ask(first, text) for text in texts), return_exceptions=True)
    assert [type(one) for one in done].count(CallRef) == len(server.requests) < 12
    second = client_of(connect(budget_usd=5), server, price=PRICE, max_tokens=100)
    await asyncio.gather(*(ask(second, text) for text in texts))
    assert len(server.requests) == 12


@pytest.mark.parametrize("reply", [Reply(delay_s=0.5), Reply(drop=True), Reply(body="{}")])
async def test_what_may_have_been_billed_is_written_off(
    connect: Connect, server: LLMServer, path: Path, reply: Reply
) -> None:
    server.answers = script(reply, reply, GOOD)
    client = client_of(connect(budget_usd=9), server, price=PRICE, max_tokens=1000, timeout_s=0.2)
    await ask(client)
    assert len(server.requests) == 3
    lost = open_in(path)
    assert len(lost) == 2 and all(usd > 1 for usd in lost)


async def test_what_is_written_off_uses_the_budget_up(connect: Connect, server: LLMServer) -> None:
    server.answers = script(Reply(drop=True))
    client = client_of(connect(budget_usd=2.5), server, price=PRICE, max_tokens=1000)
    with pytest.raises(BudgetSpent, match="already spent or reserved"):
        await ask(client)
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
async def test_what_was_refused_is_given_back(
    connect: Connect, server: LLMServer, store: CallStore, path: Path, status: int
) -> None:
    server.answers = script(refused(status, "no"))
    client = client_of(connect(budget_usd=1.5), server, price=PRICE, max_tokens=1000)
    with pytest.raises((ModelCallError, CoreEvalError), match="no"):
        await ask(client)
    store.close()
    assert open_in(path) == []


async def test_where_the_method_is_changed_the_refused_request_costs_nothing(
    connect: Connect, server: LLMServer, path: Path
) -> None:
    server.answers = Taking("text")
    client = client_of(connect(budget_usd=1.5), server, price=PRICE, max_tokens=1000)
    call = await ask(client, LONG)
    assert call.method == "text" and call.usd is not None
    assert open_in(path) == []


async def test_nothing_is_held_for_ever_by_an_answer_that_a_check_chokes_on(
    connect: Connect, server: LLMServer
) -> None:
    """A bug fails its sample; it must not leave others waiting for its money."""

    def check(_answer: Answer) -> None:
        raise KeyError("a bug")

    server.answers = script(counted(0, 1000))
    client = client_of(connect(budget_usd=1.5), server, price=PRICE, max_tokens=1000)
    with pytest.raises(KeyError):
        await client.ask(asked(), SHAPE, check=check)
    async with asyncio.timeout(PATIENCE_S / 10):
        with pytest.raises(BudgetSpent):
            await ask(client, "another")


async def test_a_check_that_refuses_is_no_bug(connect: Connect, server: LLMServer) -> None:
    def check(_answer: Answer) -> None:
        raise InvalidAnswer("never")

    server.answers = script(counted(0, 100))
    client = client_of(connect(budget_usd=1.5), server, price=PRICE, max_tokens=100)
    with pytest.raises(NoValidAnswer):
        await client.ask(asked(), SHAPE, check=check)
    assert len(server.requests) == 4
