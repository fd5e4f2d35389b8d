"""What a model's config is called by the class that a provider's package has for it.

Packages built upon OpenAI's SDK are given an HTTP client that reads no body without end. It also
puts plain counts in place of what a body says of tokens: packages calculate with them before
anybody can look, and would fail, call after paid call, over a count that is none.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import httpx2
import openai
from langchain_core.language_models import BaseChatModel

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.http import find_proxy, load_trusted_certificates
from coreeval.models.model import IMPOSSIBLE_COUNT, ImpossibleCount, is_count
from coreeval.models.openai import parse_completion_usage
from coreeval.tools.http import (
    MOST_BODY_BYTES,
    BodyTooLong,
    ResponseBody,
    read_bounded,
    replace_body,
)

_CACHE_HITS = "prompt_cache_hit_tokens"
"""Where DeepSeek counts prompt tokens that it had in its cache."""


class BoundedAioClient(openai.DefaultAioHttpClient):
    """The SDK's client over aiohttp; the model's `timeout_s` bounds its time."""

    async def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return a response with its body, before redirects are followed."""
        response = await read_bounded(await super()._send_single_request(request))
        return replace_counts(response) if response.status_code == 200 else response


def replace_counts(response: httpx2.Response) -> httpx2.Response:
    """Return a completion whose counts any package can read; other responses are left unchanged."""
    try:
        said = json.loads(response.content)
    except (ValueError, RecursionError):
        return response
    if not isinstance(said, dict) or "usage" not in said:
        return response
    said["usage"] = _to_plain_usage(said["usage"])
    content = json.dumps(said).encode()
    body = ResponseBody(len(content))
    body.add(content)
    return replace_body(response, body)


def _to_plain_usage(told: object) -> dict[str, object] | None:
    """Return counts in OpenAI's form; impossible counts are named and become negative."""
    counted = parse_completion_usage(told)
    if counted is None:
        return None
    if isinstance(counted, ImpossibleCount):
        none = {"prompt_tokens": -1, "completion_tokens": -1, "total_tokens": -2}
        return {**none, IMPOSSIBLE_COUNT: str(counted)}
    details = counted.get("input_token_details", {})
    hits = told.get(_CACHE_HITS) if isinstance(told, dict) else None
    return {
        "prompt_tokens": counted["input_tokens"],
        "completion_tokens": counted["output_tokens"],
        "total_tokens": counted["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": details.get("cache_read", 0)},
        **({_CACHE_HITS: hits} if is_count(hits) else {}),
    }


_NAMES = {
    "max_tokens": (
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "num_predict",
    ),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "reasoning_effort": ("reasoning_effort", "effort"),
    "base_url": ("azure_endpoint", "base_url", "api_base", "endpoint_url"),
    "api_key_env": ("api_key",),
    "timeout_s": ("timeout", "request_timeout"),
}
_ENDPOINT = re.compile(r"ur[li]|host|endpoint|api_base|base_|proxy|client|transport|domain", re.I)
"""Arguments by which providers' packages are given another address or an HTTP client."""
_OPENING = frozenset(("model_provider", "configurable_fields", "config_prefix", "cache"))
"""Arguments of what opens any provider's model."""
_OPTIONAL = {"max_tokens", "timeout_s"}
"""What a model does well enough without: its own limit is long, and we keep the time ourselves."""


def build_arguments(
    chosen: type[BaseChatModel], config: ModelConfig, *, key: str, max_tokens: int
) -> dict[str, Any]:
    """Return the arguments for the constructor of a chat model's class.

    Raises:
        ConfigError: the class does not support a configured option, the named proxy or certificates
            cannot be used, or `extra` names an endpoint or an argument that is already set.
    """
    wanted = {
        "max_tokens": max_tokens,
        "temperature": config.temperature,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
        "base_url": config.base_url,
        "api_key_env": key or None,
        "timeout_s": config.timeout_s,
    }
    _refuse_endpoints(config)
    taken = _accepted_arguments(chosen)
    given: dict[str, Any] = {"cache": False, **_transport_arguments(config, taken)}
    for ours, value in wanted.items():
        name = next((name for name in _NAMES[ours] if name in taken), None)
        if value is not None and name is not None:
            given[name] = value
        elif value is not None and _must_be_taken(config, ours):
            raise _refusal_error(config, ours, f"remove `{ours}` from this model's config")
    _refuse_repeated(config, given)
    return given | config.extra


def _transport_arguments(config: ModelConfig, taken: set[str]) -> dict[str, Any]:
    """Return the arguments that leave retries, redirects and the size of bodies to us."""
    given: dict[str, Any] = {"max_retries": 0} if "max_retries" in taken else {}
    if "http_async_client" in taken:
        given |= _http_clients(config)
    elif config.ca_file is not None:
        raise _refusal_error(config, "ca_file", "set SSL_CERT_FILE in the environment instead")
    if "client_kwargs" in taken:
        given["client_kwargs"] = {"follow_redirects": False}
    if "async_client_kwargs" in taken:
        given["async_client_kwargs"] = bounded_settings()
    return given


def _refuse_endpoints(config: ModelConfig) -> None:
    """Reject an endpoint in `extra`: only base_url is checked against the trusted origins."""
    for name in _iter_endpoint_names(config.extra):
        raise ConfigError(
            f"{config.model}: extra.{name} would decide where requests are sent",
            where=f"model {config.model!r}",
            hint="set the endpoint in base_url, and a proxy in the environment",
        )


def _refuse_repeated(config: ModelConfig, given: Mapping[str, object]) -> None:
    """Reject arguments in `extra` that are already set: we rely on our retries and limits."""
    groups = [set(names) for names in _NAMES.values() if given.keys() & set(names)]
    ours = _OPENING.union(given, *groups)
    for name in sorted(ours & config.extra.keys()):
        raise ConfigError(
            f"{config.model}: extra.{name} is set by CoreEval itself",
            where=f"model {config.model!r}",
            hint="remove it from extra; coreeval docs models lists the keys to use instead",
        )


def _iter_endpoint_names(extra: object) -> Iterator[str]:
    """Yield the keys that name an address or a client, and those whose value is an address."""
    if isinstance(extra, Mapping):
        for name, value in extra.items():
            if _ENDPOINT.search(str(name)) or (isinstance(value, str) and "://" in value):
                yield str(name)
            else:
                yield from (f"{name}.{inner}" for inner in _iter_endpoint_names(value))
    elif isinstance(extra, list):
        for value in extra:
            yield from _iter_endpoint_names(value)


def _http_clients(config: ModelConfig) -> dict[str, httpx2.Client | httpx2.AsyncClient]:
    """Return HTTP clients of our own for packages that build on OpenAI's SDK.

    Their clients may be shared beyond the event loop, so that nothing could close them. The
    synchronous client is never used, but the packages' own would not always open.
    """
    verify, url = load_trusted_certificates(config.ca_file), config.base_url
    asked = BoundedAioClient(
        verify=verify,
        follow_redirects=False,
        trust_env=url is None,
        proxy=None if url is None else find_proxy(url),
    )
    idle = httpx2.Client(verify=verify, trust_env=False)
    return {"http_async_client": asked, "http_client": idle}


def _accepted_arguments(chosen: type[BaseChatModel]) -> set[str]:
    """Return the names of the arguments that a class takes."""
    fields = chosen.model_fields.items()
    by_name = chosen.model_config.get("populate_by_name") or chosen.model_config.get(
        "validate_by_name"
    )
    plain = {name for name, field in fields if by_name or field.alias is None}
    return plain | {field.alias for _, field in fields if field.alias is not None}


def _must_be_taken(config: ModelConfig, ours: str) -> bool:
    if ours == "api_key_env":
        return config.api_key_env is not None
    return ours not in _OPTIONAL


def _refusal_error(config: ModelConfig, name: str, hint: str) -> ConfigError:
    return ConfigError(
        f"{config.model} does not support {name}: its provider's package has no such setting",
        where=f"model {config.model!r}",
        hint=hint,
    )


def bounded_settings() -> dict[str, Any]:
    """Return settings for an `httpx.AsyncClient` that limits the size of the bodies that it reads.

    Bodies are not decompressed, since decompression has no limit.
    """
    return {
        "headers": {"accept-encoding": "identity"},
        "event_hooks": {"response": [_bound_response]},
    }


async def _bound_response(response: httpx.Response) -> None:
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        await response.aclose()
        raise httpx.DecodingError(
            f"the response is compressed, but CoreEval did not request compression: {packed[:40]!r}"
        )
    if isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body's chunks until they exceed the limit."""
        left = MOST_BODY_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise BodyTooLong(f"the response has more than {MOST_BODY_BYTES / (1 << 20):g} MiB")
            yield piece

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()
