"""A model for one role: which, how it is asked, and what it charges."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, Field, JsonValue, model_validator

from coreeval.config.secrecy import PlainUrl, VariableName
from coreeval.schema import Value

Method = Literal["json_schema", "function_calling", "json_mode", "text"]
METHODS: tuple[Method, ...] = get_args(Method)
"""Ways to have a model keep to a schema, the strictest first."""


def _finite(values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuse numbers that JSON has no word for: they would be sent as null."""
    try:
        json.dumps(values, allow_nan=False)
    except ValueError:
        raise ValueError("JSON has no word for .nan and .inf") from None
    return values


_RESERVED: Final[Mapping[str, tuple[str, ...]]] = {
    "name the model in `model`": ("model", "model_name", "model_id", "models"),
    "what is asked is written by the roles (docs/prompts.md)": (
        *("messages", "input", "prompt", "contents"),
        *("system", "instructions", "system_instruction"),
    ),
    "set `max_tokens` of the model, which the budget counts with": (
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"),
        *("max_tokens_to_sample", "max_length", "num_predict"),
    ),
    "the budget pays for one answer to a request": (
        *("n", "best_of", "candidate_count", "num_return_sequences", "num_generations"),
    ),
    "answers are read whole": ("stream", "streaming", "stream_options"),
    "set `structured` of the model": (
        *("tools", "tool_choice", "functions", "function_call", "mcp_servers"),
        *("response_format", "response_schema", "response_mime_type"),
    ),
}
"""What is no further parameter, in each provider's words, by what to do instead."""
_INSTEAD: Final = {
    name.replace("_", ""): instead for instead, names in _RESERVED.items() for name in names
}
_CARRIERS: Final = frozenset(
    ("extrabody", "modelkwargs", "generationconfig", "config", "options", "parameters")
)
"""Mappings whose keys become parameters of the request, without their underscores."""


def _further(values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuse parameters that CoreEval sends itself: the budget and the checks stand on them."""
    for name, instead in _reserved_in(values):
        raise ValueError(f"{name} cannot be set here: {instead}")
    return values


def _reserved_in(values: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield the names that are not free, with what to do instead."""
    for name, value in values.items():
        plain = name.strip().lower().replace("_", "").replace("-", "")
        if plain in _INSTEAD:
            yield name, _INSTEAD[plain]
        elif plain in _CARRIERS and isinstance(value, dict):
            yield from ((f"{name}.{inner}", instead) for inner, instead in _reserved_in(value))


Dollars = Annotated[float, Field(ge=0, le=1e9)]
"""For a million tokens: no sum of such prices is beyond what a float can hold."""


class PriceConfig(Value):
    """What a model charges, in US dollars for a million tokens."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    """Of prompt tokens that the provider had in its cache; like others where it is not told."""
    cache_write: Dollars | None = None
    """Of prompt tokens that the provider was asked to keep; like others where it is not told."""
    batch_input: Dollars | None = None
    batch_output: Dollars | None = None


class ModelConfig(Value):
    """A model for one role: `provider:name` and its parameters."""

    model: str
    base_url: PlainUrl | None = None
    """Without user, password or query: keys come from the environment."""
    temperature: float | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 2048
    seed: int | None = None
    reasoning_effort: str | None = None
    structured: Method | Literal["auto"] = "auto"
    """`auto`: the strictest way that the endpoint takes, found out once and remembered."""
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    api_key_env: VariableName | None = None
    """Name of the environment variable that holds the key."""
    ca_file: str | None = None
    """PEM file of the authorities whose certificates the endpoint may show, and no others."""
    price: PriceConfig | None = None
    """Comes before the built-in price and the one in `run.prices`."""
    max_in_flight: Annotated[int, Field(ge=1)] | None = None
    """Most requests at a time; `run.concurrency` where it is not told."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    tokens_per_minute: Annotated[float, Field(gt=0)] | None = None
    extra: Annotated[dict[str, JsonValue], AfterValidator(_finite), AfterValidator(_further)] = {}
    """Further parameters, sent as they are; none that CoreEval sends itself."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"model": value} if isinstance(value, str) else value

    @property
    def provider(self) -> str:
        """The part of `model` before the colon."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The part of `model` after the colon; empty for `offline`."""
        return self.model.partition(":")[2]

    @property
    def key_env(self) -> str:
        """The variable that the key comes from: the provider's own, where none is named."""
        return self.api_key_env or f"{self.provider.upper()}_API_KEY"

    @property
    def by_rules(self) -> bool:
        """True for what is played by rules of our own: no key, no messages, no call store."""
        return self.provider in {"offline", "spacy"}
