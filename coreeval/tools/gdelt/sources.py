"""Combines knowledge sources into one, and caches the answers of remote sources.

A query that one source of a chain cannot answer goes to the next. The answers of a remote source
are stored on disk for all processes, resumes and samples; its failures apply to the whole process.
"""

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

_LEAST_KNOWN_FIRST: tuple[NoEvidence, ...] = (
    "throttled", "unavailable", "rejected", "not_covered", "no_news",
)  # fmt: skip
"""The reasons that apply to a query that no source answered, in order; it has no news only if all
sources searched and found none."""


class SourceChain:
    """Knowledge sources, in the order in which they are queried.

    Args:
        sources: At least one; a query goes to the next source if the previous one finds nothing.
    """

    def __init__(self, sources: Sequence[KnowledgeSource]) -> None:
        self._sources = tuple(sources)
        self.name = ", ".join(source.name for source in sources)
        self.remote = any(source.remote for source in sources)

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, from the first source with any."""
        answers: list[Retrieval] = []
        open_queries = list(queries)
        for source in self._sources:
            if open_queries:
                answer = await source.fetch(open_queries, window, k)
                answers.append(answer)
                open_queries = [
                    query for query in open_queries if not answer.by_query.get(query.id)
                ]
        return _merge_answers(queries, answers)

    def coverage(self, window: Window) -> Coverage:
        """Return the window's coverage by the source known to hold the most articles."""
        known = [source.coverage(window) for source in self._sources]
        return max(
            known, key=lambda coverage: -1 if coverage.articles is None else coverage.articles
        )

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the distinct names that the sources' evidence in the window mentions."""
        found: dict[str, NamedEntity] = {}
        for source in self._sources:
            for entity in source.names(window):
                found.setdefault(entity.name.casefold(), entity)
        return list(found.values())

    def close(self) -> None:
        """Close all sources."""
        for source in self._sources:
            source.close()


def _merge_answers(queries: Sequence[EntityQuery], answers: Sequence[Retrieval]) -> Retrieval:
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


VERSION = 2
"""The version of the format of cached answers, and of the ids in them."""
KEEP_FOUND_S = 30 * 86400.0
KEEP_NOTHING_S = 6 * 3600.0
"""The seconds that an answer without news is cached, since news may appear later (own choice: a
quarter of a day)."""
QueryEvidence = tuple[Evidence, ...]
OnRetrieval = Callable[[Retrieval], None]


class SourceCache:
    """A source whose answers are cached on disk, and whose failures apply to the whole process.

    After a failed request, a sample that looks for news must not send another one, which could scan
    gigabytes at a cost.

    Args:
        source: The source of the answers; closed together with this object.
        cache: The cache of the answers; closed together with this object.
        heard: Called with each answer of the source, including its cost and notes.
    """

    remote = True

    def __init__(
        self, source: KnowledgeSource, cache: JsonCache, heard: OnRetrieval = lambda _: None
    ) -> None:
        self.name = source.name
        self._source = source
        self._cache = cache
        self._heard = heard
        self._asking = asyncio.Lock()
        """Held while the source is queried: a waiting caller may find the answer in the cache."""
        self._unkept: dict[str, QueryEvidence] = {}
        self._failed: dict[str, NoEvidence] = {}

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, with one request for all new ones."""
        keys = {query.id: _cache_key(self.name, query, window, k) for query in queries}
        known, asked = await self._find_known(keys), Retrieval(by_query={})
        if len(known) < len(set(keys.values())):
            async with self._asking:
                known = await self._find_known(keys)
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

    async def _find_known(self, keys: Mapping[str, str]) -> dict[str, QueryEvidence]:
        return await asyncio.to_thread(self._look_up, set(keys.values()))

    def _look_up(self, keys: set[str]) -> dict[str, QueryEvidence]:
        known = {key: self._unkept[key] for key in keys & self._unkept.keys()}
        for key in keys - known.keys():
            rows = self._cache.get(key)
            if isinstance(rows, list):
                known[key] = tuple(Evidence.model_validate(row) for row in rows)
        return known

    async def _ask(self, new: Mapping[str, EntityQuery], window: Window, k: int) -> Retrieval:
        """Query the source with cache keys as ids, since every caller has the same keys."""
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
        """Return the source's coverage of the window."""
        return self._source.coverage(window)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the names that the source knows."""
        return self._source.names(window)

    def close(self) -> None:
        """Close the source and the cache."""
        self._source.close()
        self._cache.close()


def _cache_key(backend: str, query: EntityQuery, window: Window, k: int) -> str:
    """Return a hash of everything that determines an answer, which excludes the query's id."""
    asked = query.model_dump(mode="json", exclude={"id"})
    whole = [VERSION, backend, asked, window.model_dump(mode="json"), k]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]
