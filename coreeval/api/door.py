"""The check of arguments at the public functions: their types, and texts that no file can have."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, wraps
from inspect import Signature, iscoroutinefunction, signature
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from coreeval.errors import UsageError

_WORDS: Final[Mapping[object, str]] = {
    str: "a text",
    Path: "a path",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Sequence: "a list",
    Mapping: "a mapping",
    NoneType: "None",
}


@cache
def check_arguments(function: FunctionType) -> FunctionType:
    """Return a function that refuses arguments of other types than its annotations name.

    An argument whose annotation includes a protocol is left to the function. Pickle finds the
    returned function by its public name.
    """
    if iscoroutinefunction(function):

        @wraps(function)
        async def checked(*args: object, **kwargs: object) -> object:
            _check(function, args, kwargs)
            return await function(*args, **kwargs)
    else:

        @wraps(function)
        def checked(*args: object, **kwargs: object) -> object:
            _check(function, args, kwargs)
            return function(*args, **kwargs)

    checked.__module__ = "coreeval"
    return checked  # type: ignore[return-value]


def _check(function: FunctionType, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Refuse arguments of a wrong type, and texts that no file can have.

    Raises:
        UsageError: an argument is one of these.
    """
    named, hints = _read_signature(function)
    try:
        given = named.bind(*args, **kwargs).arguments
    except TypeError:
        return  # the call itself says which argument is missing or unknown
    for name, value in given.items():
        if defect := _find_defect(value, hints[name]):
            raise UsageError(f"{name} {defect}", where=f"coreeval.{function.__name__}()")


@cache
def _read_signature(function: FunctionType) -> tuple[Signature, Mapping[str, object]]:
    return signature(function), get_type_hints(function)


def _find_defect(given: object, hint: object) -> str:
    """Return why a value is no argument with this annotation; empty if it is one."""
    kinds = list(dict.fromkeys(_list_kinds(hint)))
    if all(kind in _WORDS or isinstance(kind, type) for kind in kinds) and not any(
        _is_of(given, kind) for kind in kinds
    ):
        known = [_WORDS.get(kind, getattr(kind, "__name__", "")) for kind in kinds]
        return f"must be {' or '.join(known)}, not {type(given).__name__}"
    texts = given if isinstance(given, list | tuple) else [given]
    return next(filter(None, map(_find_unstorable, texts)), "")


def _list_kinds(hint: object) -> Iterator[object]:
    """Yield the alternatives of an annotation, without the types of their contents."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        for each in get_args(hint):
            yield from _list_kinds(each)
    elif origin is Literal:
        yield from map(type, get_args(hint))
    elif getattr(hint, "_is_protocol", False) or origin in (Iterable, Callable):
        yield None
    else:
        yield origin or hint


def _is_of(given: object, kind: object) -> bool:
    """Return whether a value is of a type, also as a number or a boolean of NumPy."""
    if kind is bool:
        return type(given).__name__ in ("bool", "bool_")
    if kind is int:
        return isinstance(given, Integral) and not isinstance(given, bool)
    if kind is float:
        return isinstance(given, Real | Decimal) and not isinstance(given, bool)
    if kind is Path:
        return isinstance(given, os.PathLike)
    if kind is Sequence:
        return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    return isinstance(given, cast("type", kind))


def _find_unstorable(text: object) -> str:
    """Return why no file can have this name or contain this text; empty for anything else."""
    if not isinstance(text, str | Path):
        return ""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return "contains half a character (a lone surrogate)"
    return "contains a NUL character" if "\0" in str(text) else ""
