"""The one interface that every knowledge backend has."""

from collections.abc import Sequence
from typing import Protocol

from coreeval.schema import Coverage, EntityQuery, Evidence, NamedEntity, Retrieval, Window


class KnowledgeSource(Protocol):
    """Somewhere dated news can be asked for."""

    name: str
    """The backend's name as the config spells it."""

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first."""
        ...

    def coverage(self, window: Window) -> Coverage:
        """Tell what the source holds inside the window."""
        ...

    def evidence(self, ids: Sequence[str]) -> list[Evidence]:
        """Return evidence by id, in the order asked for; unknown ids are left out."""
        ...

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the entity names that the source's evidence in the window mentions."""
        ...
