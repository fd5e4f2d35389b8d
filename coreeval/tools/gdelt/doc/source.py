"""The doc backend: a knowledge source over GDELT's DOC 2.0 service."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from coreeval.config.remote_news import DocConfig
from coreeval.schema import (
    Coverage,
    EntityQuery,
    NamedEntity,
    Precision,
    Retrieval,
    Window,
)
from coreeval.tools.gdelt.doc.archive import gaps
from coreeval.tools.gdelt.doc.asking import Asking
from coreeval.tools.gdelt.doc.filters import require_gdeltdoc
from coreeval.tools.gdelt.doc.gathered import Gathered
from coreeval.tools.gdelt.doc.notes import NOT_EXACT, less_certain, notes
from coreeval.tools.gdelt.doc.pace import Pace
from coreeval.tools.gdelt.doc.packing import slices
from coreeval.tools.gdelt.doc.tally import Tally
from coreeval.tools.gdelt.doc.wire import Wire, http, proxy_for

Connect = Callable[[str], AbstractAsyncContextManager[Wire]]


@dataclass(frozen=True, kw_only=True)
class DocKnowledge:
    """A knowledge source over the network; each fetch is bounded in time."""

    name = "doc"
    remote = True

    config: DocConfig
    pace: Pace
    min_precision: Precision
    connect: Connect = http
    clock: Callable[[], float] = time.time

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first.

        What the service does never raises: it is told as a reason or a note.

        Raises:
            KnowledgeError: the user can mend it: the proxy, or the file that requests are paced by.
        """
        gathered = Gathered(queries, window, k, self.min_precision)
        spans = [] if self.min_precision == "exact" else slices(window, self._now())
        tally = await self._ask(gathered, spans) if spans else Tally()
        found, withheld = await asyncio.to_thread(gathered.ranked)
        told = [*notes(tally, shut_until=self.pace.shut_until(), gaps=gaps(window, self._now()))]
        if self.min_precision == "exact":
            told.append(NOT_EXACT)
        if withheld:
            told.append(less_certain(withheld, self.min_precision))
        missing = [query.id for query in queries if not found[query.id]]
        reasons = {id: gathered.reason(id, tally) if spans else "not_covered" for id in missing}
        return Retrieval(by_query=found, reasons=reasons, notes=tuple(told))

    async def _ask(self, gathered: Gathered, spans: Sequence[Window]) -> Tally:
        async with self.connect(self.config.base_url) as wire:
            asking = Asking(
                wire=wire,
                pace=self.pace,
                timeout_s=self.config.timeout_s,
                deadline_s=self.config.deadline_s,
                found=gathered.add,
                wanted=gathered.wanted,
            )
            return await asking.ask(spans)

    def coverage(self, window: Window) -> Coverage:
        """Tell what the archive cannot hold; how much it holds is not known without asking."""
        return Coverage(articles=None, gaps=gaps(window, self._now()))

    def names(self, window: Window) -> list[NamedEntity]:
        """Return nothing: a remote source knows no names before it is asked."""
        return []

    def close(self) -> None:
        """Do nothing: connections end with their fetch."""

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), tz=UTC)


def open_doc(
    config: DocConfig, folder: Path, *, min_precision: Precision = "cluster"
) -> DocKnowledge:
    """Open the service.

    Args:
        config: How it is reached.
        folder: Where processes agree on when to ask; one for all runs behind one address.
        min_precision: Least certain kind of publication time that is accepted.

    Raises:
        KnowledgeError: gdeltdoc is missing, the folder cannot be written, or the proxy is unusable.
    """
    require_gdeltdoc()
    proxy_for(config.base_url)
    parts = urlsplit(config.base_url)
    place = re.sub(r"\W+", "-", f"{parts.hostname}-{parts.port or parts.scheme}")
    pace = Pace(
        file=folder / f"doc-{place}.json",
        spacing_s=config.spacing_s,
        pause_s=config.pause_s,
        probe_s=config.timeout_s,
    )
    pace.shut_until()
    return DocKnowledge(config=config, pace=pace, min_precision=min_precision)
