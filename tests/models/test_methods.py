"""The way to ask a model for structure, as an endpoint takes it or does not."""

import asyncio
from pathlib import Path

import pytest

from coreeval.config import METHODS
from coreeval.errors import ModelCallError, NoValidAnswer, RequestRejected
from coreeval.tools.stores.call_store import open_calls
from tests.models.conftest import Connect, Naps
from tests.models.kit import GOOD, Taking, ask, asker_of, method_of
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, Request, refused, script


@pytest.mark.parametrize("taken", METHODS)
async def test_the_strictest_method_that_the_endpoint_takes_is_found_once(
    connect: Connect, server: LLMServer, naps: Naps, taken: str
) -> None:
    server.answers = endpoint = Taking(taken)
    connected, order = connect(), list(METHODS[: METHODS.index(taken) + 1])
    first = await ask(asker_of(connected, server))
    second = await ask(asker_of(connected, server, temperature=1.0), "another")
    assert endpoint.asked == [*order, taken]
    assert (first.method, second.method) == (taken, taken)
    assert first.draw == 0 and first.tries.count("not supported") == len(order) - 1
    assert second.tries == ""
    assert naps == [], "to ask otherwise needs no patience"


async def test_what_one_process_found_out_the_next_one_knows(
    tmp_path: Path, server: LLMServer
) -> None:
    server.answers = endpoint = Taking("json_mode")
    for text in ("one", "another"):
        store = open_calls(tmp_path / "calls.db")
        await ask(asker_of(exchange(store), server), text)
        store.close()
    assert endpoint.asked[2:] == ["json_mode"] * 2


async def test_an_endpoint_that_takes_no_method_fails_the_sample(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = endpoint = Taking()
    with pytest.raises(RequestRejected, match="not supported"):
        await ask(asker_of(connect(), server))
    assert endpoint.asked == list(METHODS)


async def test_a_method_that_the_config_names_is_not_changed(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = endpoint = Taking("text")
    with pytest.raises(ModelCallError, match="not supported"):
        await ask(asker_of(connect(), server, structured="json_mode"))
    assert endpoint.asked == ["json_mode"]


async def test_many_at_once_change_the_method_together(connect: Connect, server: LLMServer) -> None:
    server.answers = endpoint = Taking("json_mode")
    asker = asker_of(connect(), server)
    await asyncio.gather(*(ask(asker, str(number)) for number in range(8)))
    assert endpoint.asked.count("json_mode") == 8
    assert await ask(asker, "later") and endpoint.asked[-1] == "json_mode"


async def test_the_name_of_the_limit_is_found_out_too(connect: Connect, server: LLMServer) -> None:
    def answers(request: Request) -> str | Reply:
        if "max_tokens" in request:
            return refused(400, "Unsupported parameter: 'max_tokens'")
        return GOOD

    server.answers = answers
    asker = asker_of(connect(), server, max_tokens=77)
    for text in ("one", "two"):
        await ask(asker, text)
    limits = [one.get("max_completion_tokens") for one in server.requests]
    assert limits == [None, 77, 77]


async def test_a_second_bad_answer_is_asked_for_less_strictly_and_the_next_question_is_not(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = script("no", "no", GOOD, GOOD)
    asker = asker_of(connect(), server)
    assert (await ask(asker)).method == "function_calling"
    await ask(asker, "another")
    methods = [method_of(request) for request in server.requests]
    assert methods == ["json_schema", "json_schema", "function_calling", "json_schema"]


async def test_what_was_cut_off_may_be_twice_as_long(connect: Connect, server: LLMServer) -> None:
    cut = Reply(content='{"label": "jo', finish_reason="length")
    server.answers = script(cut, cut, GOOD)
    await ask(asker_of(connect(), server, max_tokens=50))
    assert [request["max_tokens"] for request in server.requests] == [50, 100, 100]
    assert {method_of(request) for request in server.requests} == {"json_schema"}


async def test_words_round_an_answer_are_passed_over_only_where_words_were_asked_for(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = script("Sure: {label: 'joy',} There.")
    assert (await ask(asker_of(connect(), server, structured="text"))).draw == 0
    with pytest.raises(NoValidAnswer):
        await ask(asker_of(connect(), server, structured="json_mode"))


@pytest.mark.parametrize("said", [f"<think>joy?</think>{GOOD}", f"```json\n{GOOD}\n```"])
async def test_thoughts_and_a_fence_are_passed_over_always(
    connect: Connect, server: LLMServer, said: str
) -> None:
    server.answers = script(said)
    assert (await ask(asker_of(connect(), server))).draw == 0
