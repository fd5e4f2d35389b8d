"""The news of a run by event: found for all samples, distributed once, and offered to each.

All samples search before any sample is offered news, because only then is it known which samples
want which event. Findings and offers are stored with the run, so that a resumed run offers the
same.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from coreeval.agents import queries
from coreeval.agents.events import (
    MOST_REPORTS,
    NewsEvent,
    Similarity,
    bundle_reports,
    deal_events,
    rank_events,
)
from coreeval.agents.safety import SafetyRules
from coreeval.graph.node_context import HasMaterial, RetrievalRequest, RetrievalResult
from coreeval.schema import EntityQuery, Evidence, Retrieval, Rung, Window
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.run_events import NewsSearch, StoredEvent
from coreeval.tools.stores.run_store import RunStore

REPORTS_PER_QUERY = 20
"""The number of reports that each query returns at most (research: pilot §2, top 20)."""
MOST_FOUND = 60
"""The most reports that are bundled for one sample (own choice: 20 events of three reports)."""
SPARE = 2
"""The events reserved for a sample per event that it is offered at first: a retry with other news
needs events that no other sample has taken."""


class NearestSearch(Protocol):
    """A search by meaning."""

    def find(self, text: str, most: int) -> Sequence[tuple[Evidence, float]]:
        """Return up to `most` pieces of news and their cosines with a text, nearest first."""
        ...

    def embed(self, watch: Callable[[int, int], bool]) -> bool:
        """Prepare the search; see `NearestNews`."""
        ...


@dataclass(frozen=True, kw_only=True)
class EventOffers:
    """Finds, distributes and offers the events of a run."""

    knowledge: KnowledgeSource
    window: Window
    store: RunStore
    rules: SafetyRules
    offered: int
    """The number of events offered at a time."""
    reuse: int | None
    """The most samples that one event may be offered to; None for no limit."""
    seed: int
    similarity: Similarity | None = None
    nearest: NearestSearch | None = None
    """Finds news by meaning, in addition to the queries; None for queries alone."""
    reports: int = MOST_REPORTS
    """The most reports of an event that are offered."""

    async def search(
        self,
        sample_id: str,
        asked: Sequence[EntityQuery],
        text: str,
        need: str = "",
        has_material: HasMaterial = lambda reports: True,
    ) -> NewsSearch:
        """Store and return the events found for a sample.

        Args:
            sample_id: The sample, which has not searched before.
            asked: Its queries.
            text: Its text.
            need: The kind of news that it needs, in words.
            has_material: Returns whether an event's reports can make an item. The others are left
                out, unless all are, so that the sample can say what they lack.
        """
        found = await self.knowledge.fetch(asked, self.window, REPORTS_PER_QUERY)
        about = f"{text}\n{need}"
        events, near = await asyncio.to_thread(self._rank, found, asked, about, has_material)
        reports = [report for event in events for report in event.reports]
        search = NewsSearch(
            asked=queries.describe_queries(asked, found, near),
            events=[
                StoredEvent(
                    key=event.key, rung=event.rung, reports=tuple(one.id for one in event.reports)
                )
                for event in events
            ],
            need=need,
        )
        write = self.store.history.insert_evidence(reports)
        await self.store.events.add(sample_id, search, [write] if write else [])
        return search

    def _rank(
        self,
        found: Retrieval,
        asked: Sequence[EntityQuery],
        text: str,
        has_material: HasMaterial,
    ) -> tuple[Sequence[NewsEvent], int]:
        """Return the events found, best first, and how many reports were found by meaning."""
        near = self.nearest.find(text, REPORTS_PER_QUERY) if self.nearest else ()
        items = queries.merge_results(
            found,
            asked,
            limit=MOST_FOUND,
            exclude=(),
            forbids=self.rules.takedown.forbids,
            nearest=near,
        )
        ranked = rank_events(bundle_reports(items), text, similarity=self.similarity)
        events = [
            NewsEvent(reports=event.reports[: self.reports], rung=event.rung, key=event.key)
            for event in ranked
        ]
        return [event for event in events if has_material(event.reports)] or events, len(near)

    def deal(self) -> None:
        """Deal events to the samples that have searched and were dealt none."""
        wanted, before = dict[str, Sequence[str]](), list[Sequence[str]]()
        for sample_id, keys, dealt in self.store.events.iter_wanted():
            if dealt is None:
                wanted[sample_id] = keys
            else:
                before.append(dealt)
        if wanted:
            self.store.events.deal(self._deal(wanted, before))

    def _deal(
        self, wanted: Mapping[str, Sequence[str]], before: Iterable[Sequence[str]]
    ) -> Mapping[str, Sequence[str]]:
        if self.reuse is None:
            return wanted
        return deal_events(
            wanted,
            reuse=self.reuse,
            each=SPARE * self.offered,
            seed=self.seed,
            taken=[key for keys in before for key in keys],
        )

    async def __call__(self, request: RetrievalRequest) -> RetrievalResult:
        """Return a sample's best events of which no report has been tried.

        If no search was made for the sample, as in Studio, one is made now and may use any event.
        """
        search = await asyncio.to_thread(self.store.events.find, request.sample_id)
        if search is None:
            text = " ".join(query.text for query in request.queries)
            search = await self.search(request.sample_id, request.queries, text)
        chosen = self._choose(search, set(request.tried))
        ids = [one for event in chosen for one in event.reports]
        reports = await self.store.history.load_evidence(ids)
        items: dict[Evidence, Rung] = {
            reports[one]: event.rung for event in chosen for one in event.reports if one in reports
        }
        return RetrievalResult(asked=_explain_reuse(search, items), items=items)

    def _choose(self, search: NewsSearch, tried: set[str]) -> Sequence[StoredEvent]:
        allowed = {each.key for each in search.events} if search.dealt is None else search.dealt
        left = (
            each
            for each in search.events
            if each.key in allowed and not tried.intersection(each.reports)
        )
        return list(islice(left, self.offered))


def _explain_reuse(
    search: NewsSearch, items: Mapping[Evidence, Rung]
) -> Sequence[dict[str, object]]:
    """Return the queries; those whose results are all taken by other samples say so."""
    spent = not items and search.dealt == []
    return [
        {**row, "why_none": "reused"} if spent and row["found"] else dict(row)
        for row in search.asked
    ]
