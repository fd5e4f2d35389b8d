"""Random orders in which nothing stays in its place."""

from collections import Counter
from collections.abc import Sequence
from random import Random


def derangement(texts: Sequence[str], *, seed: int, key: str) -> list[int] | None:
    """Return an order of the texts' places in which no place has its own text again.

    Equal texts count as one, so a place gets no text that it had. Drawn evenly among all such
    orders; the same for the same seed and key. None where there is no such order.
    """
    if not texts or 2 * max(Counter(texts).values()) > len(texts):
        return None
    random, order = Random(f"{seed}:{key}"), list(range(len(texts)))
    while any(texts[place] == texts[other] for place, other in enumerate(order)):
        random.shuffle(order)
    return order
