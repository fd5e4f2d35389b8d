"""Downloads in the background: a few at once, and never more on disk than the readers need."""

import asyncio
import queue
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from coreeval.errors import RunError
from coreeval.tools.clock import Clock
from coreeval.tools.gdelt.store.deliveries import Delivery
from coreeval.tools.gdelt.store.feeds import MIRRORED
from coreeval.tools.gdelt.store.ledger import BatchRow
from coreeval.tools.gdelt.store.mirror import FetchFailed, Mirror, new_session
from coreeval.tools.gdelt.store.plan import Wanted, is_gap
from coreeval.tools.gdelt.store.reading import Offer

AT_ONCE = 4
"""Downloads at once (research: gdelt §8)."""
WAITING = 8
"""Batches on disk that are being fetched or wait to be read."""
HOPELESS = 12
"""Batches in a row that could not be fetched, from which the mirror counts as unreachable; before
anything was fetched, a first round of them is enough."""


@dataclass(slots=True)
class Troubles:
    """What could not be had."""

    failed: dict[str, str] = field(default_factory=dict)
    """Batches that could not be fetched, and why; the next sync tries them again."""
    late: int = 0
    """Batches that are not there yet and may still come."""
    in_a_row: int = 0
    fetched: bool = False
    """Whether the mirror has answered at all."""


class Downloads:
    """Fetches batches inside a `with` block, from a thread; iterating gives what arrived."""

    def __init__(
        self,
        wanted: Sequence[Wanted],
        folder: Path,
        *,
        mirror: str,
        now: Clock,
        pause_s: float = 1.0,
    ) -> None:
        self.troubles = Troubles()
        self._wanted = iter(wanted)
        self._folder = folder
        self._mirror = mirror
        self._now = now
        self._pause_s = pause_s
        self._arrived: queue.SimpleQueue[Delivery | BaseException | None] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._slots = asyncio.Semaphore(WAITING)
        self._thread = threading.Thread(target=self._work, name="downloads", daemon=True)
        self._all: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._all = self._loop.create_task(self._fetch_all())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __iter__(self) -> Iterator[Delivery]:
        """Yield what arrived, until all is there or it was stopped.

        Raises:
            RunError: the mirror cannot be reached.
            OSError: a download cannot be written.
        """
        while (arrived := self._arrived.get()) is not None:
            if isinstance(arrived, BaseException):
                raise arrived
            yield arrived

    def stop(self) -> None:
        """Break off what is being fetched."""
        if self._all:
            self._call(self._all.cancel)

    def _call(self, function: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function)  # type: ignore[arg-type]
        except RuntimeError:
            return  # it has come to its end already

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            assert self._all
            self._loop.run_until_complete(self._all)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the deliveries are awaited
            self._arrived.put(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._arrived.put(None)

    async def _fetch_all(self) -> None:
        async with new_session() as session:
            mirror = Mirror(self._mirror, session, self._pause_s)
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(AT_ONCE):
                        group.create_task(self._fetch_some(mirror))
            except ExceptionGroup as several:
                raise several.exceptions[0] from None  # the first one has ended the others

    async def _fetch_some(self, mirror: Mirror) -> None:
        for wanted in self._wanted:
            await self._slots.acquire()
            delivery = await self._fetch(mirror, wanted)
            if delivery:
                self._arrived.put(delivery)
            else:
                self._slots.release()

    async def _fetch(self, mirror: Mirror, wanted: Wanted) -> Delivery | None:
        """Fetch the files of one batch; None where nothing is to be noted of it."""
        try:
            offers = await self._offers(mirror, wanted)
        except FetchFailed as error:
            self._note_failure(wanted, error)
            return None
        self.troubles.in_a_row, self.troubles.fetched = 0, True
        now = self._now()
        if not offers and not is_gap(wanted.batch, now):
            self.troubles.late += 1
            return None
        row = _batch_row(wanted, bool(offers), now)
        return Delivery(offers=offers, batches=(row,), done=self._release)

    async def _offers(self, mirror: Mirror, wanted: Wanted) -> tuple[Offer, ...]:
        offers: list[Offer] = []
        async with AsyncExitStack() as undo:
            for path in MIRRORED[wanted.feed].paths(wanted.batch):
                name = path.rpartition("/")[2]
                to = self._folder / name
                fetched = await mirror.fetch(path, to)
                if fetched:
                    undo.callback(to.unlink, missing_ok=True)
                    offers.append(
                        Offer(path=to, name=name, feed=wanted.feed, batch=wanted.batch,
                              md5=fetched.md5, downloaded=True)
                    )  # fmt: skip
            undo.pop_all()
        return tuple(offers)

    def _note_failure(self, wanted: Wanted, error: FetchFailed) -> None:
        troubles = self.troubles
        troubles.failed[f"{wanted.feed} {wanted.batch:%Y-%m-%d %H:%M}"] = str(error)
        troubles.in_a_row += 1
        if troubles.in_a_row >= (HOPELESS if troubles.fetched else AT_ONCE):
            raise RunError(
                f"the mirror cannot be used: {error}",
                where=self._mirror,
                hint="look at the network and the proxy, then give the same command again: "
                "it goes on where it was",
            )

    def _release(self) -> None:
        self._call(self._slots.release)


def _batch_row(wanted: Wanted, found: bool, now: datetime) -> BatchRow:
    stamp, checked = int(wanted.batch.timestamp()), int(now.timestamp())
    return BatchRow(wanted.feed, stamp, "read" if found else "missing", checked)
