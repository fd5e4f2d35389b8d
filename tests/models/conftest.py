"""A server, a store and a client for tests of the model layer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from typing_extensions import TypedDict, Unpack

from coreeval.config import ModelConfig
from coreeval.models import ModelClient, ModelPool, Retry, close_models
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, empty_objects

KEY = "sk-do-not-show-4711"


class Options(TypedDict, total=False):
    """Keys of ModelConfig that tests vary."""

    structured: str
    timeout_s: float
    temperature: float
    seed: int
    max_tokens: int
    base_url: str
    model: str


MakeClient = Callable[..., ModelClient]
Connect = Callable[..., ModelPool]


class Naps(list[float]):
    """A sleep that is over at once and remembers how long it should have been."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0.005)  # a connection that was closed is seen to be


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
async def server() -> AsyncIterator[LLMServer]:
    async with LLMServer(empty_objects).running() as server:
        yield server
        await close_models()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CallStore]:
    store = open_calls(tmp_path / "calls.db")
    yield store
    store.close()


@pytest.fixture
def make_client(server: LLMServer, store: CallStore, naps: Naps) -> MakeClient:
    def make(**options: Unpack[Options]) -> ModelClient:
        config = ModelConfig.model_validate(
            {"model": "openai:stub", "base_url": server.url, **options}
        )
        connected = exchange(store, env={"OPENAI_API_KEY": KEY}, retry=Retry(sleep=naps.sleep))
        return connected.open_client(config, "extractor")

    return make


@pytest.fixture
def connect(store: CallStore, naps: Naps) -> Connect:
    """Return what opens an exchange whose retries take no time."""

    def opened(budget_usd: float | None = None, attempts: int = 8) -> ModelPool:
        retry = Retry(sleep=naps.sleep, attempts=attempts)
        return exchange(store, budget_usd=budget_usd, retry=retry)

    return opened
