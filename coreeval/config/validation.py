"""Turns pydantic's errors into one message with all mistakes, in terms of the user's keys."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from coreeval.config.user_files import find_line
from coreeval.config.value_errors import describe_value_error
from coreeval.errors import ConfigError, suggest_name

MOST_SHOWN = 20
"""The most mistakes of one file that a message lists."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One mistake in a file of settings."""

    place: tuple[str, ...]
    """The key path as the user wrote it."""
    message: str
    hint: str = ""


def explain_validation_error(
    error: ValidationError,
    model: type[BaseModel],
    where: str,
    *,
    docs: str = "coreeval docs config",
) -> ConfigError:
    """Return one message about all mistakes in a file, with their lines if `where` is its path.

    The page `docs` describes its keys.
    """
    mistakes = list(_find_mistakes(error, model))
    at_lines = [find_line(Path(where), each.place) for each in mistakes[:MOST_SHOWN]]
    general = f"{docs} lists every key and its values"
    if len(mistakes) == 1:
        (only,) = mistakes
        at = f"{where}, line {at_lines[0]}" if at_lines[0] else where
        return ConfigError(only.message, where=at, hint=only.hint or general)
    lines = [
        (f"  line {line}: " if line else "  ")
        + each.message
        + (f": {each.hint}" if each.hint else "")
        for each, line in zip(mistakes, at_lines, strict=False)
    ]
    more = [f"  and {len(mistakes) - MOST_SHOWN} more"] * (len(mistakes) > MOST_SHOWN)
    told = "\n".join([f"{len(mistakes)} mistakes:", *lines, *more])
    return ConfigError(told, where=where, hint=general)


def _find_mistakes(error: ValidationError, model: type[BaseModel]) -> Iterator[Mistake]:
    """Yield the mistakes, one for each key.

    A key that is missing because it is misspelt is reported once, as the unknown key. A value of a
    union has an error for each of its types; only the first one is reported.
    """
    details = error.errors()
    unknown = [_explain_unknown(one, model) for one in details if one["type"] == _UNKNOWN]
    meant = {(*each.place[:-1], near) for each, near in unknown if near}
    told = list[tuple[str, ...]]()
    for mistake in [*(each for each, _ in unknown), *map(_explain_value, details)]:
        place = mistake.place
        if place in meant or any(_overlap(place, other) for other in told):
            continue
        told.append(place)
        yield mistake


_UNKNOWN = "extra_forbidden"


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two locations are equal, or one is inside the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _explain_unknown(details: ErrorDetails, model: type[BaseModel]) -> tuple[Mistake, str]:
    """Return the mistake for an unknown key, and the likely intended key; "" if none is similar."""
    *above, key = details["loc"]
    place = (*_key_path(above), str(key))
    known = _list_keys(model, place[:-1])
    near = next(iter(difflib.get_close_matches(place[-1], known, n=1, cutoff=0.5)), "")
    hint = f"did you mean {near!r}?" if near else f"known keys: {', '.join(known)}"
    return Mistake(place=place, message=f"unknown key {'.'.join(place)!r}", hint=hint), near


def _explain_value(details: ErrorDetails) -> Mistake:
    place = _key_path(details["loc"])
    message = describe_value_error(details)
    at = ".".join(place)
    hint = _suggest_value(details)
    return Mistake(place=place, message=f"{at}: {message}" if at else message, hint=hint)


def _suggest_value(details: ErrorDetails) -> str:
    """Return the allowed value that is most similar to an invalid one; "" if none is similar."""
    said, permitted = details["input"], str(details.get("ctx", {}).get("expected", ""))
    if details["type"] != "literal_error" or not isinstance(said, str):
        return ""
    choices = [part for part in permitted.split("'") if part.strip(" ,") not in ("", "or")]
    return suggest_name(said.lower(), choices, "")


def _key_path(place: Sequence[int | str]) -> tuple[str, ...]:
    """Return pydantic's location as the keys that the user wrote, without pydantic's own parts."""
    parts = [str(part) for part in place]
    return tuple(part for part in parts if "[" not in part and part not in _UNION_TAGS)


_UNION_TAGS = {"datetime", "literal", "dict", "list", "float"}
"""Parts that pydantic adds to the location of a value of a union type."""


def _list_keys(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Return the field names of the model found at `path`."""
    for part in path:
        if part.isdecimal():
            continue
        field = model.model_fields.get(part)
        inner = field and _find_model(field.annotation)
        if not inner:
            break
        model = inner
    return sorted(model.model_fields)


def _find_model(annotation: object) -> type[BaseModel] | None:
    """Return the pydantic model inside an annotation such as `Model | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inside = (_find_model(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in inside if model), None)
