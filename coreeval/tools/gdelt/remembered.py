"""A remote source that is asked each thing once: over processes, resumes and samples."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    NoEvidence,
    Retrieval,
    Window,
)
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.knowledge import KnowledgeSource

VERSION = 1
"""Of what an answer is kept as."""
KEEP_FOUND_S = 30 * 86400.0
KEEP_NOTHING_S = 6 * 3600.0
"""That there is no news is true for a while only (own choice: a quarter of a day)."""
Answer = tuple[Evidence, ...]
Heard = Callable[[Retrieval], None]


class Remembered:
    """A source whose answers are kept on disk, and whose failures hold for the process.

    A sample that looks for news after a failed request must not send a request of its own: it may
    be one that scans gigabytes for money.

    Args:
        source: Where answers come from; closed with this.
        cache: Where they are kept; closed with this.
        heard: Is told each answer of the source, what it cost and what else it said.
    """

    remote = True

    def __init__(
        self, source: KnowledgeSource, cache: JsonCache, heard: Heard = lambda _: None
    ) -> None:
        self.name = source.name
        self._source = source
        self._cache = cache
        self._heard = heard
        self._asking = asyncio.Lock()
        """Held while the source is asked: who waits may find the answer kept."""
        self._unkept: dict[str, Answer] = {}
        self._failed: dict[str, NoEvidence] = {}

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query; one request for all that are new."""
        keys = {query.id: _key(self.name, query, window, k) for query in queries}
        known, asked = await self._known(keys), Retrieval(by_query={})
        if len(known) < len(set(keys.values())):
            async with self._asking:
                known = await self._known(keys)
                new = {keys[query.id]: query for query in queries if keys[query.id] not in known}
                if new:
                    asked = await self._ask(new, window, k)
                    known |= asked.by_query
        nothing = {query: key for query, key in keys.items() if not known[key]}
        return Retrieval(
            by_query={query: known[key] for query, key in keys.items()},
            reasons={query: self._failed.get(key, "no_news") for query, key in nothing.items()},
            notes=asked.notes,
            bytes_billed=asked.bytes_billed,
            cost_usd=asked.cost_usd,
        )

    async def _known(self, keys: Mapping[str, str]) -> dict[str, Answer]:
        return await asyncio.to_thread(self._look_up, set(keys.values()))

    def _look_up(self, keys: set[str]) -> dict[str, Answer]:
        known = {key: self._unkept[key] for key in keys & self._unkept.keys()}
        for key in keys - known.keys():
            rows = self._cache.get(key)
            if isinstance(rows, list):
                known[key] = tuple(Evidence.model_validate(row) for row in rows)
        return known

    async def _ask(self, new: Mapping[str, EntityQuery], window: Window, k: int) -> Retrieval:
        """Ask under the questions' keys, which are the same whoever asks."""
        asked = [query.model_copy(update={"id": key}) for key, query in new.items()]
        answer = await self._source.fetch(asked, window, k)
        await asyncio.to_thread(self._keep, answer)
        await asyncio.to_thread(self._heard, answer)
        return answer

    def _keep(self, answer: Retrieval) -> None:
        for key, evidence in answer.by_query.items():
            reason = answer.reasons.get(key, "no_news")
            if not evidence and reason != "no_news":
                self._failed[key], self._unkept[key] = reason, ()
                continue
            rows: list[JsonValue] = [item.model_dump(mode="json") for item in evidence]
            expire_s = KEEP_FOUND_S if evidence else KEEP_NOTHING_S
            if not self._cache.put(key, rows, expire_s=expire_s):
                self._unkept[key] = evidence

    def coverage(self, window: Window) -> Coverage:
        """Tell what the source holds inside the window."""
        return self._source.coverage(window)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the names that the source knows of."""
        return self._source.names(window)

    def close(self) -> None:
        """Close the source and the cache."""
        self._source.close()
        self._cache.close()


def _key(backend: str, query: EntityQuery, window: Window, k: int) -> str:
    """Hash all that decides an answer; the id of the query does not."""
    asked = query.model_dump(mode="json", exclude={"id"})
    whole = [VERSION, backend, asked, window.model_dump(mode="json"), k]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]
