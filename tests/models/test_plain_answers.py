"""Asking for an answer in words: no schema is sent, and what is said is kept as it came."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coreeval.errors import ModelCallError, NoValidAnswer
from coreeval.models import ModelClient, PlainOutput, close_models
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.models.kit import GOOD, SHAPE, Answer, asked, client_of, config_of, method_of
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, Request, empty_objects, refused

PLAIN = PlainOutput()
QUESTION = [{"role": "user", "content": "Which metal?"}]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CallStore]:
    store = open_calls(tmp_path / "calls.db")
    yield store
    await close_models()
    store.close()


@pytest.fixture
async def server() -> AsyncIterator[LLMServer]:
    async with LLMServer(empty_objects).running() as server:
        yield server


def plain_client(store: CallStore, server: LLMServer, **options: object) -> ModelClient:
    config = config_of(server, **options)
    return exchange(store).open_client(config, "target_text", max_draws=1, settle=True)


@pytest.mark.parametrize("structured", ["auto", "json_schema", "text"])
async def test_the_question_is_sent_as_it_is(
    store: CallStore, server: LLMServer, structured: str
) -> None:
    server.answers = lambda _request: " Gold,\n{not} JSON "
    said = await plain_client(store, server, structured=structured).ask(QUESTION, PLAIN)
    assert said.text == " Gold,\n{not} JSON "
    (request,) = server.requests
    assert request["messages"] == QUESTION and method_of(request) == "text"


@pytest.mark.parametrize(
    ("reply", "text"), [("", ""), ("<think>A? B?</think>\n\nB", "B"), ("x < y > z", "x < y > z")]
)
async def test_thoughts_are_no_part_of_it_and_silence_is_an_answer(
    store: CallStore, server: LLMServer, reply: str, text: str
) -> None:
    server.answers = lambda _request: reply
    client = plain_client(store, server)
    assert [(await client.ask(QUESTION, PLAIN)).text for _ in range(2)] == [text, text]
    assert len(server.requests) == 1, "what was answered was asked again"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(refusal="no"), "refused"),
        (Reply(content="Go", finish_reason="content_filter"), "refused"),
        (Reply(content="Go", finish_reason="length"), "truncated"),
    ],
)
async def test_a_refusal_and_half_an_answer_are_none(
    store: CallStore, server: LLMServer, reply: Reply, kind: str
) -> None:
    server.answers = lambda _request: reply
    client = plain_client(store, server)
    for _ in range(2):
        with pytest.raises(NoValidAnswer) as caught:
            await client.ask(QUESTION, PLAIN)
        assert caught.value.kind == kind
    assert len(server.requests) == 1


async def test_it_says_nothing_about_asking_for_structure(
    store: CallStore, server: LLMServer
) -> None:
    """Neither trouble nor silence in words gives up a way that a schema is asked for in."""

    def answers(request: Request) -> str | Reply:
        if method_of(request) == "text":
            return refused(400, "response_format or tools: this is not supported")
        return GOOD

    server.answers = answers
    connected = exchange(store)
    plain = connected.open_client(config_of(server), "target_text", max_draws=1, settle=True)
    for number in range(6):
        with pytest.raises(ModelCallError):
            await plain.ask(asked(f"{number}")[1:], PLAIN)
    assert await client_of(connected, server).ask(asked(), SHAPE) == Answer(label="joy")
    assert method_of(server.requests[-1]) == "json_schema"
    assert len(server.requests) == 7
