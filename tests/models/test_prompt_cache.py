"""From how many tokens on which provider caches a prefix, and which request goes ahead for it."""

import asyncio
from collections.abc import Hashable

import pytest

from coreeval.config import ModelConfig
from coreeval.models import openai
from coreeval.models.prompt_cache import FirstRequests, find_fewest_tokens
from coreeval.tools.stores.call_store import CallStore
from tests.models.kit import GOOD, SHAPE, Answer
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, Request, refused


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("openai:gpt-5", 1024),
        ("openai:gpt-6-sol", 1024),
        ("anthropic:claude-opus-5", 512),
        ("anthropic:claude-opus-5-5", 512),
        ("anthropic:claude-fable-5-1", 512),
        ("anthropic:claude-haiku-5-5", 512),
        ("anthropic:claude-sonnet-5-5", 512),
        ("anthropic:claude-sonnet-5", 1024),
        ("anthropic:claude-sonnet-4-6", 1024),
        ("anthropic:claude-opus-4-8", 1024),
        ("anthropic:claude-opus-4-1", 1024),
        ("anthropic:claude-opus-4-20250514", 1024),
        ("anthropic:claude-opus-4-7", 2048),
        ("anthropic:claude-opus-4-6", 4096),
        ("anthropic:claude-haiku-4-5-20251001", 4096),
        ("google_genai:gemini-3", None),
        ("replay:answers.jsonl", None),
    ],
)
def test_the_fewest_tokens_that_a_model_caches(model: str, tokens: int | None) -> None:
    assert find_fewest_tokens(ModelConfig(model=model)) == tokens


def test_the_rule_of_an_endpoint_of_ones_own_is_not_known() -> None:
    config = ModelConfig(model="openai:gpt-5", base_url="http://127.0.0.1:1/v1")
    assert find_fewest_tokens(config) is None


# -- the first request of a prefix ----------------------------------------------------------------


class Crowd:
    """Counts how many requests are there when each comes; the first ends as it is told."""

    def __init__(self, first: str | Reply = GOOD) -> None:
        self._first = first
        self._here = 0
        self.seen = list[int]()

    async def __call__(self, _request: Request) -> str | Reply:
        self._here += 1
        self.seen.append(self._here)
        is_first = len(self.seen) == 1
        await asyncio.sleep(0.1)
        self._here -= 1
        return self._first if is_first else GOOD


async def ask_many(
    server: LLMServer,
    store: CallStore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    model: str = "openai:gpt-5.5",
    own: bool = False,
    instructions: str = "Label. " * 1000,
    role: str = "system",
    text: str = "text",
) -> list[object]:
    """Ask eight questions at once."""
    monkeypatch.setattr(openai, "PUBLIC_URL", server.url)
    config = ModelConfig(model=model, base_url=server.url if own else None)
    client = exchange(store, env={"OPENAI_API_KEY": "k"}).open_client(config, "extractor")
    turns = [
        [{"role": role, "content": instructions}, {"role": "user", "content": f"{text} {number}"}]
        for number in range(8)
    ]
    asked = (client.ask(each, SHAPE) for each in turns)
    return list(await asyncio.gather(*asked, return_exceptions=True))


async def test_the_first_request_of_a_prefix_goes_ahead_and_the_others_follow_together(
    server: LLMServer, store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = crowd = Crowd()
    assert await ask_many(server, store, monkeypatch) == [Answer(label="joy")] * 8
    assert crowd.seen[:2] == [1, 1] and max(crowd.seen) == 7


async def test_the_others_follow_when_the_first_has_failed(
    server: LLMServer, store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = crowd = Crowd(refused(400, "no"))
    answers = await ask_many(server, store, monkeypatch)
    assert answers[1:] == [Answer(label="joy")] * 7 and isinstance(answers[0], Exception)
    assert crowd.seen[:2] == [1, 1] and max(crowd.seen) == 7


@pytest.mark.parametrize(
    "told",
    [
        {"own": True},
        {"instructions": "Label. " * 300},
        {"instructions": "Label.", "text": "long " * 1000},
        {"role": "user"},
    ],
    ids=[
        "an endpoint of one's own",
        "too short for a cache",
        "only the text is long",
        "no instructions",
    ],
)
async def test_what_no_cache_keeps_is_sent_at_once(
    server: LLMServer,
    store: CallStore,
    monkeypatch: pytest.MonkeyPatch,
    told: dict[str, bool | str],
) -> None:
    server.answers = crowd = Crowd()
    await ask_many(server, store, monkeypatch, **told)  # type: ignore[arg-type]
    assert max(crowd.seen) == 8


async def hold(first: FirstRequests, prefix: Hashable, entered: list[Hashable]) -> None:
    async with first.go_ahead(prefix):
        entered.append(prefix)
        await asyncio.sleep(60)


async def test_nobody_waits_for_a_slow_first_request_without_end() -> None:
    first, entered = FirstRequests(longest_s=0.05), list[Hashable]()
    tasks = [asyncio.create_task(hold(first, prefix, entered)) for prefix in ("a", "a", "b", "a")]
    await asyncio.sleep(0.01)
    assert entered == ["a", "b"]
    await asyncio.sleep(0.2)
    assert entered == ["a", "b", "a", "a"]
    tasks.append(asyncio.create_task(hold(first, "a", entered)))
    await asyncio.sleep(0.01)
    assert entered[4:] == ["a"], "the first request is not waited for once more"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_cancelled_first_request_holds_nobody() -> None:
    first, entered = FirstRequests(), list[Hashable]()
    one, other = (asyncio.create_task(hold(first, "a", entered)) for _ in range(2))
    await asyncio.sleep(0.01)
    one.cancel()
    await asyncio.sleep(0.01)
    assert entered == ["a", "a"]
    other.cancel()
    await asyncio.gather(one, other, return_exceptions=True)
