"""Delivers pages of current events: fetches each day's page, stores it as a file, and reads it."""

import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import httpx2

from coreeval.errors import RunError
from coreeval.tools.clock import Clock
from coreeval.tools.gdelt.current_events import FEED
from coreeval.tools.gdelt.sync.batches import BatchToFetch, is_gap
from coreeval.tools.gdelt.sync.downloads import FetchFailed, FetchTroubles, to_batch_row
from coreeval.tools.gdelt.sync.file_reader import Offer
from coreeval.tools.gdelt.sync.intake import Delivery
from coreeval.tools.gdelt.sync.portal_api import API, PortalApi, open_client

HOPELESS: Final = 3
"""The number of days in a row that could not be fetched after which the service counts as
unreachable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalAccess:
    """The settings for fetching pages of current events."""

    contact: str = ""
    """The mail or web address of the program's user."""
    url: str = API


@dataclass(slots=True)
class PortalPages:
    """The pages of some days inside a `with` block; iterating fetches and delivers them."""

    wanted: Sequence[BatchToFetch]
    folder: Path
    """A folder for pages that are waiting to be read."""
    access: PortalAccess
    now: Clock
    pause_s: float = 1.0
    troubles: FetchTroubles = field(default_factory=FetchTroubles)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self) -> None:
        """Stop after the request in progress."""
        self._stopped.set()

    def __iter__(self) -> Iterator[Delivery]:
        """Yield the delivery of each day, oldest first, until a stop is requested.

        Raises:
            RunError: the service cannot be used.
            OSError: a page cannot be written.
        """
        if not self.wanted:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with open_client(self.access.contact) as client:
            for wanted in self.wanted:
                if not self._stopped.is_set() and (delivery := self._fetch(client, wanted)):
                    yield delivery

    def _fetch(self, client: httpx2.Client, wanted: BatchToFetch) -> Delivery | None:
        """Fetch one day's page; return None if there is nothing to record for it."""
        api = PortalApi(self.access.url, client, self._stopped, self.pause_s)
        try:
            page = api.fetch(wanted.batch.date())
        except FetchFailed as error:
            self._note_failure(wanted, error)
            return None
        self.troubles.in_a_row = 0
        now = self.now()
        if page is None and not is_gap(wanted.feed, wanted.batch, now):
            self.troubles.late += 1
            return None
        offers = () if page is None else (self._keep(wanted, page.content),)
        row = to_batch_row(wanted, "missing" if page is None else "read", now)
        return Delivery(offers=offers, batches=(row,))

    def _keep(self, wanted: BatchToFetch, content: bytes) -> Offer:
        day = f"{wanted.batch:%Y-%m-%d}.json"
        path = self.folder / day
        path.write_bytes(content)
        return Offer(
            path=path, name=f"{FEED}/{day}", feed=wanted.feed, batch=wanted.batch, downloaded=True
        )

    def _note_failure(self, wanted: BatchToFetch, error: FetchFailed) -> None:
        if self._stopped.is_set():
            return
        self.troubles.failed[f"{wanted.feed} {wanted.batch:%Y-%m-%d}"] = str(error)
        self.troubles.in_a_row += 1
        if self.troubles.in_a_row >= HOPELESS:
            raise RunError(
                f"the Current events pages cannot be fetched: {error}",
                where=self.access.url,
                hint="check the network and the proxy, or wait if the service is busy, then run "
                "the same command again to continue",
            )
