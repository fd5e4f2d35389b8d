"""Search and counts over several parts, against the rules applied article by article."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.index import build
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.local import LocalKnowledge
from coreeval.tools.gdelt.words import word_set
from tests.tools.gdelt.index.part_samples import Row, add_rows, row

START = datetime(2026, 5, 20, tzinfo=UTC)
DAYS, A_DAY = 16, 25
WORDS = sorted(
    word_set(
        "ferries farmers bakers pilots miners clerks judges sailors harbours castles bridges "
        "tunnels orchards vineyards glaciers meadows lanterns trumpets carpets kettles"
    )
)
NAMES = [f"{first} {last}" for first in ("Anna", "Boris", "Carla") for last in ("Dorn", "Egger")]
KINDS = ("person", "organisation", "other")
WINDOWS = [
    Window(start=START - timedelta(days=9), end=START + timedelta(days=30)),
    Window(start=START + timedelta(days=3, hours=7), end=START + timedelta(days=12, hours=5)),
]


def rows() -> list[Row]:
    """Return articles that are no copies of each other, so that each is found for itself."""
    source = random.Random(11)
    made = []
    for number in range(DAYS * A_DAY):
        told = source.sample(WORDS, 4)
        seen = START + timedelta(days=number // A_DAY, seconds=source.randrange(86_400))
        names = dict.fromkeys(source.choices(NAMES, weights=range(1, 7), k=source.randrange(4)))
        made.append(
            row(
                f"https://site{number}.example/x",
                f"{' '.join(told)} x{number} y{number} z{number}",
                seen=seen,
                stated=seen,
                names=[(name, source.choice(KINDS)) for name in names],
                snippet=source.choice(WORDS) + " is what the second sentence tells",
            )
        )
    return made


ROWS = rows()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKnowledge]:
    store = tmp_path_factory.mktemp("store")
    add_rows(store, *ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "SMALL_ROWS", 1)
        assert compact(store).parts > 3
    with LocalKnowledge(store, news=store, min_precision="exact") as opened:
        yield opened


def inside(window: Window) -> list[Row]:
    start, end = window.start.timestamp(), window.end.timestamp()
    return [one for one in ROWS if start <= one["stated_at"] < end]


@pytest.mark.parametrize("window", WINDOWS)
async def test_words_are_found_wherever_they_are(source: LocalKnowledge, window: Window) -> None:
    queries = [EntityQuery(id=f"{one} {other}", text=f"{one} {other}")
               for one in WORDS[:8] for other in WORDS if one != other]  # fmt: skip
    found = (await source.fetch(queries, window, 1000)).by_query
    for query in queries:
        expected = {
            one["url"] for one in inside(window)
            if set(query.text.split()) <= set(f"{one['title']} {one['snippet']}".split())
        }  # fmt: skip
        assert {item.url for item in found[query.id]} == expected
    assert sum(map(len, found.values())) > 500


@pytest.mark.parametrize("window", WINDOWS)
async def test_names_are_found_wherever_they_are(source: LocalKnowledge, window: Window) -> None:
    queries = [EntityQuery(id=name, text=name) for name in [*NAMES, "Egger"]]
    found = (await source.fetch(queries, window, 1000)).by_query
    for query in queries:
        expected = {
            one["url"] for one in inside(window)
            if any(set(query.text.split()) <= set(each["name"].split()) for each in one["entities"])
        }  # fmt: skip
        assert {item.url for item in found[query.id]} == expected != set()


@pytest.mark.parametrize("window", WINDOWS)
def test_names_have_the_type_that_is_stated_most(source: LocalKnowledge, window: Window) -> None:
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in inside(window):
        for each in one["entities"]:
            counted[each["name"]][each["type"]] += 1
    expected = {
        name: max(sorted(kinds), key=lambda kind: (kind != "other", kinds[kind]))
        for name, kinds in counted.items()
    }
    assert [(each.name, each.type) for each in source.names(window)] == sorted(expected.items())


@pytest.mark.parametrize("window", WINDOWS)
def test_coverage_counts_days_of_publication(source: LocalKnowledge, window: Window) -> None:
    found, times = source.coverage(window), [one["stated_at"] for one in inside(window)]
    assert (found.articles, found.days) == (len(times), len({at // 86_400 for at in times}))
    assert found.first is not None and found.last is not None
    assert (found.first.timestamp(), found.last.timestamp()) == (min(times), max(times))
