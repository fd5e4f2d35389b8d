"""The licences that rows of the user's files state, and whether they allow changes."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_FORBIDDING = re.compile(
    r"no[\W_]{0,9}(?:deriv|modif|reuse)|(?<![a-z])by(?:[\W_]{1,9}nc)?[\W_]{1,9}nd(?![a-z])|"
    r"all[\W_]{1,9}rights[\W_]{1,9}reserved|alle[\W_]{1,9}rechte[\W_]{1,9}vorbehalten|proprietary",
    re.IGNORECASE,
)

_DEEPEST: Final = 4
"""The levels of lists and objects in which a licence is read."""


def stated_licence(row: Mapping[str, object]) -> str:
    """Return all that a row states about its licence: both spellings, lists and objects."""
    told = (row.get(name) for name in ("licence", "license"))
    return "; ".join(text for each in told for text in _iter_texts(each))


def _iter_texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list | dict) and depth < _DEEPEST:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(each, depth + 1)


def forbids_changes(licence: str) -> bool:
    """Return whether a licence forbids derived works."""
    return _FORBIDDING.search(licence) is not None
