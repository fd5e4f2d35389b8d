"""Batches over the batch server, for tests of both APIs."""

import hashlib
import json
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from coreeval.config import ModelConfig
from coreeval.models import open_model
from coreeval.models.batches import BatchAnswer, BatchEndpoint, BatchRequest, BatchState
from coreeval.models.chat import ChatModel
from coreeval.models.failures import CallFailure
from coreeval.models.model import RequestOptions
from tests.models.conftest import KEY
from tests.support.batch_records import named_error
from tests.support.batch_server import BatchServer
from tests.support.llm_server import Reply, Request

SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}}
OPTIONS = RequestOptions(schema=SCHEMA, name="answer", method="json_schema", max_tokens=99)
both = pytest.mark.parametrize("speech", ["openai", "anthropic"])
"""A test of each API."""
ENV = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}


def text_of(request: Request) -> str:
    messages = request["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])


def echo(request: Request) -> str | Reply:
    """Answer with the text; some texts have errors, as both providers have them."""
    text = text_of(request)
    if text == "unsupported":
        return named_error(400, "response_format json_schema is not supported")
    if text == "throttled":
        return named_error(429)
    if text == "overdue":
        return named_error(504, "it took too long")
    if text == "key":
        return f'{{"label": "{KEY}"}}'
    return json.dumps({"label": text})


def asked(text: object) -> list[dict[str, str]]:
    return [{"role": "system", "content": "You label."}, {"role": "user", "content": f"{text}"}]


def custom_id(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()


def open_chat(server: BatchServer, speech: str, **options: object) -> ChatModel:
    url = server.url if speech == "openai" else server.anthropic_url
    told = {"model": f"{speech}:stub", "base_url": url, **options}
    return open_model(ModelConfig.model_validate(told), ENV).chat


def open_batches(server: BatchServer, speech: str, **options: object) -> BatchEndpoint:
    batches = open_chat(server, speech, **options).open_batches()
    assert batches is not None
    return batches


def make_request(text: object, body: bytes) -> BatchRequest:
    return BatchRequest(custom_id=custom_id(text), packed=zlib.compress(body))


def requests_of(server: BatchServer, speech: str, *texts: object) -> list[BatchRequest]:
    chat = open_chat(server, speech)
    return [make_request(text, chat.encode_request(asked(text), OPTIONS)) for text in texts]


def ids_of(requests: list[BatchRequest]) -> set[str]:
    return {one.custom_id for one in requests}


def just_now() -> datetime:
    return datetime.now(UTC) - timedelta(seconds=1)


async def run(batches: BatchEndpoint, requests: list[BatchRequest], looks: int = 3) -> BatchState:
    """Send a batch, and look until it runs no longer."""
    state = await batches.create("b-1", requests)
    for _ in range(looks):
        state = await batches.look(state.provider_id)
        if state.phase != "running":
            break
    return state


async def answers_of(batches: BatchEndpoint, state: BatchState) -> dict[str, Any]:
    """Return what became of each request, by its custom id."""
    return {one.custom_id: one.outcome async for one in batches.read_answers(state)}


async def read_until_failure(
    batches: BatchEndpoint, state: BatchState
) -> tuple[list[BatchAnswer], CallFailure | None]:
    """Return the answers that come, and the failure that ends them."""
    read: list[BatchAnswer] = []
    try:
        async for one in batches.read_answers(state):
            read.append(one)
    except CallFailure as failure:
        return read, failure
    return read, None


async def live_outcome(chat: ChatModel, text: object) -> AIMessage | CallFailure:
    """Return what a live request becomes."""
    try:
        return await chat.answer(asked(text), OPTIONS)
    except CallFailure as failure:
        return failure


def told_of(outcome: AIMessage | CallFailure | None) -> dict[str, object] | None:
    """Return what of an outcome a caller can see."""
    if isinstance(outcome, AIMessage):
        metadata = {k: v for k, v in outcome.response_metadata.items() if k != "limits"}
        return {"text": outcome.text, "usage": outcome.usage_metadata, **metadata}
    if outcome is None:
        return None
    return {name: getattr(outcome, name) for name in ("kind", "message", "billed", "refused")}
