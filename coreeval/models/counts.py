"""Which counts of tokens an endpoint can have meant."""

import math
from typing import Final

MOST_TOKENS: Final = 20_000_000
"""Tokens of one call: twice the longest context that a model is sold with (Llama 4 Scout, 10
million). Sums of so many stay below 2**63 for 460 billion calls."""
IMPOSSIBLE_COUNT: Final = "impossible_count"
"""What an answer's metadata has where its tokens cannot have been counted as they were told."""


class ImpossibleCount(str):
    """Why tokens cannot have been counted so, in place of the count."""

    __slots__ = ()


def is_count(value: object) -> bool:
    """Tell whether a value is a whole number of tokens from 0 to `MOST_TOKENS`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return False
    return 0 <= value <= MOST_TOKENS


def possible_count(tokens: int) -> int:
    """Return a count that was stored before counts were checked, within what is possible."""
    return min(max(tokens, 0), MOST_TOKENS)
