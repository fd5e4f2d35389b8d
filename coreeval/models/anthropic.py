"""An endpoint with Anthropic's messages API as a langchain-core chat model.

The SDK is used like OpenAI's: directly, over aiohttp, with the body as bytes and without retries.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

import anthropic
import httpx2
from anthropic._models import FinalRequestOptions
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel, FailFast, SecretStr, ValidationError

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.batches import BatchEndpoint
from coreeval.models.chat import (
    SdkChatModel,
    add_counts,
    append_schema,
    check_usage,
    make_ai_message,
)
from coreeval.models.failures import (
    MAY_BE_BILLED,
    CallFailure,
    FailureKind,
    clean_message,
    describe_redirect,
    describe_web_page,
    kind_from_status,
    names_context,
    names_method,
    names_unsupported,
)
from coreeval.models.http import (
    HttpClient,
    check_route,
    encode_body,
    parse_url,
    to_connection_failure,
)
from coreeval.models.model import (
    FinishReason,
    Identity,
    ImpossibleCount,
    Model,
    RequestOptions,
    find_api_key,
    public_endpoint,
    request_parameters,
    share_client,
)
from coreeval.models.prompt_cache import FEWEST_TOKENS_OF_ANY
from coreeval.tools.http import parse_retry_after

Body = dict[str, object]
_FINISH: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refusal",
}
FEWEST_CACHED_CHARACTERS = 3 * FEWEST_TOKENS_OF_ANY
"""The fewest characters of instructions that the provider may cache: it takes 512 tokens or more,
by model, of at least 3 characters each (the lowest rate in graph/estimate/call_figures.py). A mark
on fewer tokens than a model caches costs nothing."""
_BLANK = "(blank)"
"""Replaces an empty turn, which the endpoint would reject."""


def request_body(
    config: ModelConfig, messages: list[dict[str, str]], options: RequestOptions
) -> Body:
    """Return the request body, without parameters that are not configured."""
    told = options.method in ("json_mode", "text")
    body: Body = {"model": config.name, "max_tokens": options.max_tokens}
    body |= _prompt_fields(append_schema(messages, options.schema) if told else messages)
    if config.temperature is not None:
        body["temperature"] = config.temperature
    return _add_extra(body | _structure_fields(config, options), config.extra)


def _prompt_fields(messages: list[dict[str, str]]) -> Body:
    """Return the turns and, separately, the instructions.

    Instructions that are long enough are marked for the provider's cache.
    """
    texts = [one["content"] for one in messages if one["role"] == "system"]
    blocks: list[Body] = [{"type": "text", "text": text} for text in texts if text.strip()]
    turns = [
        {"role": one["role"], "content": one["content"] if one["content"].strip() else _BLANK}
        for one in messages
        if one["role"] != "system"
    ]
    if not blocks:
        return {"messages": turns}
    if sum(len(text) for text in texts) >= FEWEST_CACHED_CHARACTERS:
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return {"system": blocks, "messages": turns}


def _structure_fields(config: ModelConfig, options: RequestOptions) -> Body:
    output: Body = {"effort": config.reasoning_effort} if config.reasoning_effort else {}
    body: Body = {}
    if options.method == "json_schema":
        output["format"] = {"type": "json_schema", "schema": options.schema}
    elif options.method == "function_calling":
        body["tools"] = [{"name": options.name, "input_schema": options.schema}]
        body["tool_choice"] = {
            "type": "tool",
            "name": options.name,
            "disable_parallel_tool_use": True,
        }
    return body | ({"output_config": output} if output else {})


def _add_extra(body: Body, extra: Mapping[str, object]) -> Body:
    """Add the configured extras; those in `output_config` are merged with ours."""
    ours, theirs = body.get("output_config"), extra.get("output_config")
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {**body, **extra, "output_config": {**ours, **theirs}}
    return {**body, **extra}


# -- what came back -----------------------------------------------------------------------------


class _Block(BaseModel):
    """A part of an answer; thoughts are neither text nor tool input."""

    type: str
    text: str | None = None
    input: dict[str, Any] | None = None


class _StopDetails(BaseModel):
    explanation: str | None = None


class _AnthropicUsage(BaseModel):
    """Token counts of any type and size; `usage_of` checks them."""

    input_tokens: Any = 0
    output_tokens: Any = 0
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None


class _AnthropicMessage(BaseModel):
    """The parts of a message that are read; servers differ in the rest."""

    model: str | None = None
    content: Annotated[list[_Block], FailFast()]
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: Any = None
    """Parsed separately: if it cannot be parsed, the answer is still used."""


class _MessageErrorDetail(BaseModel):
    message: str = "the body contains an error"


class _MessageErrorBody(BaseModel):
    """What some gateways answer with status 200."""

    error: _MessageErrorDetail | str


def read_answer(
    body: bytes, headers: Iterable[tuple[bytes, bytes]], secret: str
) -> AIMessage | CallFailure:
    """Read the body of a response with status 200."""
    try:
        done = _AnthropicMessage.model_validate_json(body)
    except ValidationError:
        return _explain_body(body, secret)
    return make_ai_message(
        _message_text(done.content) or _stop_explanation(done),
        finish=_FINISH.get(done.stop_reason or "", "stop"),
        model=done.model or "",
        usage=_parse_usage(done.usage),
        headers=headers,
    )


def _explain_body(body: bytes, secret: str) -> CallFailure:
    try:
        trouble = _MessageErrorBody.model_validate_json(body).error
    except ValidationError:
        said = body.decode(errors="replace")
        if page := describe_web_page(said, secret):
            return CallFailure("web_page", page)
        start = clean_message(said, secret)[:80]
        told = f"the answer is not a message: {start!r}"
    else:
        told = trouble if isinstance(trouble, str) else trouble.message
    return CallFailure("transient", clean_message(told, secret), billed=True)


def _message_text(blocks: list[_Block]) -> str:
    """Return the answer's text: tool input counts as text, thoughts do not."""
    inputs = [one.input for one in blocks if one.type == "tool_use" and one.input is not None]
    if inputs:
        return "\n".join(json.dumps(one, ensure_ascii=False) for one in inputs)
    return "".join(one.text or "" for one in blocks if one.type == "text")


def _stop_explanation(message: _AnthropicMessage) -> str:
    """Return why the answer is empty, if the provider says so."""
    return (message.stop_details.explanation or "") if message.stop_details else ""


def _parse_usage(told: object) -> UsageMetadata | ImpossibleCount | None:
    try:
        usage = _AnthropicUsage.model_validate(told)
    except ValidationError:
        return None
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    return check_usage(
        prompt=add_counts(usage.input_tokens, cached, written),
        completion=usage.output_tokens,
        cached=cached,
        written=written,
    )


_SPENDING_LIMITS = (
    anthropic.ContractSpendLimitReachedError,
    anthropic.EnforcedSpendLimitReachedError,
)
"""Reasons of a 429 that waiting does not resolve."""
_NO_MONEY = re.compile(r"credit balance is too low|usage limits?\b.*\bregain", re.IGNORECASE)
"""How a 400 says that the account has no credit or has reached its own limit."""
_BLOCKED = re.compile(r"content filtering policy", re.IGNORECASE)
_EFFORT = re.compile(r"\beffort\b", re.IGNORECASE)
"""A parameter named beside the schema that has nothing to do with it."""


def to_failure(error: anthropic.AnthropicError, secret: str) -> CallFailure:
    """Return an SDK error as a failure without its request, and so without headers or a key."""
    if isinstance(error, anthropic.APIStatusError):
        return _status_failure(error, secret)
    if isinstance(error, anthropic.APIConnectionError):
        return to_connection_failure(error, secret)
    return CallFailure("transient", clean_message(str(error), secret), billed=True)


def _status_failure(error: anthropic.APIStatusError, secret: str) -> CallFailure:
    said = error.api_message if isinstance(error.api_message, str) else error.message
    said = describe_redirect(error.status_code, error.response.headers.get("location")) or said
    kind = _failure_kind(error, said)
    return CallFailure(
        kind,
        clean_message(said, secret),
        retry_after=parse_retry_after(error.response.headers.get("retry-after")),
        billed=error.status_code in MAY_BE_BILLED,
        refused="method" if kind == "unsupported" else None,
    )


def _failure_kind(error: anthropic.APIStatusError, said: str) -> FailureKind:
    if isinstance(error, _SPENDING_LIMITS):
        return "quota"
    kind = kind_from_status(error.status_code)
    return _rejected_kind(said) if kind == "rejected" else kind


def _rejected_kind(said: str) -> FailureKind:
    """Return the kind of a 4xx by its message, since its type is the same for all of them."""
    if _NO_MONEY.search(said):
        return "quota"
    if _BLOCKED.search(said):
        return "declined"
    if names_method(said) and names_unsupported(said) and not _EFFORT.search(said):
        return "unsupported"
    return "too_long" if names_context(said) else "rejected"


PUBLIC_URL = "https://api.anthropic.com"
_CONNECT_S = 10.0


def open_anthropic(config: ModelConfig, env: Mapping[str, str]) -> Model:
    """Open a model behind Anthropic's endpoint or a compatible one.

    Raises:
        CredentialError: the environment has no key for the public endpoint, or one that cannot be
            sent.
        ConfigError: a configured option does not exist for such a model, or the named proxy or
            certificates cannot be used.
    """
    if config.seed is not None:
        raise ConfigError(
            f"{config.model} has a seed, which Anthropic's models do not support",
            where=f"seed of {config.model}",
            hint="remove `seed` from this model's config",
        )
    url = endpoint_url(config)
    check_route(url, config.ca_file)
    identity = Identity(
        provider="anthropic",
        endpoint=public_endpoint(url),
        model=config.name,
        parameters=request_parameters(config),
    )
    chat = AnthropicChat(settings=config, key=SecretStr(find_api_key(config, env)), cache=False)
    return Model(chat=chat, identity=identity, config=config)


def endpoint_url(config: ModelConfig) -> str:
    """Return a model's endpoint, without the /v1 that the SDK adds."""
    return (config.base_url or PUBLIC_URL).rstrip("/").removesuffix("/v1")


class _AnthropicClient(anthropic.AsyncAnthropic):
    """The SDK's client, with values computed once that the SDK computes for each request.

    All requests have the same headers, except for their timeout.
    """

    def __init__(self, config: ModelConfig, key: str) -> None:
        url = endpoint_url(config)
        super().__init__(
            base_url=url,
            api_key=key,
            max_retries=0,
            http_client=HttpClient(url, config.ca_file),
            # The SDK sends the key as a bearer token; gateways may look for it here.
            default_headers={"x-api-key": key} if config.base_url else None,
        )
        self._messages_url = f"{url}/v1/messages"  # whole: the SDK would parse it anew
        self._options: dict[float, FinalRequestOptions] = {}
        self._headers_by_timeout: dict[str, httpx2.Headers] = {}

    async def send_message(self, body: bytes, seconds: float) -> httpx2.Response:
        """Return the response to a message's body, or raise what the SDK's `post` would.

        Raises:
            anthropic.AnthropicError: there is no response, or its status is an error.
        """
        if seconds not in self._options:
            self._options[seconds] = FinalRequestOptions.construct(
                method="post",
                url=self._messages_url,
                timeout=anthropic.Timeout(seconds, connect=min(_CONNECT_S, seconds)),
                follow_redirects=False,  # the key is not sent to another origin
                idempotency_key="",  # which is not sent
            )
        options = self._options[seconds].model_copy(update={"content": body})
        return await self.request(httpx2.Response, options)

    def _build_headers(
        self, options: FinalRequestOptions, *, retries_taken: int = 0
    ) -> httpx2.Headers:
        timeout = repr(options.timeout)
        if timeout not in self._headers_by_timeout:
            built = super()._build_headers(options, retries_taken=retries_taken)
            self._headers_by_timeout[timeout] = built
        return self._headers_by_timeout[timeout].copy()

    def _prepare_url(self, url: str) -> httpx2.URL:
        return parse_url(url)


class AnthropicChat(SdkChatModel):
    """Asks one model behind a messages endpoint."""

    has_batches: ClassVar[bool] = True

    def _share_client(self, secret: str) -> _AnthropicClient:
        kind = (_AnthropicClient, self.settings.base_url, secret, self.settings.ca_file)
        return share_client(kind, lambda: _AnthropicClient(self.settings, secret))

    def encode_request(self, messages: list[dict[str, str]], options: RequestOptions) -> bytes:
        """Return the body of a request as `answer` sends it."""
        return encode_body(request_body(self.settings, messages, options))

    def open_batches(self) -> BatchEndpoint:
        """Return the endpoint's batches, to be used in the running loop."""
        from coreeval.models.anthropic_batches import AnthropicBatches  # which imports this module

        return AnthropicBatches(self.key.get_secret_value(), self.settings)

    async def _send(
        self, messages: list[dict[str, str]], options: RequestOptions
    ) -> AIMessage | CallFailure:
        secret = self.key.get_secret_value()
        body = self.encode_request(messages, options)
        try:
            response = await self._share_client(secret).send_message(body, self.settings.timeout_s)
        except anthropic.AnthropicError as error:
            return to_failure(error, secret)
        return read_answer(response.content, response.headers.raw, secret)
