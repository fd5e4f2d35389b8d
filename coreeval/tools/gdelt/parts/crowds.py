"""Where very many articles of one day name somebody: how each would be ranked among them."""

import numpy as np
from numpy.typing import NDArray

from coreeval.tools.gdelt.parts.postings import KEY, Flags

CROWD = 64
"""Articles of one day that name somebody, from which on they are ranked beforehand."""
TELLINGS = 4
"""Articles of a story that count among the best of their day; a search takes two of them."""
DEEPEST = 255
DAY_S = 86_400


def depths(
    packed: NDArray[np.uint64],
    published: NDArray[np.int64],
    prior: NDArray[np.float32],
    told_often: Flags,
) -> NDArray[np.uint8]:
    """Return how many mentions of its name are before each on its day, 0 where there is no crowd.

    Args:
        packed: Mentions as `name << 32 | article << 1 | flag`, sorted.
        published: Epoch seconds of each article.
        prior: What each article's score has whatever is asked.
        told_often: Whether `TELLINGS` articles tell the same story better.
    """
    name = (packed >> KEY).astype(np.uint32)
    article = packed.astype(np.uint32) >> np.uint32(1)
    day = (published // DAY_S)[article]
    first = np.flatnonzero(
        (np.diff(name, prepend=name[:1]) != 0) | (np.diff(day, prepend=day[:1]) != 0)
    )
    firsts = np.concatenate([[0], first])
    sizes = np.diff(firsts, append=len(packed))
    crowded = sizes > CROWD
    rows = np.flatnonzero(np.repeat(crowded, sizes))
    group = np.repeat(np.arange(np.count_nonzero(crowded)), sizes[crowded])
    among = article[rows]
    order = np.lexsort((among, -prior[among], told_often[among], group))
    before = np.arange(len(rows)) - np.repeat(
        np.cumsum(sizes[crowded]) - sizes[crowded], sizes[crowded]
    )
    found = np.zeros(len(packed), np.uint8)
    found[rows[order]] = np.minimum(before, DEEPEST)
    return found
