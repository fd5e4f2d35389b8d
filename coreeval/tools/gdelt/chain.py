"""Several knowledge sources as one: what the first cannot answer, the next is asked."""

from collections.abc import Sequence

from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    NoEvidence,
    Retrieval,
    Window,
)
from coreeval.tools.knowledge import KnowledgeSource

_LEAST_KNOWN_FIRST: tuple[NoEvidence, ...] = (
    "throttled", "unavailable", "rejected", "not_covered", "no_news",
)  # fmt: skip
"""What is said of a query that no source answered: only if all looked and found nothing is there
no news."""


class Chain:
    """Knowledge sources in the order in which they are asked.

    Args:
        sources: At least one; a query goes to the next where the one before has nothing for it.
    """

    def __init__(self, sources: Sequence[KnowledgeSource]) -> None:
        self._sources = tuple(sources)
        self.name = ", ".join(source.name for source in sources)
        self.remote = any(source.remote for source in sources)

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query: of the first source with any."""
        answers: list[Retrieval] = []
        open_queries = list(queries)
        for source in self._sources:
            if open_queries:
                answer = await source.fetch(open_queries, window, k)
                answers.append(answer)
                open_queries = [
                    query for query in open_queries if not answer.by_query.get(query.id)
                ]
        return _joined(queries, answers)

    def coverage(self, window: Window) -> Coverage:
        """Tell what the sources that know it hold inside the window, the fullest of them."""
        known = [source.coverage(window) for source in self._sources]
        return max(
            known, key=lambda coverage: -1 if coverage.articles is None else coverage.articles
        )

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the names that the sources' evidence in the window mentions, each once."""
        found: dict[str, NamedEntity] = {}
        for source in self._sources:
            for entity in source.names(window):
                found.setdefault(entity.name.casefold(), entity)
        return list(found.values())

    def close(self) -> None:
        """Close all sources."""
        for source in self._sources:
            source.close()


def _joined(queries: Sequence[EntityQuery], answers: Sequence[Retrieval]) -> Retrieval:
    found: dict[str, tuple[Evidence, ...]] = {query.id: () for query in queries}
    said: dict[str, set[NoEvidence]] = {query.id: set() for query in queries}
    for answer in answers:
        for query, evidence in answer.by_query.items():
            found[query] = evidence or found[query]
        for query, reason in answer.reasons.items():
            said[query].add(reason)
    return Retrieval(
        by_query=found,
        reasons={
            query: next(reason for reason in _LEAST_KNOWN_FIRST if reason in said[query])
            for query, evidence in found.items()
            if not evidence
        },
        notes=tuple(dict.fromkeys(note for answer in answers for note in answer.notes)),
        bytes_billed=sum(answer.bytes_billed for answer in answers),
        cost_usd=sum(answer.cost_usd for answer in answers),
    )
