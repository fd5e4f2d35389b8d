"""Random orders in which nothing stays in its place."""

from collections import Counter
from collections.abc import Sequence
from random import Random

TRIES = 1000
"""Random orders that are tried; of distinct texts one in e is right."""


def derangement(texts: Sequence[str], *, seed: int, key: str) -> list[int] | None:
    """Return an order of the texts' places in which no place has its own text again.

    Equal texts count as one, so a place gets no text that it had. Drawn evenly among all such
    orders, unless equal texts make them so rare that groups of equal ones are moved on instead; the
    same for the same seed and key. None where there is no such order.
    """
    most = max(Counter(texts).values(), default=1)
    if 2 * most > len(texts):
        return None
    random, order = Random(f"{seed}:{key}"), list(range(len(texts)))
    for _ in range(TRIES):
        random.shuffle(order)
        if all(texts[place] != texts[came] for place, came in enumerate(order)):
            return order
    grouped = sorted(order, key=texts.__getitem__)
    moved = dict(zip(grouped, grouped[most:] + grouped[:most], strict=True))
    return [moved[place] for place in range(len(texts))]
