"""How questions are sent: in turn, again where that helps, and no more where all is down."""

import asyncio

import pytest

from coreeval.errors import ModelCallError, ModelUnusable
from coreeval.models import Retry
from coreeval.models.dispatch import DOWN_AFTER, LiveDispatcher
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import Connect
from tests.models.kit import GOOD, Crowded, ask, client_of, config_of
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, refused, script

PATIENCE_S = 20.0


async def test_the_roles_of_one_model_share_its_places(connect: Connect, server: LLMServer) -> None:
    server.answers = crowd = Crowded()
    connected = connect()
    clients = [
        connected.open_client(config_of(server, max_in_flight=3, temperature=temperature), role)
        for temperature, role in ((0.0, "composer"), (1.0, "fact_judge"))
    ]
    await asyncio.gather(*(ask(clients[n % 2], str(n)) for n in range(20)))
    assert crowd.most == 3


async def test_another_model_has_its_own_places(connect: Connect, server: LLMServer) -> None:
    server.answers = crowd = Crowded()
    connected = connect()
    clients = [
        client_of(connected, server, max_in_flight=3, model=model)
        for model in ("openai:one", "openai:two")
    ]
    await asyncio.gather(*(ask(clients[n % 2], str(n)) for n in range(20)))
    assert crowd.most == 6


async def test_an_endpoint_that_bears_few_is_asked_by_few_and_all_is_answered(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = crowd = Crowded(room=4)
    retry = Retry(attempts=99, first_s=0.01, longest_s=0.05)
    client = client_of(exchange(store, retry=retry, in_flight=64), server)
    async with asyncio.timeout(PATIENCE_S):
        calls = await asyncio.gather(*(ask(client, str(n)) for n in range(100)))
    assert isinstance(client.dispatcher, LiveDispatcher)
    assert client.dispatcher.limiter.slots.limit <= 16
    assert crowd.most == 4
    assert any(call.tries for call in calls)


async def test_headers_that_say_that_nothing_is_left_are_heeded(
    connect: Connect, server: LLMServer
) -> None:
    told = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    server.answers = script(Reply(content=GOOD, headers=told), GOOD)
    client, loop = client_of(connect(), server), asyncio.get_running_loop()
    began = loop.time()
    await ask(client)
    await ask(client, "another")
    assert loop.time() - began > 0.3


# -- what is down -------------------------------------------------------------------------------


async def test_many_questions_given_up_in_a_row_are_the_end(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = script(refused(500, "no disk"))
    client = client_of(connect(attempts=1), server)
    errors = list[Exception]()
    for number in range(DOWN_AFTER):
        with pytest.raises((ModelCallError, ModelUnusable)) as caught:
            await ask(client, str(number))
        errors.append(caught.value)
    assert [type(one) for one in errors] == [ModelCallError] * (DOWN_AFTER - 1) + [ModelUnusable]
    assert f"{DOWN_AFTER} calls in a row" in str(errors[-1]) and "no disk" in str(errors[-1])


@pytest.mark.parametrize("between", [GOOD, "no answer at all"])
async def test_any_answer_between_them_shows_that_the_endpoint_lives(
    connect: Connect, server: LLMServer, between: str
) -> None:
    down, up = client_of(connect(attempts=1), server), script(between, GOOD)
    for number in range(3 * DOWN_AFTER):
        server.answers = script(refused(500))
        if number % (DOWN_AFTER - 1) == 0:
            server.answers = up
            await ask(down, str(number))
            continue
        with pytest.raises(ModelCallError):
            await ask(down, str(number))


async def test_texts_that_are_rejected_are_not_the_endpoints_fault(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = script(refused(400, "too long"))
    client = client_of(connect(), server)
    for number in range(2 * DOWN_AFTER):
        with pytest.raises(ModelCallError):
            await ask(client, str(number))


async def test_the_tries_of_a_call_are_kept_with_it(
    connect: Connect, server: LLMServer, store: CallStore
) -> None:
    server.answers = script(refused(500, "no disk"), refused(429, "slowly"), GOOD)
    call = await ask(client_of(connect(), server))
    first, second = call.tries.splitlines()
    assert "no disk" in first and "slowly" in second
    (kept,) = store.records()
    assert kept.tries == call.tries
