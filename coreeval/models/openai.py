"""An endpoint with OpenAI's chat completions API as a langchain-core chat model.

The SDK is used directly, over aiohttp, with the body as bytes (it would process the schema in a
dict at each call), answers parsed by our own classes, and no retries. This takes a third of the CPU
time of LangChain's wrapper (research: performance §7), with one retry layer instead of three.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import aiohttp
import httpx2
import openai
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel, Field, SecretStr, ValidationError

from coreeval.config import ModelConfig
from coreeval.models.batches import BatchEndpoint
from coreeval.models.chat import SdkChatModel, append_schema, check_usage, make_ai_message
from coreeval.models.failures import (
    DECLINED,
    MAY_BE_BILLED,
    NO_API,
    CallFailure,
    RefusedOption,
    clean_message,
    describe_redirect,
    describe_web_page,
    kind_from_codes,
    kind_from_status,
    names_context,
    names_logprobs,
    names_method,
    names_unsupported,
)
from coreeval.models.http import (
    MOST_LISTED,
    HttpClient,
    check_route,
    encode_body,
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
from coreeval.models.prompt_cache import wants_breakpoints
from coreeval.tools.http import parse_retry_after

Body = dict[str, object]
_BROKEN_OFF = "error"
"""What gateways call an end that was not the model's."""
_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
}


def request_body(
    config: ModelConfig, messages: list[dict[str, str]], options: RequestOptions
) -> Body:
    """Return the request body, without parameters that are not configured."""
    limit = "max_tokens" if options.plain_limit else "max_completion_tokens"
    chosen = {
        "temperature": config.temperature,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
    }
    told = options.method in ("json_mode", "text")
    shown = append_schema(messages, options.schema) if told else messages
    body: Body = {"model": config.name, "messages": shown, limit: options.max_tokens}
    body |= {key: value for key, value in chosen.items() if value is not None}
    if options.logprobs:
        body |= {"logprobs": True, "top_logprobs": options.logprobs}
    if config.base_url is None:
        body["prompt_cache_key"] = _cache_key(messages)
    if wants_breakpoints(config):
        body["messages"] = _mark_instructions(shown)
        body["prompt_cache_options"] = {"mode": "explicit"}
    return body | _structure_fields(options) | config.extra


def _mark_instructions(messages: Sequence[Mapping[str, str]]) -> list[Mapping[str, object]]:
    """Return the messages with the end of the instructions marked for the prompt cache.

    Messages without instructions are returned unchanged: their beginning is not repeated.
    """
    first, *rest = messages
    if first["role"] != "system" or not first["content"]:
        return [*messages]
    part = {
        "type": "text",
        "text": first["content"],
        "prompt_cache_breakpoint": {"mode": "explicit"},
    }
    return [{**first, "content": [part]}, *rest]


def _cache_key(messages: list[dict[str, str]]) -> str:
    """Return the key that routes requests with the same instructions to one prompt cache."""
    return hashlib.sha256(messages[0]["content"].encode()).hexdigest()[:32]


def _structure_fields(options: RequestOptions) -> Body:
    match options.method:
        case "json_schema":
            named = {"name": options.name, "strict": True, "schema": options.schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "function_calling":
            function = {"name": options.name, "strict": True, "parameters": options.schema}
            choice = {"type": "function", "function": {"name": options.name}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
        case "json_mode":
            return {"response_format": {"type": "json_object"}}
        case "text":
            return {}


# -- what came back -----------------------------------------------------------------------------


class _Function(BaseModel):
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    function: _Function | None = None


class _Message(BaseModel):
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = Field(None, max_length=MOST_LISTED)


class _Choice(BaseModel):
    finish_reason: str | None = None
    message: _Message
    logprobs: object = None


class _UsageDetails(BaseModel):
    cached_tokens: Any = None
    cache_write_tokens: Any = None


class _Usage(BaseModel):
    """Token counts of any type and size; `usage_of` checks them."""

    prompt_tokens: Any
    completion_tokens: Any
    prompt_tokens_details: _UsageDetails | None = None


class _Completion(BaseModel):
    """The parts of a completion that are read; servers differ in the rest."""

    model: str | None = None
    choices: list[_Choice] = Field(min_length=1, max_length=MOST_LISTED)
    usage: Any = None
    """Parsed separately: if it cannot be parsed, the answer is still used."""


class _ErrorDetail(BaseModel):
    message: str = "the body contains an error"
    code: Any = None
    type: Any = None


class _ErrorBody(BaseModel):
    """What some gateways answer with status 200."""

    error: _ErrorDetail | str


def read_answer(
    body: bytes, headers: Iterable[tuple[bytes, bytes]], secret: str
) -> "AIMessage | CallFailure":
    """Read the body of a response with status 200."""
    try:
        done = _Completion.model_validate_json(body)
    except ValidationError:
        return _explain_body(body, secret)
    choice = done.choices[0]
    if choice.finish_reason == _BROKEN_OFF:
        told = "the endpoint stopped in the middle of its answer"
        return CallFailure("transient", told, billed=True)
    return make_ai_message(
        choice.message.refusal or _message_text(choice.message),
        finish="refusal" if choice.message.refusal else _finish_reason(choice),
        model=done.model or "",
        usage=parse_completion_usage(done.usage),
        headers=headers,
        logprobs=choice.logprobs,
    )


def _explain_body(body: bytes, secret: str) -> CallFailure:
    try:
        error = _ErrorBody.model_validate_json(body).error
    except ValidationError:
        said = body.decode(errors="replace")
        if page := describe_web_page(said, secret):
            return CallFailure("web_page", page)
        start = clean_message(said, secret)[:80]
        told = f"the answer is not a chat completion: {start!r}"
        return CallFailure("transient", clean_message(told, secret), billed=True)
    trouble = _ErrorDetail(message=error) if isinstance(error, str) else error
    kind = kind_from_codes(trouble.code, trouble.type) or "transient"
    return CallFailure(kind, clean_message(trouble.message, secret), billed=True)


def _finish_reason(choice: _Choice) -> FinishReason:
    return _FINISH.get((choice.finish_reason or "").lower(), "stop")


def _message_text(message: _Message) -> str:
    """Return the answer's text: a function's arguments count as text, thoughts do not."""
    if message.tool_calls:
        return "\n".join(_function_arguments(call.function) for call in message.tool_calls)
    if isinstance(message.content, list):
        return "".join(_part_text(part) for part in message.content)
    return message.content or ""


def _part_text(part: object) -> str:
    if isinstance(part, dict):
        part = part.get("text") if part.get("type") == "text" else ""
    return part if isinstance(part, str) else ""


def _function_arguments(function: _Function | None) -> str:
    said = function.arguments if function else None
    return json.dumps(said, ensure_ascii=False) if isinstance(said, dict) else said or ""


def parse_completion_usage(told: object) -> UsageMetadata | ImpossibleCount | None:
    """Return the counts in the `usage` of a completion; None if it has none."""
    try:
        usage = _Usage.model_validate(told)
    except ValidationError:
        return None
    if usage.prompt_tokens in (None, 0):
        return None  # it does not count
    details = usage.prompt_tokens_details
    return check_usage(
        prompt=usage.prompt_tokens,
        completion=usage.completion_tokens,
        cached=details.cached_tokens if details else 0,
        written=details.cache_write_tokens if details else 0,
    )


_LIMIT = re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE)
_TOO_HIGH = re.compile(r"less than|at most|range|maximum|greater|larger|exceed", re.IGNORECASE)
"""The name is known, and its value is rejected."""


REQUEST_ERRORS = (openai.OpenAIError, aiohttp.ClientError, UnicodeError)
"""What a request may raise: the SDK does not wrap the transport's errors about invalid HTTP."""


def to_failure(error: Exception, secret: str) -> CallFailure:
    """Return an error as a failure without its request, and so without headers or a key."""
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, secret)
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        return CallFailure("transient", clean_message(str(error), secret), billed=True)
    return to_connection_failure(error, secret)


def _status_failure(error: openai.APIStatusError, secret: str) -> CallFailure:
    kind = kind_from_status(error.status_code)
    if kind_from_codes(error.code, error.type) == "quota":
        kind = "quota"
    elif kind == "rejected" and error.code in DECLINED:
        kind = "declined"
    told = _error_text(error)
    if kind in ("credential", "transient") and names_logprobs(told):
        kind = "rejected"  # some models answer 403, some servers 500, although the key is valid
    if page := describe_web_page(error.response.text, secret):
        kind, told = ("web_page" if error.status_code in NO_API else kind), page
    elif kind == "rejected" and (error.code == _TOO_LONG or names_context(told)):
        kind = "too_long"
    refused = _find_refused(error, told) if kind == "rejected" else None
    return CallFailure(
        "unsupported" if refused else kind,
        clean_message(told, secret),
        retry_after=parse_retry_after(error.response.headers.get("retry-after")),
        billed=error.status_code in MAY_BE_BILLED,
        refused=refused,
        answered=error.status_code,
    )


_TOO_LONG = "context_length_exceeded"


def _error_text(error: openai.APIStatusError) -> str:
    """Return the server's whole message: the SDK repeats it only if it is in `message`."""
    if redirect := describe_redirect(error.status_code, error.response.headers.get("location")):
        return redirect
    body, text = error.body, error.response.text
    if not text or (isinstance(body, dict) and isinstance(body.get("message"), str)):
        return error.message
    return f"{error.message} - {text}"


def _find_refused(error: openai.APIStatusError, told: str) -> RefusedOption | None:
    """Return which option of a request the endpoint does not support, given its 400 or 422."""
    said = f"{error.param or ''} {told}"
    if not names_unsupported(said):
        return None
    if _LIMIT.search(said):
        return None if _TOO_HIGH.search(said) else "limit"
    return "method" if names_method(said) else None


PUBLIC_URL = "https://api.openai.com/v1"
_CONNECT_S = 10.0


def open_openai(config: ModelConfig, env: Mapping[str, str]) -> Model:
    """Open a model behind an OpenAI-compatible endpoint.

    Raises:
        CredentialError: the environment has no key for the public endpoint, or one that cannot be
            sent.
        ConfigError: the named proxy or certificates cannot be used.
    """
    url = config.base_url or PUBLIC_URL
    check_route(url, config.ca_file)
    identity = Identity(
        provider="openai",
        endpoint=public_endpoint(url),
        model=config.name,
        parameters=request_parameters(config),
    )
    chat = OpenAIChat(settings=config, key=SecretStr(find_api_key(config, env)), cache=False)
    return Model(
        chat=chat,
        identity=identity,
        config=config,
        plain_limit=config.base_url is not None,
        has_logprobs=True,
    )


def _make_client(base_url: str, key: str, ca_file: str | None) -> openai.AsyncOpenAI:
    http = HttpClient(base_url, ca_file)
    return openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0, http_client=http)


class OpenAIChat(SdkChatModel):
    """The chat model behind a chat-completions endpoint."""

    has_batches: ClassVar[bool] = True

    @property
    def _url(self) -> str:
        return self.settings.base_url or PUBLIC_URL

    def _share_client(self, secret: str) -> openai.AsyncOpenAI:
        url, ca_file = self._url, self.settings.ca_file
        return share_client(
            (openai.AsyncOpenAI, url, secret, ca_file), lambda: _make_client(url, secret, ca_file)
        )

    def encode_request(self, messages: list[dict[str, str]], options: RequestOptions) -> bytes:
        """Return the body of a request as `answer` sends it."""
        return encode_body(request_body(self.settings, messages, options))

    def open_batches(self) -> BatchEndpoint:
        """Return the endpoint's batches, to be used in the running loop."""
        from coreeval.models.openai_batches import OpenAIBatches  # which imports this module

        return OpenAIBatches(self._url, self.key.get_secret_value(), self.settings)

    async def _send(
        self, messages: list[dict[str, str]], options: RequestOptions
    ) -> AIMessage | CallFailure:
        secret, seconds = self.key.get_secret_value(), self.settings.timeout_s
        try:
            response = await self._share_client(secret).post(
                f"{self._url.rstrip('/')}/chat/completions",  # whole: the SDK would parse it twice
                cast_to=httpx2.Response,
                content=self.encode_request(messages, options),
                options={"timeout": openai.Timeout(seconds, connect=min(_CONNECT_S, seconds))},
            )
        except REQUEST_ERRORS as error:
            return to_failure(error, secret)
        return read_answer(response.content, response.headers.raw, secret)
