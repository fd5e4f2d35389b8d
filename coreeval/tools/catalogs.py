"""Published facts about models, each with a date and a source, such as prices.

The tables are part of the package; a user's own table takes precedence. Rows are found by any
spelling of a model's name: with or without a provider, a host or a date.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from coreeval.config import AnyConfig, ModelConfig, PriceConfig
from coreeval.config.credentials import hide_credentials, refuse_credentials
from coreeval.config.user_files import (
    UNREADABLE_HINT,
    YAML_HINT,
    YamlError,
    describe_unreadable,
    parse_yaml,
    read_text,
)
from coreeval.errors import ConfigError
from coreeval.tools.formatting import format_quantity

Fact = TypeVar("Fact")


def load_built_in_table(file: str, form: TypeAdapter[dict[str, Fact]]) -> Mapping[str, Fact]:
    """Return a table of the package."""
    text = resources.files("coreeval.tools").joinpath(file).read_text(encoding="utf-8")
    return form.validate_python(parse_yaml(text))


def load_user_table(
    path: Path, form: TypeAdapter[dict[str, Fact]], *, hint: str
) -> Mapping[str, Fact]:
    """Return a user's table.

    Raises:
        ConfigError: the file cannot be read, a row does not have the form described by `hint`, or
            it seems to contain a credential.
    """
    try:
        raw = parse_yaml(read_text(path)) or {}
        rows = list(raw.values()) if isinstance(raw, dict) else raw
        refuse_credentials(rows, where=str(path))
        return form.validate_python(raw)
    except (OSError, UnicodeDecodeError) as error:
        told = f"cannot read the file: {describe_unreadable(error)}"
        raise ConfigError(told, where=str(path), hint=UNREADABLE_HINT) from None
    except YamlError as error:
        problem = hide_credentials(str(error))
        raise ConfigError(f"this is not YAML: {problem}", where=str(path), hint=YAML_HINT) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, said = ".".join(map(str, first["loc"])), str(first["msg"])
        message = f"{place}: {said.removeprefix('Value error, ')}"
        raise ConfigError(message, where=str(path), hint=hint) from None


MOST_SUGGESTIONS = 3
"""The most suggestions for an unknown name."""
_ALIKE = 0.6
"""The least share of matching characters of two similar names."""
_PINNED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}(?:-\d{2})?|latest|preview)$")
"""The ending of a name that pins a model to a version."""
_DATED = re.compile(r"(.+)[-@](20\d{2})-?([01]\d)(?:-?([0-3]\d))?")


def bare_name(model: str) -> str:
    """Return a model's name in lower case, without its provider and host."""
    provider, colon, name = model.partition(":")
    return (name if colon else provider).rpartition("/")[2].lower()


def strip_version(name: str) -> str:
    """Return a name without the part that pins it to a version."""
    return _PINNED.sub("", name)


def split_date(name: str) -> tuple[str, str]:
    """Return a name without the date at its end, and the date: a day, a month, or ""."""
    found = _DATED.fullmatch(name)
    if found is None:
        return name, ""
    base, *parts = found.groups()
    return base, "-".join(part for part in parts if part)


def find_nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that a name may refer to, the likeliest first.

    A dated spelling precedes all others: `openai:gpt-4.1-2025-04-14` is `openai:gpt-4.1`. The
    provider does not matter.
    """
    wanted = bare_name(name)
    by_bare = {bare_name(each): each for each in known}
    plain = strip_version(wanted)
    close = difflib.get_close_matches(wanted, by_bare, n=MOST_SUGGESTIONS, cutoff=_ALIKE)
    begun = [bare for bare in by_bare if plain.startswith(f"{bare}-")]
    ordered = [plain, *close, *sorted(begun, key=len, reverse=True)]
    found = dict.fromkeys(by_bare[bare] for bare in ordered if bare in by_bare)
    return list(found)[:MOST_SUGGESTIONS]


MILLION = 1_000_000
FRAMING_BYTES = 256
"""The most tokens that the request format and the provider add to a request."""


class Price(PriceConfig):
    """A published price."""

    as_of: date
    """The day on which the source stated the price."""
    source: str = Field(min_length=1)
    """The source of the price."""


def cost(price: PriceConfig, *, prompt: int, cached: int, written: int, completion: int) -> float:
    """Return the cost in US dollars; cached and written tokens are part of the prompt."""
    cached_input = price.input if price.cached_input is None else price.cached_input
    cache_write = price.input if price.cache_write is None else price.cache_write
    plain = max(0, prompt - cached - written)
    dollars = plain * price.input + cached * cached_input + written * cache_write
    return (dollars + completion * price.output) / MILLION


def worst_case_cost(price: PriceConfig, *, prompt_bytes: int, max_tokens: int) -> float:
    """Return the most that a request can cost, in US dollars.

    A token is at least one byte, so a prompt has at most as many tokens as bytes, plus what the
    provider adds; it is assumed that none of them are cached.
    """
    dearest = max(price.input, price.cache_write or 0.0)
    return ((prompt_bytes + FRAMING_BYTES) * dearest + max_tokens * price.output) / MILLION


def find_batch_price(price: PriceConfig) -> PriceConfig | None:
    """Return a model's price in batches; None if it is not known.

    Providers differ in the price of cached tokens in batches: a cached token counts as any other
    token of a batch, which is the most that it can cost. Writing to the cache has the same
    discount.
    """
    if price.batch_input is None or price.batch_output is None:
        return None
    share = price.batch_input / price.input if price.input else 1.0
    written = None if price.cache_write is None else price.cache_write * share
    return PriceConfig(input=price.batch_input, output=price.batch_output, cache_write=written)


FREE = PriceConfig(input=0, output=0)
"""The price of answers that this machine computes."""
Prices = Mapping[str, Price]
"""Prices by `provider:name`."""
_TABLE = TypeAdapter(dict[str, Price])
_ROW = "a price needs input and output (both in USD per million tokens), as_of and source"


@cache
def load_built_in_prices() -> Prices:
    """Return the prices of the package."""
    return load_built_in_table(BUILT_IN_FILE, _TABLE)


def load_prices(path: Path | None = None) -> Prices:
    """Return the built-in prices with a user's file on top.

    Raises:
        ConfigError: the file cannot be read, or a price in it lacks its date or source.
    """
    own = load_user_table(path, _TABLE, hint=_ROW) if path else {}
    return {**load_built_in_prices(), **own}


# -- of a run -------------------------------------------------------------------------------------


def load_run_prices(config: AnyConfig) -> Prices:
    """Return the prices that apply to a run.

    Raises:
        ConfigError: the file that the config names cannot be used.
    """
    return load_prices(Path(config.run.prices) if config.run.prices else None)


def find_price(model: ModelConfig, prices: Prices) -> PriceConfig | None:
    """Return a model's price if it is known; the price in its own config takes precedence."""
    unlisted = FREE if model.is_on_this_machine else None
    return model.price or prices.get(model.model) or unlisted


OLD_AFTER_DAYS = 180
"""The age in days from which a price is reported as old: providers publish models and change prices
several times a year."""
BUILT_IN_FILE = "prices.yaml"


def describe_old_prices(
    config: AnyConfig, models: Iterable[ModelConfig], prices: Prices, today: date
) -> list[str]:
    """Return a remark for each price in use that was looked up long ago, except prices in a config.

    Args:
        config: The config, which may name a file of prices.
        models: The models that the run calls.
        prices: The prices that apply.
        today: The day of use.
    """
    found = dict[str, str]()
    for model in models:
        price = find_price(model, prices)
        if not isinstance(price, Price) or (age := (today - price.as_of).days) < OLD_AFTER_DAYS:
            continue
        built_in = load_built_in_prices().get(model.model) == price
        file = BUILT_IN_FILE if built_in or not config.run.prices else Path(config.run.prices).name
        todo = "set run.prices to a file with today's price" if built_in else "update the price"
        found[model.model] = (
            f"the price of {model.model} was looked up on {price.as_of}, "
            f"{format_quantity(age, 'day')} ago ({file}), "
            f"and may have changed: {todo}"
        )
    return list(found.values())
