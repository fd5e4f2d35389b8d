"""The check of arguments at the public functions: their types, and texts that no file can have.

Each element of a list is checked too.
"""

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
            args, kwargs = _check(function, args, kwargs)
            return await function(*args, **kwargs)
    else:

        @wraps(function)
        def checked(*args: object, **kwargs: object) -> object:
            args, kwargs = _check(function, args, kwargs)
            return function(*args, **kwargs)

    checked.__module__ = "coreeval"
    return checked  # type: ignore[return-value]


def _check(
    function: FunctionType, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Refuse arguments of a wrong type, and texts that no file can have; return the arguments.

    An iterator in place of a list, which can be read once, is returned as a tuple.

    Raises:
        UsageError: an argument is one of these.
    """
    named, hints = _read_signature(function)
    try:
        bound = named.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs  # the call itself says which argument is missing or unknown
    for name, value in bound.arguments.items():
        if isinstance(value, Iterator) and Sequence in _list_kinds(hints[name]):
            value = bound.arguments[name] = tuple(value)
        if defect := _find_defect(name, value, hints[name]):
            raise UsageError(defect, where=f"coreeval.{function.__name__}()")
    return bound.args, bound.kwargs


@cache
def _read_signature(function: FunctionType) -> tuple[Signature, Mapping[str, object]]:
    return signature(function), get_type_hints(function)


def _find_defect(name: str, given: object, hint: object) -> str:
    """Return why a value is no argument with this annotation; empty if it is one."""
    kinds = list(dict.fromkeys(_list_kinds(hint)))
    if all(kind in _WORDS or isinstance(kind, type) for kind in kinds) and not any(
        _is_of(given, kind) for kind in kinds
    ):
        known = [_WORDS.get(kind, getattr(kind, "__name__", "")) for kind in kinds]
        return f"{name} must be {' or '.join(known)}, not {type(given).__name__}"
    if problem := _find_unstorable(given):
        return f"{name} {problem}"
    return next(filter(None, _find_in_list(name, given, hint)), "")


def _find_in_list(name: str, given: object, hint: object) -> Iterator[str]:
    """Yield what is wrong with each element of a list; an empty text if nothing is."""
    inner = next((get_args(each)[0] for each in _split(hint) if get_origin(each) is Sequence), None)
    if inner is not None and _is_of(given, Sequence):
        for at, each in enumerate(cast("Iterable[object]", given)):
            yield _find_defect(f"{name}[{at}]", each, inner)
    elif isinstance(given, list | tuple):
        for at, each in enumerate(given):
            if problem := _find_unstorable(each):
                yield f"{name}[{at}] {problem}"


def _list_kinds(hint: object) -> Iterator[object]:
    """Yield the alternatives of an annotation, without the types of their contents."""
    for each in _split(hint):
        origin = get_origin(each)
        if origin is Literal:
            yield from map(type, get_args(each))
        elif getattr(each, "_is_protocol", False) or origin in (Iterable, Callable):
            yield None
        else:
            yield origin or each


def _split(hint: object) -> Iterator[object]:
    """Yield the alternatives of an annotation."""
    if get_origin(hint) in (Union, UnionType):
        for each in get_args(hint):
            yield from _split(each)
    else:
        yield hint


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
