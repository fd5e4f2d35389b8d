"""The interface of a model, and the options of one request.

API keys come from the environment, and only valid ones are sent. Clients that hold connections are
created once per event loop for each kind, endpoint and key. A token count that is not a valid
number, or impossible for its request, is an `ImpossibleCount`.
"""

import asyncio
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar, cast
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from coreeval.config import Method, ModelConfig
from coreeval.errors import CredentialError
from coreeval.tools.catalogs import FRAMING_BYTES

if TYPE_CHECKING:
    from langchain_core.messages.ai import UsageMetadata

    from coreeval.models.chat import ChatModel


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The properties of a model that determine its answers; part of every call key."""

    provider: str
    endpoint: str
    model: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A chat model, opened from the config."""

    chat: "ChatModel" = field(repr=False)
    identity: Identity
    config: ModelConfig
    is_recorded: bool = False
    """Whether its answers are recorded: after a bad answer, later chains may have a good one."""
    plain_limit: bool = True
    """Whether the token limit is called `max_tokens`, as far as the endpoint is known."""
    has_logprobs: bool = False
    """Whether its protocol has log-probabilities; the endpoint may still not return them."""

    @property
    def name(self) -> str:
        """The model's name in the config: `provider:name`."""
        return f"{self.identity.provider}:{self.identity.model}"


def request_parameters(config: ModelConfig) -> dict[str, object]:
    """Return the request parameters; those that are not configured are omitted."""
    chosen = {
        "temperature": config.temperature,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
        "extra": config.extra or None,
    }
    sent = {name: value for name, value in chosen.items() if value is not None}
    return {"max_tokens": config.max_tokens, "structured": config.structured, **sent}


def public_endpoint(url: str) -> str:
    """Return a URL without its possibly secret parts: user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


FinishReason = Literal["stop", "length", "refusal", "content_filter"]
"""Why an answer ended, the same for all providers: only `stop` is a complete answer."""


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """The options of one request."""

    schema: Mapping[str, object]
    """The strict JSON schema of the answer; empty for free text."""
    name: str
    """The schema's name in requests."""
    max_tokens: int
    method: Method = "text"
    """How the endpoint is asked to follow the schema."""
    plain_limit: bool = True
    """Whether the token limit is called `max_tokens`, if a protocol has several names for it."""
    draw: int = 0
    """The number of the draw, for models with recorded answers."""
    logprobs: int = 0
    """How many of the most probable tokens to return at each position; 0: none."""


NO_KEY = "no-key-needed"
"""Sent to a user's own endpoint without a key, because the SDKs require one."""
SHORTEST_KEY = 16
"""The fewest characters of a key that counts as secret: a shorter one, such as `test`, is a
placeholder and may be a word of an answer."""


def find_api_key(config: ModelConfig, env: Mapping[str, str]) -> str:
    """Return a model's key.

    Raises:
        CredentialError: there is none for a public endpoint, or it cannot be sent.
    """
    name = config.key_variable
    key = env.get(name, "").strip()
    if not key and config.base_url is None:
        raise CredentialError(
            f"{config.model} needs a key, but {name} is not set",
            where=f"environment variable {name}",
            hint="export the variable or set it in .env; for a local server, set base_url instead",
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise CredentialError(
            f"the key in {name} contains invalid characters, such as a line break or a space",
            where=f"environment variable {name}",
            hint="copy the key again: it must be one line of ASCII letters, digits and symbols",
        )
    return key or NO_KEY


def mask_key(value: object, key: str) -> object:
    """Return a server's value with the key masked in texts and lists of texts."""
    if len(key) < SHORTEST_KEY:
        return value
    if isinstance(value, str):
        return value.replace(key, "***")
    if isinstance(value, Mapping):
        return {name: mask_key(inner, key) for name, inner in value.items()}
    return [mask_key(inner, key) for inner in value] if isinstance(value, list) else value


class Closable(Protocol):
    """Something that holds connections."""

    async def close(self) -> None:
        """Close the shared clients."""
        ...


C = TypeVar("C", bound=Closable)
_Clients = dict[Hashable, Closable]
_OPEN_CLIENTS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = WeakKeyDictionary()


def share_client(key: Hashable, make: Callable[[], C]) -> C:
    """Return the running loop's client for a key, creating it at the first call.

    Args:
        key: What identifies the client: its class, endpoint, key and all other settings.
        make: Creates the client.
    """
    clients = _OPEN_CLIENTS.setdefault(asyncio.get_running_loop(), {})
    if key not in clients:
        clients[key] = make()
    return cast("C", clients[key])


async def close_models() -> None:
    """Close the connections of the running loop's models; they reopen at the next call."""
    for client in _OPEN_CLIENTS.pop(asyncio.get_running_loop(), {}).values():
        await client.close()


MOST_TOKENS: Final = 20_000_000
"""The most tokens of one call: twice the longest advertised context (Llama 4 Scout, 10 million).
Sums stay below 2**63 for 460 billion calls."""
THOUGHTS_FACTOR: Final = 4
"""The largest plausible ratio of counted tokens to the token limit: some models exclude thoughts
from the limit (own choice, twice the factor after a truncated answer)."""
IMPOSSIBLE_COUNT: Final = "impossible_count"
"""The metadata of an answer with an impossible token count."""


class ImpossibleCount(str):
    """Why a token count is impossible, in place of the count."""

    __slots__ = ()


def is_count(value: object) -> bool:
    """Return whether a value is a whole number of tokens from 0 to `MOST_TOKENS`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return False
    return 0 <= value <= MOST_TOKENS


def find_impossible_count(
    usage: "UsageMetadata", *, prompt_bytes: int, max_tokens: int
) -> ImpossibleCount | None:
    """Return which token count is impossible for a request, if any."""
    prompt, completion = usage["input_tokens"], usage["output_tokens"]
    if prompt > prompt_bytes + FRAMING_BYTES:
        return ImpossibleCount(f"{prompt} prompt tokens for {prompt_bytes} bytes")
    if completion > THOUGHTS_FACTOR * max_tokens:
        return ImpossibleCount(f"{completion} completion tokens, with a maximum of {max_tokens}")
    return None


def clamp_count(tokens: int) -> int:
    """Return a stored, unchecked count, limited to the possible range."""
    return min(max(tokens, 0), MOST_TOKENS)
