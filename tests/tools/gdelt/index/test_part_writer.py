import random
from collections import defaultdict

import numpy as np

from coreeval.tools.gdelt.index.part_writer import CROWD, DAY_S, DEEPEST, compute_depths


def test_only_crowds_are_ranked_by_day() -> None:
    source = random.Random(3)
    articles = 900
    published = sorted(source.randrange(3 * DAY_S) for _ in range(articles))
    prior = [source.randrange(5) / 8 for _ in range(articles)]
    told_often = [source.random() < 0.3 for _ in range(articles)]
    mentions = sorted(
        {(name, article) for name, share in enumerate((0.9, 0.01, 0.15, 0.3))
         for article in range(articles) if source.random() < share}
    )  # fmt: skip
    packed = np.array([(name << 32) + (article << 1) + 1 for name, article in mentions], np.uint64)
    found = compute_depths(
        packed, np.array(published), np.array(prior, np.float32), np.array(told_often)
    ).tolist()

    days = defaultdict(list)
    for name, article in mentions:
        place = told_often[article], -prior[article], article
        days[name, published[article] // DAY_S].append(place)
    expected = []
    for name, article in mentions:
        day = sorted(days[name, published[article] // DAY_S])
        before = day.index((told_often[article], -prior[article], article))
        expected.append(min(before, DEEPEST) if len(day) > CROWD else 0)
    assert found == expected
    assert {len(day) > CROWD for day in days.values()} == {True, False}


def test_no_mentions() -> None:
    empty = np.zeros(0)
    none = compute_depths(np.zeros(0, np.uint64), empty.astype(np.int64), empty.astype(np.float32),
                  empty.astype(bool))  # fmt: skip
    assert none.tolist() == []
