"""Arguments of public functions, checked before anything is read or computed."""

import difflib
from collections.abc import Sequence
from typing import TypeVar

from coreeval.errors import UsageError

Choice = TypeVar("Choice", bound=str)
Number = TypeVar("Number", int, float)


def require_choice(name: str, given: Choice, known: Sequence[str]) -> Choice:
    """Return an argument that is one of several words.

    Raises:
        UsageError: it is another word.
    """
    if given in known:
        return given
    near = difflib.get_close_matches(str(given), known, n=1)
    raise UsageError(
        f"{given!r} is not a valid {name}",
        where=name,
        hint=f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known)}",
    )


def require_number(name: str, given: Number, low: float, high: float = float("inf")) -> Number:
    """Return an argument that is a number within bounds, both included.

    Raises:
        UsageError: it is not a number, or out of bounds.
    """
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if is_number and low <= given <= high:
        return given
    bounds = f"at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
    raise UsageError(f"{given!r} is not a valid {name}", where=name, hint=f"a number {bounds}")
