"""The news found for each sample, by event, and the events assigned to it."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import bindparam, select, update

from coreeval.schema import Rung
from coreeval.tools.chunks import chunks
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.batch_writer import Write
from coreeval.tools.stores.prepared_statements import LookupStatement
from coreeval.tools.stores.run_file import CHUNK, RunFile
from coreeval.tools.stores.sqlite import Row


@dataclass(frozen=True, kw_only=True)
class StoredEvent:
    """An event that was found for a sample."""

    key: str
    rung: Rung
    reports: tuple[str, ...]
    """The ids of its articles, best first."""


@dataclass(frozen=True, kw_only=True)
class NewsSearch:
    """The search results of a sample."""

    asked: Sequence[Mapping[str, Any]]
    """The queries, with the number of results or the reason that there are none."""
    events: Sequence[StoredEvent]
    """The events found, best first."""
    need: str = ""
    """The kind of news that the sample needs, in words."""
    dealt: Sequence[str] | None = None
    """The keys of the events that the sample may be offered; None before they are assigned."""
    passages: Mapping[str, str] | None = None
    """The passages of articles shown to the sample, by evidence id; None before they are
    fetched."""


class RunEvents:
    """The news searches of a run."""

    def __init__(self, file: RunFile) -> None:
        self._file = file

    async def add(self, sample_id: str, search: NewsSearch, before: Sequence[Write] = ()) -> None:
        """Store a search, in one commit with the writes before it; it replaces an earlier one."""
        row = {
            "sample_id": sample_id,
            "asked": list(search.asked),
            "events": [[each.key, each.rung, list(each.reports)] for each in search.events],
            "need": search.need,
            "dealt": search.dealt,
            "passages": search.passages,
        }
        write: Write = (self._file.put[t.searches], [row])
        await asyncio.wrap_future(self._file.submit([*before, write]))

    def find(self, sample_id: str) -> NewsSearch | None:
        """Return the search of a sample; None if there was none."""
        row = self._lookup.one(sample_id)
        return _to_search(row) if row else None

    @cached_property
    def _lookup(self) -> LookupStatement:
        query = select(t.searches).where(t.searches.c.sample_id == bindparam("id"))
        return self._file.prepare_lookup(query)

    def ids(self) -> set[str]:
        """Return the ids of the samples that have searched."""
        return {key for (key,) in self._file.tuples(select(t.searches.c.sample_id))}

    def iter_wanted(self) -> Iterator[tuple[str, Sequence[str], Sequence[str] | None]]:
        """Yield each searched sample with its event keys, best first, and those assigned."""
        known = t.searches.c
        for key, events, dealt in self._file.tuples(
            select(known.sample_id, known.events, known.dealt)
        ):
            yield key, [event for event, _, _ in events], dealt

    def deal(self, dealt: Mapping[str, Sequence[str]]) -> None:
        """Store the events assigned to samples, in one commit."""
        rows = [{"sample": key, "keys": list(keys)} for key, keys in dealt.items()]
        known = t.searches.c
        write = update(t.searches).where(known.sample_id == bindparam("sample"))
        with self._file.engine.begin() as connection:
            for some in chunks(rows, CHUNK):
                connection.execute(write.values(dealt=bindparam("keys")), some)

    def list_without_passages(self) -> list[str]:
        """Return the samples with assigned events whose articles were not fetched."""
        known = t.searches.c
        query = select(known.sample_id).where(known.dealt.is_not(None), known.passages.is_(None))
        return [key for (key,) in self._file.tuples(query.order_by(known.sample_id))]

    async def add_passages(self, sample_id: str, passages: Mapping[str, str]) -> None:
        """Store the passages of articles shown to a sample."""
        write = update(t.searches).where(t.searches.c.sample_id == sample_id)
        values = write.values(passages=dict(passages))
        await asyncio.wrap_future(self._file.submit([(values, None)]))

    def passages(self, sample_id: str) -> Mapping[str, str]:
        """Return the passages of articles shown to a sample, by evidence id, if any."""
        found = self.find(sample_id)
        return (found.passages if found else None) or {}


def _to_search(row: Row) -> NewsSearch:
    return NewsSearch(
        asked=row["asked"],
        events=[
            StoredEvent(key=key, rung=rung, reports=tuple(ids)) for key, rung, ids in row["events"]
        ],
        need=row["need"],
        dealt=row["dealt"],
        passages=row["passages"],
    )
