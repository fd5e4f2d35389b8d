"""What the tests of the doc backend have in common."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import pytest

from coreeval.config.knowledge import DocConfig
from coreeval.schema import EntityQuery, Precision, Retrieval, Rung, Window
from coreeval.tools.gdelt.doc.doc_source import DocKnowledge, open_doc
from coreeval.tools.gdelt.doc.fetch import RequestThrottle
from coreeval.tools.gdelt.doc.replies import DocWire, HttpReply
from tests.support.doc_server import DocServer
from tests.support.virtual_time import now

Row = Mapping[str, object]
JUNE = Window(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 6, 29, tzinfo=UTC))
START = JUNE.end.timestamp()
"""When the clock of virtual time begins."""
RECORDED = Path(__file__).parents[4].parent / "shared" / "data" / "gdelt" / "doc_api"


def need_recorded() -> Path:
    """Return the folder of recorded answers, or skip the test."""
    if not RECORDED.exists():
        pytest.skip("the development data is not beside this checkout")
    return RECORDED


def row(title: str, url: str = "", seen: str = "20260610T120000Z", **more: str) -> Row:
    """Return an article as DOC 2.0 lists it."""
    url = url or f"https://site{crc32(title.encode())}.example/x"
    return {"url": url, "title": title, "seendate": seen, "language": "English", **more}


def query(text: str, rung: Rung = "named", *aliases: str, id: str = "q") -> EntityQuery:
    return EntityQuery(id=id, text=text, rung=rung, aliases=aliases)


def opened(
    server: DocServer,
    folder: Path,
    *,
    timeout_s: float = 5.0,
    deadline_s: float = 30.0,
    pause_s: float = 0.0,
    min_precision: Precision = "crawl",
) -> DocKnowledge:
    """Open a server without waiting between requests."""
    config = DocConfig(
        base_url=server.url,
        spacing_s=0,
        timeout_s=timeout_s,
        deadline_s=deadline_s,
        pause_s=pause_s,
    )
    return open_doc(config, folder, min_precision=min_precision)


async def asked(server: DocServer, folder: Path, *queries: EntityQuery, k: int = 5) -> Retrieval:
    """Ask a server about June."""
    async with server.running():
        return await opened(server, folder).fetch(queries, JUNE, k)


# -- virtual time -------------------------------------------------------------------------------


def clock() -> float:
    """Return the time of day in virtual time."""
    return START + now()


def paced(folder: Path, *, spacing_s: float = 8.0, pause_s: float = 60.0) -> RequestThrottle:
    """Return a pace that goes by virtual time."""
    return RequestThrottle(
        file=folder / "pace.json",
        spacing_s=spacing_s,
        pause_s=pause_s,
        probe_s=75,
        clock=clock,
        jitter=lambda: 0.0,
    )


class ScriptedWire:
    """Answers in virtual time by a function, and keeps when it was asked for what."""

    def __init__(self, answer: Callable[[Mapping[str, str]], Awaitable[HttpReply]]) -> None:
        self._answer = answer
        self.asked: list[tuple[float, str]] = []

    async def get(self, parameters: Mapping[str, str], timeout_s: float) -> HttpReply:
        self.asked.append((now(), parameters["query"]))
        return await self._answer(parameters)

    @property
    def times(self) -> list[float]:
        """Seconds at which requests were sent."""
        return [round(at, 1) for at, _ in self.asked]

    def connect(self, _base_url: str) -> AbstractAsyncContextManager[DocWire]:
        """Stand in for HTTP."""
        return self._connected()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[DocWire]:
        yield self


def said(body: str, status: int = 200, retry_after: str = "") -> HttpReply:
    return HttpReply(status=status, body=body.encode(), retry_after=retry_after)


def virtual(folder: Path, wire: ScriptedWire, **config: float) -> DocKnowledge:
    """Open a scripted wire in virtual time, as patient as a user's config says."""
    return DocKnowledge(
        config=DocConfig.model_validate(config),
        pace=paced(folder),
        min_precision="crawl",
        connect=wire.connect,
        clock=clock,
    )
