"""Arguments of public functions, checked before anything is read or computed."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from typing import Final, TypeVar

from coreeval.errors import UsageError, suggest_name

Choice = TypeVar("Choice", bound=str)
Day = str | date
"""A day or a moment: 2026-10-05, or a Python date."""
LARGEST: Final = 1e9
"""The largest number that any argument accepts."""
LARGEST_SEED: Final = 2**32 - 1
MOST_DAYS_BACK: Final = 36_500
"""The most days that an argument goes back: a hundred years."""
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
    raise UsageError(
        f"{given!r} is not a valid {name}",
        where=name,
        hint=suggest_name(str(given), known, f"one of {', '.join(known)}"),
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


def parse_language(code: str, option: str) -> str:
    """Return a language code after checking it.

    Raises:
        UsageError: it is not an ISO 639-1 code.
    """
    from coreeval.languages import check_language

    try:
        return check_language(code)
    except ValueError as error:
        raise UsageError(str(error), where=option) from None


def parse_moment(given: Day | None, option: str) -> datetime | None:
    """Return a moment in UTC; without an offset, the given time is UTC.

    Raises:
        UsageError: it is not an ISO 8601 date or time.
    """
    from coreeval.config.dates import as_utc

    if given is None:
        return None
    try:
        return as_utc(datetime.fromisoformat(str(given)))
    except ValueError:
        raise _not_a("date", str(given), option) from None


def parse_day(given: Day | None, option: str) -> datetime | None:
    """Return the start of a day in UTC.

    Raises:
        UsageError: it is not an ISO 8601 date.
    """
    if given is None:
        return None
    try:
        day = date.fromisoformat(given) if isinstance(given, str) else given
        return datetime.combine(day, time(), UTC)
    except ValueError:
        raise _not_a("day", str(given), option) from None


def _not_a(what: str, given: str, option: str) -> UsageError:
    return UsageError(f"{given!r} is not a {what}", where=option, hint="write it as 2026-10-05")
