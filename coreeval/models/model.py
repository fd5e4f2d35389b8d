"""A model as the rest of the program holds it: something to ask, and what identifies it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from coreeval.config import ModelConfig

if TYPE_CHECKING:
    from coreeval.models.chat import AskedChat


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What of a model decides its answers; part of every call's key."""

    provider: str
    endpoint: str
    model: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A chat model, opened from the config."""

    chat: "AskedChat" = field(repr=False)
    identity: Identity
    config: ModelConfig
    recorded: bool = False
    """Whether its answers were given before: a bad one among them need not be the last."""
    plain_limit: bool = True
    """Whether the longest answer is called `max_tokens`, as far as the endpoint is known."""
    tells_logprobs: bool = False
    """Whether log-probabilities can be asked for in its protocol; the endpoint may have none."""

    @property
    def name(self) -> str:
        """The model as the config spells it: `provider:name`."""
        return f"{self.identity.provider}:{self.identity.model}"


def parameters_of(config: ModelConfig) -> dict[str, object]:
    """Return the parameters that are sent; what is not configured is not sent."""
    chosen = {
        "temperature": config.temperature,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
        "extra": config.extra or None,
    }
    sent = {name: value for name, value in chosen.items() if value is not None}
    return {"max_tokens": config.max_tokens, "structured": config.structured, **sent}


def public_endpoint(url: str) -> str:
    """Return a URL without what may be secret in it: user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
