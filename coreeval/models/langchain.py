"""Any chat model of LangChain: sends requests, and reads answers and errors.

A request returns one answer as JSON text. A schema is bound once; the model's text is kept
unchanged and parsed by the client.
"""

import asyncio
import difflib
import importlib
import json
from collections.abc import Callable, Collection, Mapping
from typing import cast

import httpx2
import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable, RunnableLambda
from openai.types import CompletionUsage
from pydantic import Field, PrivateAttr, SecretStr, ValidationError

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.chat import (
    ChatModel,
    answer_or_raise,
    append_schema,
    check_usage,
    make_ai_message,
)
from coreeval.models.failures import (
    DECLINED,
    NO_MONEY,
    CallFailure,
    FailureKind,
    clean_message,
    describe_redirect,
    kind_from_status,
    names_method,
    names_unsupported,
)
from coreeval.models.http import to_connection_failure
from coreeval.models.langchain_arguments import build_arguments
from coreeval.models.model import (
    IMPOSSIBLE_COUNT,
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
from coreeval.tools.http import parse_retry_after

_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""The names under which packages report why an answer ended."""
_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
}


def to_answer(message: AIMessage) -> AIMessage:
    """Return the message with a tool's arguments as its text and all metadata under our names."""
    metadata = message.response_metadata
    refusal = message.additional_kwargs.get("refusal")
    return make_ai_message(
        str(refusal or _message_text(message)),
        finish="refusal" if refusal else _finish_reason(metadata),
        model=str(metadata.get("model_name") or metadata.get("model") or ""),
        usage=_find_impossible_count(metadata) or _parse_usage(message.usage_metadata),
    )


def _message_text(message: AIMessage) -> str:
    """Return the answer's text: a tool's arguments count as text, thoughts do not."""
    calls = [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]
    calls += [call["args"] or "" for call in message.invalid_tool_calls]
    return "\n".join(calls) or str(message.text)


def _finish_reason(metadata: Mapping[str, object]) -> FinishReason:
    said = next((metadata[name] for name in _REASONS if metadata.get(name)), "")
    return _FINISH.get(str(said).rpartition(".")[2].lower(), "stop")


def _find_impossible_count(metadata: Mapping[str, object]) -> ImpossibleCount | None:
    """Return the impossible count that our HTTP client found, if any."""
    told = metadata.get("token_usage")
    named = told.get(IMPOSSIBLE_COUNT) if isinstance(told, Mapping) else None
    return ImpossibleCount(named) if named else None


def _parse_usage(usage: UsageMetadata | None) -> UsageMetadata | ImpossibleCount | None:
    if usage is None:
        return None
    details = usage.get("input_token_details", {})
    return check_usage(
        prompt=usage["input_tokens"],
        completion=usage["output_tokens"],
        cached=details.get("cache_read", 0),
        written=details.get("cache_creation", 0),
    )


def to_failure(error: Exception, secret: str) -> CallFailure:
    """Return an error as a failure, by its status if it has one.

    An unknown error may be temporary, so it is retried.
    """
    response = getattr(error, "response", None)
    status = _find_status(error, response)
    if status is None:
        return _failure_without_status(error, secret)
    kind = _failure_kind(error, status)
    said = describe_redirect(status, _find_header(response, "location")) or str(error)
    return CallFailure(
        kind,
        clean_message(said, secret),
        retry_after=parse_retry_after(_find_header(response, "retry-after")),
        refused="method" if kind == "unsupported" else None,
    )


def find_truncated_answer(error: Exception) -> AIMessage | None:
    """Return the answer that OpenAI's SDK keeps in an error when it reached the length limit."""
    if not isinstance(error, openai.LengthFinishReasonError):
        return None
    done = error.completion
    said = done.choices[0].message.content or ""
    return make_ai_message(
        said, finish="length", model=done.model, usage=_completion_usage(done.usage)
    )


def _completion_usage(usage: CompletionUsage | None) -> UsageMetadata | ImpossibleCount | None:
    if usage is None:
        return None
    return check_usage(prompt=usage.prompt_tokens, completion=usage.completion_tokens)


def _failure_without_status(error: Exception, secret: str) -> CallFailure:
    told = clean_message(f"{type(error).__name__}: {error}", secret)
    if "content filter" in str(error):
        return CallFailure("declined", told, billed=True)
    if type(error) is ConnectionError:  # its subclasses say that a connection broke
        return CallFailure("unreachable", told)
    failure = to_connection_failure(error, secret)
    if failure.kind != "transient" or isinstance(error, openai.APIConnectionError):
        return failure
    return CallFailure("transient", told, billed=True)


def _failure_kind(error: Exception, status: int) -> FailureKind:
    codes = {str(getattr(error, name, "")) for name in ("code", "type")}
    kind = kind_from_status(status)
    if codes & NO_MONEY:
        return "quota"
    if kind == "rejected" and codes & DECLINED:
        return "declined"
    said = str(error)
    if kind == "rejected" and names_method(said) and names_unsupported(said):
        return "unsupported"
    return kind


def _find_status(error: Exception, response: object) -> int | None:
    """Return the HTTP status of an error, wherever its package stores it."""
    places = (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(response, "status_code", None),
        _boto_status(response),
    )
    return next((one for one in places if isinstance(one, int) and 300 <= one < 600), None)


def _boto_status(response: object) -> object:
    """Return the status from where Amazon's SDK stores it."""
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    return metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None


def _find_header(response: object, name: str) -> str | None:
    headers = getattr(response, "headers", None)
    found = headers.get(name) if isinstance(headers, Mapping) else None
    return found if isinstance(found, str) else None


Asked = Runnable[list[dict[str, str]], dict[str, object]]
"""Receives messages and returns the model's message as `raw`."""


class LangChainClient:
    """The instances of one chat model by token limit.

    Args:
        make: Creates the model for a token limit.
    """

    def __init__(self, make: Callable[[int], BaseChatModel]) -> None:
        self._make = make
        self._models: dict[int, BaseChatModel] = {}
        self._bound: dict[tuple[int, str, int], tuple[Mapping[str, object], Asked]] = {}
        """By the schema's identity, the method and the limit; the schema is kept, so its id stays
        valid."""

    def bind(self, options: RequestOptions) -> Asked:
        """Return a runnable that asks the model with the given options.

        Raises:
            ValueError, TypeError, NotImplementedError: its package does not support the method.
        """
        key = (id(options.schema), options.method, options.max_tokens)
        if key not in self._bound:
            self._bound[key] = (options.schema, _bind(self._model(options.max_tokens), options))
        return self._bound[key][1]

    def secret(self, key: SecretStr) -> str:
        """Return the key that is sent: ours, or the one that the package found itself."""
        values = (value for model in self._models.values() for value in vars(model).values())
        keys = (key, *(value for value in values if isinstance(value, SecretStr)))
        return next((said for one in keys if (said := one.get_secret_value())), "")

    async def close(self) -> None:
        """Close our own connections; packages close theirs."""
        for model in self._models.values():
            http = getattr(model, "http_async_client", None)
            if isinstance(http, httpx2.AsyncClient):
                await http.aclose()
        self._models.clear()
        self._bound.clear()

    def _model(self, limit: int) -> BaseChatModel:
        if limit not in self._models:
            self._models[limit] = self._make(limit)
        return self._models[limit]


def _bind(model: BaseChatModel, options: RequestOptions) -> Asked:
    if options.method == "text":
        return cast("Asked", model | RunnableLambda(_as_raw))
    schema = {"title": options.name, "description": "The answer.", **options.schema}
    bound = model.with_structured_output(schema, method=options.method, include_raw=True)
    return cast("Asked", bound)


def _as_raw(message: AIMessage) -> dict[str, object]:
    return {"raw": message}


class LangChainChat(ChatModel):
    """Asks one model of a provider's package."""

    make: Callable[[int], BaseChatModel] = Field(exclude=True, repr=False)
    """Makes the package's model for a longest answer."""
    _me: object = PrivateAttr(default_factory=object)
    """What tells its connections from those of others."""

    async def answer(self, messages: list[dict[str, str]], options: RequestOptions) -> AIMessage:
        """Return the answer of one request."""
        if options.method in ("json_mode", "text"):
            messages = append_schema(messages, options.schema)
        return answer_or_raise(await self._send(messages, options), self.key)

    async def _send(
        self, messages: list[dict[str, str]], options: RequestOptions
    ) -> AIMessage | CallFailure:
        client = share_client(self._me, lambda: LangChainClient(self.make))
        seconds = self.settings.timeout_s
        try:
            bound = client.bind(options)
        except (ValueError, TypeError, NotImplementedError) as error:
            return CallFailure("unsupported", f"{options.method}: {error}", refused="method")
        try:
            async with asyncio.timeout(seconds):
                said = await bound.ainvoke(messages)
            return to_answer(cast("AIMessage", said["raw"]))
        except TimeoutError:
            return CallFailure("transient", f"no answer within {seconds:g} s", billed=True)
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            return find_truncated_answer(error) or to_failure(error, client.secret(self.key))


_INSTALL = "pip install 'coreeval[providers]'"


def open_langchain(config: ModelConfig, env: Mapping[str, str], *, known: Collection[str]) -> Model:
    """Open a model through `init_chat_model`.

    Args:
        config: The model.
        env: Where the key that the config names comes from; a provider's package finds its own.
        known: Providers that need no package, used to suggest a name close to a misspelled one.

    Raises:
        ConfigError: there is no such provider, its package is missing, or it does not support a
            configured option.
        CredentialError: the key that the config names is missing.
    """
    packages = _list_packages(config, known)
    provider = config.provider.replace("-", "_").lower()
    if provider not in packages:
        raise _unknown_provider(config, {*known, *packages})
    chosen = _find_chat_class(config, *packages[provider])
    key = _find_key(config, env)

    def make(limit: int) -> BaseChatModel:
        return _make_model(config, chosen, key, provider, limit)

    make(config.max_tokens)  # what is wrong with it is known before it is asked
    chat = LangChainChat(settings=config, key=SecretStr(key), make=make, cache=False)
    endpoint = public_endpoint(config.base_url) if config.base_url else f"langchain:{provider}"
    identity = Identity(
        provider=config.provider,
        endpoint=endpoint,
        model=config.name,
        parameters=request_parameters(config),
    )
    return Model(chat=chat, identity=identity, config=config)


def _list_packages(config: ModelConfig, known: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the module and the class of each provider."""
    try:
        from langchain.chat_models import base
    except ImportError:
        near, ours = _suggest_model(config, known), ", ".join(sorted(known))
        raise ConfigError(
            f"{config.model!r} needs LangChain; the providers that work without it are {ours}",
            where="models",
            hint=f"did you mean {near!r}? if not, {_INSTALL}" if near else _INSTALL,
        ) from None
    registered = getattr(base, "_BUILTIN_PROVIDERS", {})
    return {name: (module, chat) for name, (module, chat, _) in registered.items()}


def _suggest_model(config: ModelConfig, names: Collection[str]) -> str | None:
    """Return the model name that the user probably meant."""
    near = difflib.get_close_matches(config.provider, sorted(names), n=1)
    return f"{near[0]}:{config.name}" if near else None


def _unknown_provider(config: ModelConfig, names: Collection[str]) -> ConfigError:
    near = _suggest_model(config, names)
    return ConfigError(
        f"there is no provider {config.provider!r}",
        where=f"model {config.model!r}",
        hint=f"did you mean {near!r}?" if near else f"known providers: {', '.join(sorted(names))}",
    )


def _find_chat_class(config: ModelConfig, module: str, name: str) -> type[BaseChatModel]:
    package = module.partition(".")[0].replace("_", "-")
    try:
        found: type[BaseChatModel] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{config.model} needs the {package} package: {error}",
            where=f"model {config.model!r}",
            hint=f"{_INSTALL} {package}",
        ) from None
    return found


def _find_key(config: ModelConfig, env: Mapping[str, str]) -> str:
    """Return the key to pass on, or "" if the provider's package finds its own.

    A user's own endpoint gets the key that is named for it or none, never one that a package finds
    under another name.
    """
    given = config.api_key_env or config.base_url or env.get(config.key_variable)
    return find_api_key(config, env) if given else ""


def _make_model(
    config: ModelConfig, chosen: type[BaseChatModel], key: str, provider: str, limit: int
) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    try:
        given = build_arguments(chosen, config, key=key, max_tokens=limit)
        made: BaseChatModel = init_chat_model(config.name, model_provider=provider, **given)
        return made
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - each package has errors of its own
        trouble = clean_message(_error_text(error), key)
    raise ConfigError(
        f"{config.model} cannot be opened: {trouble}",
        where=f"model {config.model!r}",
        hint="see the message of the provider's package; most packages read their key from the "
        "environment",
    )


def _error_text(error: Exception) -> str:
    """Return an error's message without the values that it is about: a key may be among them."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        told = str(first["msg"]).removeprefix("Value error, ")
        return f"{'.'.join(map(str, first['loc']))} {told}".strip()
    return str(error)
