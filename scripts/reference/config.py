"""The tables of docs/config.md: a row for each key, from the models that read a config.

The page is written by hand around them. A table stands between `<!-- keys: CLASS -->` and
`<!-- end -->`. What a key means is the docstring below the field of its model; its default, bounds
and allowed values are those that the model checks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from coreeval.agents.safety import DEFAULT_POLICY
from coreeval.config import Config, ItemConfig, SeriesConfig
from coreeval.config.base import MOST
from coreeval.config.run import SafetyConfig
from coreeval.schema import Policy
from scripts.reference.markdown import prose, table
from scripts.reference.source import read_field_docs

_TABLE = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_ROOTS = (Config, ItemConfig, SeriesConfig)


def fill_page(page: str) -> str:
    """Return the page with all tables as the models are now.

    Raises:
        KeyError: the page asks for a model that no config has.
    """
    return _TABLE.sub(lambda found: f"{found[1]}\n{list_keys(found[2])}\n\n{found[3]}", page)


@cache
def find_models() -> Mapping[str, type[BaseModel]]:
    """Return all models of configs by name: the roots, and those that occur in their fields."""
    return {model.__name__: model for root in _ROOTS for model in _iter_models(root)}


def _iter_models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for part in _iter_parts(field.annotation):
            yield from _iter_models(part)


def _iter_parts(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _iter_parts(part)


def list_keys(name: str) -> str:
    """Return the table of the keys that a model adds to those of its base."""
    model = find_models()[name]
    docs, schemas = read_field_docs(model), model.model_json_schema()["properties"]
    own = (key for key in model.model_fields if key in model.__annotations__)
    rows = [
        (
            f"`{key}`",
            _format_default(key, model),
            _describe(docs[key], schemas[key], model.model_fields[key]),
        )
        for key in own
    ]
    return table(("key", "default", "meaning"), rows)


def _format_default(key: str, model: type[BaseModel]) -> str:
    field = model.model_fields[key]
    if model is SafetyConfig:
        return f"`{dict(DEFAULT_POLICY)[key]}`"  # type: ignore[index]  # its keys are the flags
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    return "not set" if value is None else f"`{_to_yaml(value)}`"


def _to_yaml(value: object) -> str:
    """Return a default as a config has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_to_yaml, value))}]"
    return str(getattr(value, "name", value))


def _describe(doc: str, schema: Mapping[str, Any], field: FieldInfo) -> str:
    """Return what a key means, with the values that are allowed."""
    text = re.sub(r"[;.]\s+None: ", ". Not set: ", prose(doc))
    variants = list(_iter_variants(schema))
    said = [_list_values(variants, text), _list_bounds(variants)]
    return " ".join([text, *filter(None, said)])


def _iter_variants(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of the alternatives of a value; of a list, those of its elements too."""
    yield schema
    for each in schema.get("anyOf", ()):
        yield from _iter_variants(each)
    if isinstance(schema.get("items"), dict):
        yield from _iter_variants({**schema["items"], "is_item": True})


def _list_values(variants: Iterable[Mapping[str, Any]], text: str) -> str:
    """Return the values that a key takes, unless its description names them all.

    The page itself names the policies, which are the same for all flags.
    """
    values = [
        value
        for each in variants
        for value in each.get("enum", [each["const"]] if "const" in each else ())
        if each.get("enum") != list(get_args(Policy))
    ]
    if all(f"`{value}`" in text or f"{value}:" in text for value in values):
        return ""
    *others, last = (f"`{value}`" for value in values)
    return f"Values: {', '.join(others)} or {last}." if others else ""


def _list_bounds(variants: Iterable[Mapping[str, Any]]) -> str:
    """Return the bounds of a number that a user may meet."""
    for each in variants:
        low, high = each.get("minimum"), each.get("maximum")
        bounded = high is not None and high < MOST
        if each.get("is_item") or not isinstance(low, int | float):
            continue
        if bounded:
            return f"From {low:,g} to {high:,g}."
        return f"At least {low:g}." if low > 1 else ""
    return ""
