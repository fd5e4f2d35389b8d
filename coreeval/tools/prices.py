"""What models charge: a table with a date and a source for each price, and a user's own on top."""

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path

from pydantic import Field, TypeAdapter

from coreeval.config import AnyConfig, ModelConfig, PriceConfig
from coreeval.tools.sourced import built_in, user_table

MILLION = 1_000_000
FRAMING = 256
"""Tokens that we and a provider may add to each request for its framing, at most."""


class Price(PriceConfig):
    """A price that somebody published."""

    as_of: date
    """Day on which the source said so."""
    source: str = Field(min_length=1)
    """Where it was read."""


def cost(price: PriceConfig, *, prompt: int, cached: int, written: int, completion: int) -> float:
    """Return the US dollars for counted tokens; cached and written ones are part of the prompt."""
    cached_input = price.input if price.cached_input is None else price.cached_input
    cache_write = price.input if price.cache_write is None else price.cache_write
    plain = max(0, prompt - cached - written)
    dollars = plain * price.input + cached * cached_input + written * cache_write
    return (dollars + completion * price.output) / MILLION


def worst_case(price: PriceConfig, *, prompt_bytes: int, max_tokens: int) -> float:
    """Return the most that a request can cost, in US dollars.

    A token stands for a byte at least, so a prompt has no more tokens than bytes, besides what the
    provider adds; and none of them needs be cached.
    """
    dearest = max(price.input, price.cache_write or 0.0)
    return ((prompt_bytes + FRAMING) * dearest + max_tokens * price.output) / MILLION


FREE = PriceConfig(input=0, output=0)
"""What recorded answers cost."""
Prices = Mapping[str, Price]
"""Price by `provider:name`."""
_TABLE = TypeAdapter(dict[str, Price])
_ROW = "a price has input, output (USD for a million tokens), as_of and source"


@cache
def built_in_prices() -> Prices:
    """Return the prices that come with the package."""
    return built_in("prices.yaml", _TABLE)


def load_prices(path: Path | None = None) -> Prices:
    """Return the built-in prices with a user's file on top.

    Raises:
        ConfigError: the file cannot be read, or a price in it lacks its date or source.
    """
    own = user_table(path, _TABLE, hint=_ROW) if path else {}
    return {**built_in_prices(), **own}


# -- of a run -------------------------------------------------------------------------------------


def prices_of(config: AnyConfig) -> Prices:
    """Return the prices that hold for a run.

    Raises:
        ConfigError: the file that the config names cannot be used.
    """
    return load_prices(Path(config.run.prices) if config.run.prices else None)


def price_of(model: ModelConfig, prices: Prices) -> PriceConfig | None:
    """Return what a model charges, if that is known: its own config comes first."""
    unlisted = FREE if model.provider == "replay" else None
    return model.price or prices.get(model.model) or unlisted
