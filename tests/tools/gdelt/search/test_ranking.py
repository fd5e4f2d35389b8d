"""What the arrays do must be what the rules say, article by article."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from coreeval.tools.gdelt.parts.index import Articles
from coreeval.tools.gdelt.search.finding import BY_NAME, IN_TEXT, IN_TITLE, Found
from coreeval.tools.gdelt.search.ranking import CAP, RECENCY, best

END, DECAY = 10_000, 3_000.0
Find = tuple[int, float, float]


@pytest.mark.parametrize("seed", range(20))
def test_any_finds(seed: int) -> None:
    source = random.Random(seed)
    articles = articles_of(source, 300)
    finds: list[Find] = [
        (source.randrange(300), source.choice([0.4, 0.7, 1.0]),
         source.choice([IN_TITLE, IN_TEXT, BY_NAME]))
        for _ in range(source.choice([1, 20, 400, 2 * CAP]))
    ]  # fmt: skip
    for k in (1, 2, 7, 400):
        assert best(parts_of(finds), articles, END, DECAY, k) == slow(finds, articles, k)


def test_nothing_found() -> None:
    assert best([], articles_of(random.Random(1), 3), END, DECAY, 5) == []
    assert best(parts_of([]), articles_of(random.Random(1), 3), END, DECAY, 5) == []


def articles_of(source: random.Random, count: int) -> Articles:
    """Return articles of which most are told by several, and some have equal scores."""
    story = [source.choice([0, *range(1, 30)]) for _ in range(count)]
    return Articles(
        published=np.array([source.randrange(0, END, 1000) for _ in range(count)], np.int64),
        precision=np.zeros(count, np.uint8),
        prior=np.array([source.randrange(4) / 8 for _ in range(count)], np.float32),
        story=np.array(story, np.uint32),
        teller=np.array([source.randrange(1, 4) if one else 0 for one in story], np.uint32),
    )


def parts_of(finds: Sequence[Find]) -> list[Found]:
    """Return finds as two parts have them."""
    middle = len(finds) // 2
    return [
        Found(np.array([find[0] for find in some], np.int64),
              np.array([find[1] for find in some]), np.array([find[2] for find in some]))
        for some in (finds[:middle], finds[middle:])
    ]  # fmt: skip


def slow(finds: Sequence[Find], articles: Articles, k: int) -> list[int]:
    def score(find: Find) -> float:
        article, _, match = find
        fresh = math.exp((int(articles.published[article]) - END) / DECAY)
        return match + RECENCY * fresh + float(articles.prior[article])

    high = sorted(((whole, score((at, whole, match))) for at, whole, match in finds), reverse=True)
    least = high[min(CAP, len(high)) - 1]
    kept: dict[int, tuple[float, float]] = {}
    for find in finds:
        whole, points = find[1], score(find)
        if (whole, points) >= least:
            before = kept.get(find[0], (0.0, 0.0))
            kept[find[0]] = max(before[0], whole), max(before[1], points)
    order = sorted(kept, key=lambda at: (-kept[at][0], -kept[at][1], -articles.published[at], at))
    chosen: list[int] = []
    told = set()
    for at in order:
        story = int(articles.story[at])
        if story and story in told:
            continue
        told.add(story)
        others = [other for other in order if story and int(articles.story[other]) == story
                  and articles.teller[other] != articles.teller[at]]  # fmt: skip
        chosen += [at, *others[:1]]
    return chosen[:k]
