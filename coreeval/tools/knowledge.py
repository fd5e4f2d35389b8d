"""The interface of all knowledge backends."""

from collections.abc import Sequence
from typing import Protocol

from coreeval.schema import Coverage, EntityQuery, NamedEntity, Retrieval, Window
from coreeval.tools.formatting import format_quantity


class KnowledgeSource(Protocol):
    """A source that can be queried for dated news."""

    name: str
    """The backend's name, as spelled in the config."""
    remote: bool
    """Whether one request should contain the queries of all samples (design §4, gather)."""

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first."""
        ...

    def coverage(self, window: Window) -> Coverage:
        """Return the source's coverage of the window."""
        ...

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the entity names that the source's evidence in the window mentions."""
        ...

    def close(self) -> None:
        """Release files, connections and memory."""
        ...


def describe_coverage(coverage: Coverage) -> str:
    """Return a source's coverage as one clause."""
    if coverage.articles is None:
        return "an unknown number of articles"
    articles = format_quantity(coverage.articles, "article")
    return f"{articles} on {format_quantity(coverage.days, 'day')}"
