import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa  # type: ignore[import-untyped]

from coreeval.tools.gdelt.index.pages import make_keys
from coreeval.tools.gdelt.index.stories import MIN_JACCARD, SPAN, make_stories
from coreeval.tools.gdelt.words import search_keys
from tests.tools.gdelt.index.part_samples import functions

START = datetime(2026, 6, 10, tzinfo=UTC)


def hours(count: float) -> datetime:
    return START + timedelta(hours=count)


def test_near_duplicates_share_the_earliest_member() -> None:
    items = [
        (hours(5), "US Tariffs on Heavy Truck Imports to Begin Nov. 1, Says Trump"),
        (hours(0), "Trump Says US Tariffs on Heavy Truck Imports to Begin Nov. 1"),
        (hours(1), "Gold rises to a two-month peak"),
        (hours(2), "Gold rises to a two-month peak | The Daily"),
    ]
    assert cluster(items) == [1, 1, 2, 2]


def test_a_story_does_not_outlast_two_days() -> None:
    title = "Markets close higher on strong bank earnings"
    assert cluster([(hours(at), title) for at in (0, 40, 50, 97)]) == [0, 0, 2, 2]


def test_short_titles_must_be_equal() -> None:
    items = [
        (hours(0), "Oil price"),
        (hours(1), "Oil"),
        (hours(2), "The oil prices"),
        (hours(3), ""),
    ]
    assert cluster(items) == [0, 1, 0, 3]


def test_no_pair_is_missed() -> None:
    """The index must find what comparing every title with every leader finds."""
    words = [f"word{number}" for number in range(30)]
    source = random.Random(7)
    items = [
        (hours(source.uniform(0, 90)), " ".join(source.sample(words, source.randint(3, 7))))
        for _ in range(400)
    ]
    assert cluster(items) == _slow(items)


def _slow(items: list[tuple[datetime, str]]) -> list[int]:
    sets = [frozenset(search_keys(title)) for _, title in items]
    result = list(range(len(items)))
    leaders: list[int] = []
    for at in sorted(range(len(items)), key=lambda index: (items[index][0], index)):
        for leader in leaders:
            same = len(sets[leader] & sets[at]) >= MIN_JACCARD * len(sets[leader] | sets[at])
            if same and items[at][0] - items[leader][0] <= SPAN:
                result[at] = leader
                break
        else:
            leaders.append(at)
    return result


def cluster(items: list[tuple[datetime, str]]) -> list[int]:
    """Return for each (time, title) the place of its story's leader."""
    pages = pa.table(
        {
            "n": pa.array(range(len(items)), pa.int32()),
            "page": pa.array(range(len(items)), pa.uint64()),
            "headline": [title for _, title in items],
            "snippet": [""] * len(items),
            "own": [True] * len(items),
            "dropped": pa.nulls(len(items), pa.string()),
            "published": [int(time.timestamp()) for time, _ in items],
        }
    )
    with functions() as database:
        database.register("pages", pages)
        make_keys(database)
        make_stories(database)
        leader = dict(database.execute("SELECT n, leader FROM stories").fetchall())
    return [leader.get(at, at) for at in range(len(items))]
