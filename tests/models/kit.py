"""Questions over an exchange, for tests of how they are sent."""

import asyncio

from coreeval.config import ModelConfig
from coreeval.models import CallRef, ModelClient, ModelPool, OutputSchema, record_calls
from coreeval.schema import Value
from tests.support.llm_server import LLMServer, Reply, Request, refused

GOOD = '{"label": "joy"}'


class Answer(Value):
    label: str


SHAPE = OutputSchema(Answer, name="answer")


def asked(text: str = "a text") -> list[dict[str, str]]:
    return [{"role": "system", "content": "You label."}, {"role": "user", "content": text}]


def config_of(server: LLMServer, **options: object) -> ModelConfig:
    told = {"model": "openai:stub", "base_url": server.url, **options}
    return ModelConfig.model_validate(told)


def client_of(connected: ModelPool, server: LLMServer, **options: object) -> ModelClient:
    return connected.open_client(config_of(server, **options), "extractor")


async def ask(client: ModelClient, text: str = "a text") -> CallRef:
    """Ask one question; return its last call."""
    with record_calls() as calls:
        assert await client.ask(asked(text), SHAPE) == Answer(label="joy")
    return calls[-1]


def method_of(request: Request) -> str:
    """Return how a request asks for structure."""
    form = request.get("response_format", {})
    assert isinstance(form, dict)
    kind = {"json_schema": "json_schema", "json_object": "json_mode"}.get(form.get("type", ""))
    return kind or ("function_calling" if "tools" in request else "text")


class Taking:
    """Takes some methods and answers, or says that it does not know the others."""

    def __init__(self, *taken: str) -> None:
        self._taken = taken
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str | Reply:
        self.asked.append(method_of(request))
        if self.asked[-1] in self._taken:
            return GOOD
        return refused(400, "response_format or tools: this is not supported")


class Crowded:
    """Refuses what comes while it is busy with too many."""

    def __init__(self, room: int = 1000, seconds: float = 0.02) -> None:
        self._room, self._seconds = room, seconds
        self.here = self.most = 0

    async def __call__(self, _request: Request) -> str | Reply:
        if self.here >= self._room:
            return refused(429)
        self.here += 1
        self.most = max(self.most, self.here)
        await asyncio.sleep(self._seconds)
        self.here -= 1
        return GOOD
