"""What a sample is offered when it looks for news: the one step that leaves the graph for news."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from coreeval.agents import queries
from coreeval.agents.safety import SafetyRules
from coreeval.graph.state import Json
from coreeval.schema import EntityQuery, Evidence, Rung, Window
from coreeval.tools.knowledge import KnowledgeSource


@dataclass(frozen=True, kw_only=True)
class Looking:
    """A sample that looks for news."""

    sample_id: str
    attempt: int
    queries: Sequence[EntityQuery]
    tried: Collection[str]
    """Ids of evidence that was used and led nowhere."""


@dataclass(frozen=True, kw_only=True)
class Offered:
    """What it is offered."""

    asked: Sequence[Json]
    """For each query its `text` and `rung`, how much was `found`, and `why_none`."""
    items: Mapping[Evidence, Rung]
    """Best first, each with the rung that found it."""


Offer = Callable[[Looking], Awaitable[Offered]]
"""Looks for news for one sample."""


def offer_of(
    knowledge: KnowledgeSource, window: Window, *, candidates: int, rules: SafetyRules
) -> Offer:
    """Return what asks a source of news and merges its answers (paper eq. 2)."""

    async def offer(looking: Looking) -> Offered:
        asked = looking.queries
        found = await knowledge.fetch(asked, window, candidates)
        items = queries.merge_results(
            found, asked, limit=candidates, exclude=looking.tried, forbids=rules.takedown.forbids
        )
        return Offered(asked=queries.describe_queries(asked, found), items=items)

    return offer
