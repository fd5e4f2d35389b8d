"""Whatever a server does, a question ends in a valid answer or one error; nothing is guessed."""

import asyncio

import pytest

from coreeval.errors import ModelCallError, ModelUnusable, NoValidAnswer
from coreeval.models import InvalidAnswer, OutputSchema
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import MakeClient, Naps
from tests.models.survival import (
    GOOD,
    JOY,
    SHAPE,
    Answer,
    asked,
    bodies,
    question,
    records,
)
from tests.support.faults import ANSWER, HARMLESS, WIRE, Fault, Faulty
from tests.support.llm_server import LLMServer, Reply, Request, script

REASONS = {
    "too long": "truncated",
    "refused": "refusal",
    "filtered": "refusal",
    **dict.fromkeys(("empty", "null", "no parts", "only a thought", "an endless thought"), "empty"),
    "wrong schema": "invalid: label: Field required",
    "wrong types": "invalid: label: Input should be a valid string",
    "another tool": "invalid: label: Field required",
    "a list": "invalid: answer: Input should be an object",
    "a key twice": "invalid: the key 'label' stands twice",
    "NaN": "invalid: NaN is not JSON",
    "half a surrogate": "invalid: it holds half of a surrogate pair",
    "huge": "invalid: it has 262,144 characters or more",
    "cut JSON": "invalid: it is not one JSON object",
    **dict.fromkeys(("prose", "JSON in prose", "two fences"), "invalid: it is not one JSON object"),
}
STRICT, LOOSER = "json_schema", "function_calling"
SLOW = ("hung", "dripping")
of_wire = pytest.mark.parametrize(("name", "fault"), WIRE.items(), ids=WIRE.keys())
of_answer = pytest.mark.parametrize(("name", "fault"), ANSWER.items(), ids=ANSWER.keys())


@of_wire
async def test_what_came_to_nothing_is_asked_again_as_it_was(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    naps: Naps,
    name: str,
    fault: Fault,
) -> None:
    server.answers = script(fault(GOOD), fault(GOOD), GOOD)
    assert await asked(make_client(timeout_s=0.7 if name in SLOW else 60)) == JOY
    assert len(server.requests) == 3 and len(set(bodies(server.requests))) == 1
    assert len(naps) == 2
    (kept,) = records(store)
    assert (kept.valid, kept.error, kept.method, kept.draw) == (True, "", STRICT, 0)
    tries = kept.tries.splitlines()
    assert len(tries) == 2 and all(tries)
    assert kept.seconds >= 0


@of_wire
async def test_it_is_asked_eight_times_at_most(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    naps: Naps,
    name: str,
    fault: Fault,
) -> None:
    server.answers = script(fault(GOOD))
    with pytest.raises((ModelCallError, ModelUnusable), match="openai:stub") as caught:
        await asked(make_client(timeout_s=0.1 if name in SLOW else 60))
    assert not isinstance(caught.value, NoValidAnswer)
    tries = 3 if name == "HTML" else 8  # a web page is no passing fault
    assert (len(server.requests), len(naps)) == (tries, tries - 1)
    assert list(records(store)) == []


@of_answer
async def test_a_bad_answer_is_kept_and_the_next_draw_is_told_why(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    naps: Naps,
    name: str,
    fault: Fault,
) -> None:
    server.answers = script(fault(GOOD), GOOD)
    assert await asked(make_client()) == JOY
    assert len(server.requests) == 2 and list(naps) == []
    bad, good = records(store)
    assert not bad.valid and bad.error.startswith(REASONS[name])
    assert (good.valid, good.error) == (True, "")
    assert [bad.method, good.method] == [STRICT, STRICT]
    assert [bad.tries, good.tries] == ["", ""]
    limits = [request["max_tokens"] for request in server.requests]
    assert limits == [2048, 4096 if name == "too long" else 2048]


@of_answer
async def test_the_last_draws_ask_less_strictly_where_that_may_help(
    make_client: MakeClient, server: LLMServer, store: CallStore, name: str, fault: Fault
) -> None:
    server.answers = script(*[fault(GOOD)] * 3, GOOD)
    assert await asked(make_client()) == JOY
    last = STRICT if REASONS[name] in ("truncated", "refusal") else LOOSER
    assert [one.method for one in records(store)] == [STRICT, STRICT, last, last]
    assert [one.valid for one in records(store)] == [False, False, False, True]
    limits = [request["max_tokens"] for request in server.requests]
    assert limits == [2048, *[4096 if name == "too long" else 2048] * 3]


@of_answer
async def test_four_bad_answers_are_the_end(
    make_client: MakeClient, server: LLMServer, store: CallStore, name: str, fault: Fault
) -> None:
    server.answers = script(fault(GOOD))
    with pytest.raises(NoValidAnswer, match="no valid answer in 4 draws"):
        await asked(make_client())
    assert len(server.requests) == 4 == len(set(bodies(server.requests)))
    assert [one.valid for one in records(store)] == [False] * 4


@pytest.mark.parametrize("name", sorted(ANSWER.keys() - {"JSON in prose"}))
async def test_nothing_is_guessed_where_a_model_is_asked_in_words_only(
    make_client: MakeClient, server: LLMServer, store: CallStore, name: str
) -> None:
    server.answers = script(ANSWER[name](GOOD), GOOD)
    assert await asked(make_client(structured="text")) == JOY
    assert [one.valid for one in records(store)] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        '{"label": "joy", "label": "anger"}',
        'For example {"label": "joy"}. My answer: {"label": "anger"}',
        '{"label": "joy"} {"label": "anger"}',
        '{"label": ' * 5000 + "}" * 4000,
    ],
)
def test_mending_chooses_none_of_several(text: str) -> None:
    with pytest.raises(InvalidAnswer):
        SHAPE.parse(text, mend=True)


@pytest.mark.parametrize("fault", HARMLESS.values(), ids=HARMLESS.keys())
async def test_an_answer_in_another_dress_is_an_answer(
    make_client: MakeClient, server: LLMServer, store: CallStore, fault: Fault
) -> None:
    server.answers = script(fault(GOOD))
    client = make_client()
    assert [await asked(client, number) for number in range(3)] == [JOY] * 3
    assert [one.valid for one in records(store)] == [True] * 3
    assert len(server.requests) - sum(one.tries != "" for one in records(store)) == 3


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": null, "completion_tokens": null}',
        '{"prompt_tokens": 0, "completion_tokens": 0}',
        '{"prompt_tokens": "many"}',
        '"none"',
        "NaN",
        "{}",
        "[]",
    ],
)
async def test_an_answer_counts_whatever_stands_beside_it(
    make_client: MakeClient, server: LLMServer, store: CallStore, usage: str
) -> None:
    message = '{"content": "{\\"label\\": \\"joy\\"}", "tool_calls": [], "logprobs": NaN}'
    choice = f'{{"message": {message}, "finish_reason": null}}'
    server.answers = script(Reply(body=f'{{"choices": [{choice}], "usage": {usage}}}'))
    assert await asked(make_client()) == JOY
    (kept,) = records(store)
    assert (kept.prompt_tokens, kept.completion_tokens, kept.usd) == (0, 0, None)


@pytest.mark.parametrize("left", ["²", "9" * 5000, "-1", "1e3", "", "none"])
async def test_headers_that_cannot_be_read_say_nothing(
    make_client: MakeClient, server: LLMServer, left: str
) -> None:
    headers = {"x-ratelimit-remaining-requests": left, "x-ratelimit-reset-requests": "9" * 500}
    server.answers = script(Reply(content=GOOD, headers=headers))
    assert await asyncio.wait_for(asked(make_client()), 5) == JOY
    assert len(server.requests) == 1


async def test_a_mixture_of_everything_is_survived(
    make_client: MakeClient, server: LLMServer, store: CallStore
) -> None:
    """Chains of dependent questions, many at a time, with a tenth of all replies spoilt."""
    names = [*WIRE, *ANSWER, *HARMLESS]
    spoilt = Faulty(labelled, seed=3, shares=dict.fromkeys(names, 0.1 / len(names)))
    server.answers = spoilt
    client, shape = make_client(timeout_s=2), OutputSchema(Answer, name="answer")

    async def chain(number: int) -> list[str]:
        said = [f"chain {number}"]
        for _ in range(5):
            told = [*question(), {"role": "user", "content": said[-1]}]
            said.append((await client.ask(told, shape)).label)
        return said[1:]

    labels = await asyncio.gather(*(chain(number) for number in range(40)))
    assert labels == [[f"chain {number}" + "!" * n for n in range(1, 6)] for number in range(40)]
    valid = [one for one in records(store) if one.valid]
    assert len(valid) == 200
    assert len(spoilt.counts) > 10
    assert len(server.requests) <= 200 + spoilt.counts.total()


def labelled(request: Request) -> str:
    """Answer with what was said last before any complaint, and an exclamation mark."""
    messages = request["messages"]
    assert isinstance(messages, list)
    said = str(messages[2]["content"]).split("\n")[0]
    return f'{{"label": "{said}!"}}'


def test_the_mixture_is_the_same_for_the_same_seed() -> None:
    def made(seed: int) -> dict[str, int]:
        spoilt = Faulty(labelled, seed, {"prose": 0.1, "broken": 0.2})
        for number in range(500):
            messages = [{"content": str(number)}] * 3
            asyncio.run(_spoil(spoilt, {"messages": messages}))
        return dict(spoilt.counts)

    assert made(1) == made(1) != made(2)
    assert 30 < made(1)["prose"] < 70 and 70 < made(1)["broken"] < 130


async def _spoil(spoilt: Faulty, request: Request) -> None:
    await spoilt(request)
