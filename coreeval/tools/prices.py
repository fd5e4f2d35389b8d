"""What models charge: a table with a date and a source for each price, and a user's own on top."""

import difflib
import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from coreeval.config import Config, ModelConfig, PriceConfig
from coreeval.errors import ConfigError

MILLION = 1_000_000
FRAMING = 256
"""Tokens that we and a provider may add to each request for its framing, at most."""
_NAMED = 3
"""Names that are offered in place of an unknown one."""
_ALIKE = 0.6
"""Share of like characters from which two names are taken for neighbours."""
_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}(?:-\d{2})?|latest|preview)$")
"""What a name ends with that pins a model to a version."""


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


Prices = Mapping[str, Price]
"""Price by `provider:name`."""
_TABLE = TypeAdapter(dict[str, Price])


@cache
def built_in_prices() -> Prices:
    """Return the prices that come with the package."""
    text = resources.files("coreeval.tools").joinpath("prices.yaml").read_text(encoding="utf-8")
    return _TABLE.validate_python(yaml.safe_load(text))


def load_prices(path: Path | None = None) -> Prices:
    """Return the built-in prices with a user's file on top.

    Raises:
        ConfigError: the file cannot be read, or a price in it lacks its date or source.
    """
    if path is None:
        return built_in_prices()
    try:
        own = _TABLE.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"no YAML: {error}", where=str(path)) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=str(path),
            hint="a price has input, output (USD for a million tokens), as_of and source",
        ) from None
    return {**built_in_prices(), **own}


# -- names of which no price is known -----------------------------------------------------------


def prices_of(config: Config) -> Prices:
    """Return the prices that hold for a run.

    Raises:
        ConfigError: the file that the config names cannot be used.
    """
    return load_prices(Path(config.run.prices) if config.run.prices else None)


def price_of(model: ModelConfig, prices: Prices) -> PriceConfig | None:
    """Return what a model charges, if that is known: its own config comes first."""
    return model.price or prices.get(model.model)


def nearest_priced(name: str, prices: Prices) -> list[str]:
    """Return up to three priced names that a name may have been meant for, the likeliest first.

    A dated spelling goes before all others: `openai:gpt-4.1-2025-04-14` is `openai:gpt-4.1`. Who
    serves a model does not matter.
    """
    wanted = _bare(name)
    by_bare = {_bare(known): known for known in prices}
    undated = _DATE.sub("", wanted)
    close = difflib.get_close_matches(wanted, by_bare, n=_NAMED, cutoff=_ALIKE)
    begun = [bare for bare in by_bare if undated.startswith(f"{bare}-")]
    ordered = [undated, *close, *sorted(begun, key=len, reverse=True)]
    found = dict.fromkeys(by_bare[bare] for bare in ordered if bare in by_bare)
    return list(found)[:_NAMED]


def _bare(name: str) -> str:
    """Return a model's name without its provider and its host."""
    return name.partition(":")[2].rpartition("/")[2].lower()
