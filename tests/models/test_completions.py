"""Scoring a given text by an endpoint: three ways to ask, and servers that answer badly."""

import json

import pytest
from langchain_core.messages import AIMessage

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError, ModelCallError, ModelUnusable
from coreeval.models import ModelClient, ModelPool, close_models
from coreeval.models.completions import WAYS, TextScoresOutput, read_scores
from coreeval.models.failures import CallFailure
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.text_scores import TextScores
from tests.models.conftest import Connect
from tests.support.endless_server import endless
from tests.support.scoring_server import Manner, ScoringServer, score_token, split_tokens

TEXT = "Word for word, 42 times: naïve “quotes” 😀 and an end."


def open_scorer(pool: ModelPool, url: str, **options: object) -> ModelClient:
    config = ModelConfig.model_validate({"model": "openai:m", "base_url": url, **options})
    return pool.open_client(config, "target_text", max_draws=1, settle=True, scores_texts=True)


async def score(client: ModelClient, text: str = TEXT) -> TextScores:
    return await client.ask([{"role": "user", "content": text}], TextScoresOutput())


@pytest.mark.parametrize(
    ("manner", "requests"),
    [("echo", 1), ("no offsets", 1), ("one token at least", 2), ("prompt_logprobs", 3)],
)
async def test_the_tokens_of_a_text_are_scored_in_one_of_three_ways(
    connect: Connect, manner: Manner, requests: int
) -> None:
    async with ScoringServer(manner).running() as server:
        client = open_scorer(connect(), server.url)
        found = await score(client)
        tokens = split_tokens(TEXT)
        assert found.tokens == tuple(tokens[1:])
        assert found.logprobs == pytest.approx([score_token(each) for each in tokens[1:]])
        assert found.means == ()
        assert len(server.requests) == requests
        await score(client, "Another text that is as good.")
        assert len(server.requests) == requests + 1  # the way that worked is remembered
        assert await score(client) == found
        assert len(server.requests) == requests + 1  # the call store has it
        await close_models()


@pytest.mark.parametrize(
    "manner", ["refuses", "chat only", "not implemented", "generated only", "fewer"]
)
async def test_an_endpoint_that_does_not_score_texts_is_one_error(
    connect: Connect, manner: Manner
) -> None:
    async with ScoringServer(manner).running() as server:
        with pytest.raises(ModelUnusable, match="does not score texts sent to it") as caught:
            await score(open_scorer(connect(), server.url))
        assert "echo and logprobs" in caught.value.hint and "hf:" in caught.value.hint
        assert len(server.requests) == len(WAYS)
        await close_models()


@pytest.mark.parametrize(
    ("manner", "said"),
    [
        ("missing", "valid number"),
        ("nan", "is not a log-probability|valid"),
        ("above 0", "0.5 is not a log-probability"),
        ("no json", "Invalid JSON"),
    ],
)
async def test_scores_that_are_none_are_not_taken(
    connect: Connect, manner: Manner, said: str
) -> None:
    async with ScoringServer(manner).running() as server:
        with pytest.raises(ModelUnusable, match=said):
            await score(open_scorer(connect(), server.url))
        await close_models()


async def test_a_text_that_fails_later_fails_alone(connect: Connect) -> None:
    async with ScoringServer().running() as server:
        client = open_scorer(connect(), server.url)
        await score(client)
        server.manner = "nan"
        with pytest.raises(ModelCallError, match="no scores for a text"):
            await score(client, "another text")
        server.manner = "echo"
        assert (await score(client, "another text")).logprobs
        await close_models()


async def test_a_body_without_an_end_is_cut_off(connect: Connect) -> None:
    with endless("plain") as url:
        with pytest.raises(ModelCallError, match="more than 8 MiB"):
            await score(open_scorer(connect(attempts=1), f"{url}/v1"))
        await close_models()


async def test_a_provider_without_completions_is_refused_before_anything_is_sent(
    connect: Connect,
) -> None:
    options = {"model": "anthropic:m", "base_url": "http://127.0.0.1:9"}
    config = ModelConfig.model_validate(options)
    with pytest.raises(ConfigError, match="cannot score a text sent to it"):
        connect().open_client(config, "target_text", scores_texts=True)


async def test_a_score_is_another_call_than_an_answer(connect: Connect, store: CallStore) -> None:
    async with ScoringServer().running() as server:
        await score(open_scorer(connect(), server.url))
        (record,) = store.records()
        assert json.loads(record.request)["parameters"]["scores"] == "text"
        assert TextScores.model_validate_json(record.response).tokens
        await close_models()


def read(text: str, logprobs: object, generated: int = 0) -> AIMessage | CallFailure:
    body = json.dumps({"choices": [{"logprobs": logprobs}]}).encode()
    return read_scores(body, [], "", text=text, way=WAYS[generated])


def test_tokens_that_are_half_a_character_and_special_ones_are_taken() -> None:
    tokens = ["<s>", "na", "bytes:\\xc3", "bytes:\\xaf", "ve", "<0xE2>", "."]
    found = read("naïve…", {"tokens": tokens, "token_logprobs": [None, *[-1.0] * 6]})
    assert isinstance(found, AIMessage)
    assert len(json.loads(str(found.content))["logprobs"]) == 6


def test_the_generated_token_is_not_of_the_text() -> None:
    told = {"tokens": ["a ", "b", " c"], "token_logprobs": [None, -1.0, -9.0]}
    found = read("a b", told, generated=1)
    assert isinstance(found, AIMessage)
    assert json.loads(str(found.content))["logprobs"] == [-1.0]


@pytest.mark.parametrize("told", [None, {}, {"tokens": [], "token_logprobs": []}, [1], "x"])
def test_a_body_of_another_shape_is_a_failure(told: object) -> None:
    found = read("a b", told)
    assert isinstance(found, CallFailure) and found.kind == "rejected"


RUSSIAN = "Президент подписал новый закон, в понедельник."


def scored(tokens: list[str], first: float | None = None) -> dict[str, object]:
    return {"tokens": tokens, "token_logprobs": [first, *[-1.0] * (len(tokens) - 1)]}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (RUSSIAN, ["Да"]),
        (RUSSIAN, [" hello", " world"]),
        (RUSSIAN, split_tokens(RUSSIAN)[:-6]),
        (RUSSIAN, split_tokens(RUSSIAN)[6:]),
        (RUSSIAN, ["\ufffd"] * 30),
        ("今日は晴れ", ["今日", "は雨"]),
        ("The president signed", ["Yes"]),
        ("😀😀", ["no"]),
    ],
)
def test_the_scores_of_another_text_are_not_taken(text: str, tokens: list[str]) -> None:
    found = read(text, scored(tokens, -0.1))
    assert isinstance(found, CallFailure)
    assert found.kind == "rejected" and "which do not match the text" in found.message


@pytest.mark.parametrize(
    "tokens",
    [
        split_tokens(RUSSIAN),
        ["<s>", *split_tokens(RUSSIAN)],
        ["Пре", "\ufffd", "\ufffd", "зидент подписал", " новый закон, в понедельник", "."],
    ],
)
def test_a_text_of_any_script_is_taken(tokens: list[str]) -> None:
    assert isinstance(read(RUSSIAN, scored(tokens)), AIMessage)


def test_offsets_in_bytes_take_nothing_away() -> None:
    tokens = split_tokens("naïve 😀 café too")
    ends = [len("".join(tokens[:at]).encode()) for at in range(len(tokens))]
    found = read("naïve 😀 café too", scored(tokens) | {"text_offset": ends})
    assert isinstance(found, AIMessage)
    assert len(json.loads(str(found.content))["logprobs"]) == len(tokens) - 1


def test_what_a_server_generates_although_told_not_to_is_not_of_the_text() -> None:
    found = read(
        "Signs, and an end!", scored(["Signs", ", and", " an", " end", "!", " And", " so"])
    )
    assert isinstance(found, AIMessage)
    assert json.loads(str(found.content))["tokens"] == [", and", " an", " end", "!"]


@pytest.mark.parametrize(("lost", "taken"), [(0, True), (1, True), (2, False), (6, False)])
def test_only_a_first_word_may_have_no_name(lost: int, taken: bool) -> None:
    words = ["The", "president", "signed", "the", "new", "law", "on", "taxes", "on", "Monday"]
    places: list[object] = [None]
    for word in words[lost:]:
        places.append({"7": {"logprob": -1.0, "decoded_token": f" {word}"}})
    body = json.dumps({"choices": [{"prompt_logprobs": places}]}).encode()
    found = read_scores(body, [], "", text=" ".join(words), way=WAYS[2])
    assert isinstance(found, AIMessage) is taken
