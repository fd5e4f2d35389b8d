"""Events are found for all samples, dealt once, and offered to each its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.agents.safety import SafetyRules
from coreeval.graph.event_offers import EventOffers
from coreeval.graph.node_context import RetrievalRequest
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    Retrieval,
    Window,
)
from coreeval.tools.stores.run_store import RunStore

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WINDOW = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=NOW)


def news(number: int, title: str, cluster: str) -> Evidence:
    return Evidence(
        id=f"e{number:02}",
        url=f"https://example.org/{number}",
        domain="example.org",
        title=title,
        published_at=datetime(2026, 5, 1, tzinfo=UTC),
        published_precision="exact",
        cluster=cluster,
        origin="test",
    )


class Archive:
    """Knows a few events, and counts how often it was searched."""

    name, remote = "archive", False

    def __init__(self, events: Mapping[str, Sequence[Evidence]]) -> None:
        self.events = events
        self.searches = 0

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        self.searches += 1
        by_query = {
            query.id: tuple(item for word in query.text.split() for item in self.events[word])
            for query in queries
        }
        return Retrieval(by_query=by_query)

    def coverage(self, window: Window) -> Coverage:
        return Coverage(articles=0)

    def names(self, window: Window) -> list[NamedEntity]:
        return []

    def close(self) -> None: ...


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with RunStore.open(tmp_path / "run.db", now=lambda: NOW) as opened:
        yield opened


ARCHIVE = Archive(
    {
        "fire": [news(1, "Fire in Oslo harbour", "c1"), news(2, "Harbour of Oslo burns", "c1")],
        "strike": [news(3, "Rail strike in Portugal", "c3")],
        "flood": [news(4, "Flood in the delta of the Danube", "c4")],
    }
)


def make_offers(store: RunStore, *, reuse: int | None, offered: int = 1) -> EventOffers:
    return EventOffers(
        knowledge=ARCHIVE,
        window=WINDOW,
        store=store,
        rules=SafetyRules(),
        offered=offered,
        reuse=reuse,
        seed=7,
    )


def ask(words: str) -> list[EntityQuery]:
    return [EntityQuery(id="q1", text=words, rung="named")]


async def offered(
    offers: EventOffers, sample: str, words: str, tried: Sequence[str] = ()
) -> list[str]:
    request = RetrievalRequest(sample_id=sample, attempt=1, queries=ask(words), tried=tried)
    return [item.id for item in (await offers(request)).items]


async def test_an_event_carries_at_most_so_many_samples_and_all_its_reports_come_with_it(
    store: RunStore,
) -> None:
    offers = make_offers(store, reuse=1)
    for sample in ("s1", "s2", "s3"):
        await offers.search(sample, ask("fire"), "a text")
    offers.deal()
    said = [await offered(offers, sample, "fire") for sample in ("s1", "s2", "s3")]
    assert sorted(said) == [[], [], ["e01", "e02"]]


@pytest.mark.parametrize(("longest", "ids"), [(2, ["e01", "e02"]), (9, ["e01", "e02", "e03"])])
async def test_events_without_material_are_only_offered_if_no_event_has_any(
    store: RunStore, longest: int, ids: list[str]
) -> None:
    offers = make_offers(store, reuse=1, offered=2)
    search = await offers.search(
        "s1", ask("fire strike"), "a text", "", lambda reports: len(reports) >= longest
    )
    assert sorted(one for event in search.events for one in event.reports) == ids


async def test_who_gets_nothing_is_told_that_others_have_it(store: RunStore) -> None:
    offers = make_offers(store, reuse=1)
    for sample in ("s1", "s2"):
        await offers.search(sample, ask("fire"), "a text")
    offers.deal()
    results = [
        await offers(RetrievalRequest(sample_id=one, attempt=1, queries=ask("fire"), tried=()))
        for one in ("s1", "s2")
    ]
    (empty,) = [result for result in results if not result.items]
    assert [row["why_none"] for row in empty.asked] == ["reused"]


async def test_a_retry_is_offered_other_events_of_its_own(store: RunStore) -> None:
    offers = make_offers(store, reuse=1)
    await offers.search("s1", ask("fire strike flood"), "a text")
    offers.deal()
    first = await offered(offers, "s1", "fire strike flood")
    second = await offered(offers, "s1", "fire strike flood", tried=first[:1])
    assert first == ["e01", "e02"]
    assert second == ["e03"]
    assert await offered(offers, "s1", "", tried=[first[0], second[0]]) == []  # one spare


async def test_what_was_dealt_stays_when_a_run_goes_on_with_more_samples(store: RunStore) -> None:
    offers = make_offers(store, reuse=1)
    await offers.search("s1", ask("fire"), "a text")
    offers.deal()
    before = ARCHIVE.searches
    await offers.search("s2", ask("fire"), "a text")
    offers.deal()
    assert ARCHIVE.searches == before + 1
    assert await offered(offers, "s1", "fire") == ["e01", "e02"]
    assert await offered(offers, "s2", "fire") == []


async def test_without_a_limit_every_sample_has_its_best_events(store: RunStore) -> None:
    offers = make_offers(store, reuse=None, offered=2)
    for sample in ("s1", "s2", "s3"):
        await offers.search(sample, ask("fire strike"), "a text")
    offers.deal()
    assert [await offered(offers, one, "") for one in ("s1", "s2", "s3")] == [
        ["e01", "e02", "e03"]
    ] * 3


async def test_a_sample_that_did_not_search_searches_when_it_is_offered_news(
    store: RunStore,
) -> None:
    assert await offered(make_offers(store, reuse=2), "s9", "flood") == ["e04"]


class Nearby:
    """Finds one piece of news by meaning, whatever the text."""

    def find(self, text: str, most: int) -> Sequence[tuple[Evidence, float]]:
        return [(ARCHIVE.events["strike"][0], 0.7)]

    def embed(self, watch: Callable[[int, int], bool]) -> bool:
        return True


async def test_news_found_by_meaning_is_offered_and_the_trace_says_so(store: RunStore) -> None:
    offers = replace(make_offers(store, reuse=None, offered=2), nearest=Nearby())
    await offers.search("s1", ask("fire"), "a text")
    offers.deal()
    request = RetrievalRequest(sample_id="s1", attempt=1, queries=ask("fire"), tried=())
    found = await offers(request)
    assert {item.id: rung for item, rung in found.items.items()} == {
        "e01": "named", "e02": "named", "e03": "concept",
    }  # fmt: skip
    assert [row["text"] for row in found.asked] == ["(the text, by meaning)", "fire"]


async def test_of_an_event_no_more_reports_than_allowed_are_offered(store: RunStore) -> None:
    offers = replace(make_offers(store, reuse=None), reports=1)
    await offers.search("s1", ask("fire"), "a text")
    offers.deal()
    assert await offered(offers, "s1", "fire") == ["e01"]
