"""Applies a price given once in a config to all uses of the model in it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeVar

from pydantic import BaseModel

from coreeval.config.models import ModelConfig, PriceConfig

C = TypeVar("C", bound=BaseModel)
_Endpoint = tuple[str, str | None]
"""A model's name and base URL: another server may charge another price for the same name."""


def share_prices(config: C) -> C:
    """Return a config in which models without a price get that of the same model at the same URL.

    If the config gives such a model several prices, none of them is shared.
    """
    given = defaultdict[_Endpoint, list[PriceConfig]](list)
    for model in _iter_models(config):
        if model.price is not None:
            given[_endpoint(model)].append(model.price)
    shared = {name: prices[0] for name, prices in given.items() if _are_same(prices)}
    filled = _fill(config, shared)
    assert isinstance(filled, type(config))
    return filled


def _are_same(prices: list[PriceConfig]) -> bool:
    return all(price == prices[0] for price in prices)


def _endpoint(model: ModelConfig) -> _Endpoint:
    return model.model, model.base_url


def _iter_models(value: object) -> Iterator[ModelConfig]:
    if isinstance(value, ModelConfig):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _iter_models(one)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _iter_models(getattr(value, name))


def _fill(value: object, shared: Mapping[_Endpoint, PriceConfig]) -> object:
    if isinstance(value, ModelConfig):
        price = shared.get(_endpoint(value)) if value.price is None else None
        return value.model_copy(update={"price": price}) if price else value
    if isinstance(value, tuple):
        return tuple(_fill(one, shared) for one in value) if any(_iter_models(value)) else value
    if isinstance(value, BaseModel):
        before = {name: getattr(value, name) for name in type(value).model_fields}
        after = {name: _fill(one, shared) for name, one in before.items()}
        changes = {name: one for name, one in after.items() if one != before[name]}
        return value.model_copy(update=changes) if changes else value
    return value
