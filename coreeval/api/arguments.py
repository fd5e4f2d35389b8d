"""Arguments of public functions, checked before anything is read or computed."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from coreeval.errors import UsageError

Choice = TypeVar("Choice", bound=str)
LARGEST: Final = 1e9
"""The largest number that any argument accepts."""
LARGEST_SEED: Final = 2**32 - 1
FIRST_FEW: Final = 3
"""The default number of samples on which a prompt is tried."""
FEWEST_DRAWS: Final = 100
MOST_DRAWS: Final = 1_000_000
"""The most bootstrap draws and permutations of a test; more would only cost memory."""


def require_choice(name: str, given: Choice, known: Sequence[str]) -> Choice:
    """Return an argument after checking that it is one of several words.

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


def require_number(name: str, given: float, low: float, high: float = LARGEST) -> float:
    """Return an argument after checking that it is a number within inclusive bounds.

    Raises:
        UsageError: it is not a number, or out of bounds.
    """
    if isinstance(given, int | float) and not isinstance(given, bool) and low <= given <= high:
        return given
    raise UsageError(
        f"{given!r} is not a valid {name}", where=name, hint=f"a number from {low:g} to {high:g}"
    )


def require_integer(name: str, given: int, low: int, high: int) -> int:
    """Return an argument after checking that it is a whole number within inclusive bounds.

    Raises:
        UsageError: it is not a whole number, or out of bounds.
    """
    if isinstance(given, int) and not isinstance(given, bool) and low <= given <= high:
        return given
    hint = f"a whole number from {low} to {high}"
    raise UsageError(f"{given!r} is not a valid {name}", where=name, hint=hint)


def require_draws(draws: int) -> int:
    """Return the number of bootstrap draws and permutations.

    Raises:
        UsageError: there are too few or too many, or it is not a whole number.
    """
    return require_integer("draws", draws, FEWEST_DRAWS, MOST_DRAWS)


def require_seed(seed: int) -> int:
    """Return a random seed.

    Raises:
        UsageError: it is not a whole number from 0, or too large.
    """
    return require_integer("seed", seed, 0, LARGEST_SEED)


def budget_overrides(budget_usd: float | None, allow_unpriced: bool) -> Iterator[str]:
    """Yield the config overrides for arguments about money."""
    if budget_usd is not None:
        yield f"run.budget_usd={budget_usd}"
    if allow_unpriced:
        yield "run.allow_unpriced=true"
