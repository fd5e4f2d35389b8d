"""Adds news to a store, from the mirror or from files in a folder.

The first signal requests a clean stop, the second raises KeyboardInterrupt.
"""

import errno
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import FrameType

from coreeval.errors import KnowledgeError, RunError, RunLocked
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import hold_lock, path_to_text
from coreeval.tools.formatting import list_first
from coreeval.tools.gdelt.index.store_catalog import StoreLayout
from coreeval.tools.gdelt.rows import UNDERSTOOD, find_files
from coreeval.tools.gdelt.sync.batches import (
    clamp_window,
    count_ahead,
    find_gaps,
    find_resume_starts,
    list_batches_to_fetch,
    list_ranges,
    list_ranges_of_copies,
)
from coreeval.tools.gdelt.sync.downloads import (
    MIRROR,
    Downloads,
    FetchTroubles,
    normalise_mirror_url,
)
from coreeval.tools.gdelt.sync.feeds import PORTAL_FEEDS, USUAL_FEEDS, Feed
from coreeval.tools.gdelt.sync.file_reader import Offer
from coreeval.tools.gdelt.sync.intake import Delivery, Intake, IntakeCounts
from coreeval.tools.gdelt.sync.portal_api import check_contact, normalise_api_url
from coreeval.tools.gdelt.sync.portal_sync import PortalAccess, PortalPages
from coreeval.tools.gdelt.sync.store_ledger import GO_ON, BatchRange, StoreLedger, open_ledger


class StopRequest:
    """Whether a stop was requested, and the listeners to notify."""

    def __init__(self) -> None:
        self.asked = False
        self._listeners: list[Callable[[], None]] = []

    def ask(self) -> None:
        """Request a stop after the current files."""
        self.asked = True
        for listener in self._listeners:
            listener()

    @contextmanager
    def telling(self, listener: Callable[[], None]) -> Iterator[None]:
        """Also call a listener if a stop is requested inside the block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Request a stop on SIGINT and SIGTERM; outside the main thread, do not handle them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._handle)
                  for number in (signal.SIGINT, signal.SIGTERM)}  # fmt: skip
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.ask()


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """The progress of a sync."""

    done: int
    total: int
    """The number of files in a folder, or of batches on the mirror."""
    articles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The surroundings of a sync: its listener, its clock, and its final action."""

    watch: Callable[[SyncProgress], None] = lambda _: None
    now: Clock = utc_now
    finish: Callable[[Path], object] = lambda _: None
    """Called with the store while its lock is held, unless the sync was stopped."""
    pause_s: float = 1.0
    """The seconds before a download is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """The result of a sync."""

    store: Path
    counts: IntakeCounts
    gaps: int
    """The number of batches that should be in the store but are not."""
    known_gaps: int = 0
    """The number of these that are missing from GDELT's own archive."""
    troubles: FetchTroubles = field(default_factory=FetchTroubles)
    ahead: int = 0
    """The number of batches of the store that are dated in the future: a clock was wrong."""
    stopped: bool = False
    """Whether a signal ended it; running the same command again continues it."""
    seconds: float = 0.0


def sync_mirror(
    store: Path,
    *,
    start: datetime | None,
    end: datetime | None = None,
    feeds: Sequence[Feed] = USUAL_FEEDS,
    mirror: str = MIRROR,
    portal: PortalAccess | None = None,
    around: Around | None = None,
) -> SyncResult:
    """Fetch the files and pages of a window that the store does not have.

    Args:
        store: The store's folder; created if needed.
        start: The window's start; None continues from the newest batch of the store.
        end: The window's end; None means now.
        feeds: The feeds to fetch.
        mirror: The URL above `gdeltv2/`.
        portal: The settings for pages of current events; they are only fetched with a contact.
        around: The progress listener, the clock, and the final action.

    Raises:
        UsageError: the window, an address or the contact is invalid, or the folder is not a store.
        RunLocked: another sync is working on the store.
        RunError: the mirror cannot be reached, the disk is full, or a reader process died.
    """
    around, url = around or Around(), normalise_mirror_url(mirror)
    access = _check_access(feeds, portal or PortalAccess())
    now = around.now()
    if start is not None:
        clamp_window(start, end, now)

    def work(at: _Work) -> SyncResult:
        starts = {feed: start for feed in feeds} if start else _resume(at.ledger, feeds, store, now)
        starts = {feed: clamp_window(since, end, now)[0] for feed, since in starts.items()}
        until = min(end or now, now)
        known = {feed: at.ledger.batches(feed) for feed in feeds}
        names = {feed: at.ledger.whole_files(feed) for feed in feeds}
        missing = list_batches_to_fetch(starts, known, names, until, now)
        asked = list_ranges(starts, until, now)
        at.ledger.note_ranges(asked)
        downloads = Downloads(
            [each for each in missing if each.feed not in PORTAL_FEEDS],
            at.layout.downloads, mirror=url, now=around.now, pause_s=around.pause_s,
        )  # fmt: skip
        pages = PortalPages(
            [each for each in missing if each.feed in PORTAL_FEEDS],
            at.layout.downloads / "pages", access, around.now, around.pause_s,
        )  # fmt: skip
        with downloads, pages, at.stop.telling(downloads.stop), at.stop.telling(pages.stop):
            counts = at.take(itertools.chain(downloads, pages), len(missing))
        return at.result(counts, asked, downloads.troubles.joined(pages.troubles))

    return _work_on_store(store, around, work)


def _check_access(feeds: Sequence[Feed], portal: PortalAccess) -> PortalAccess:
    if not set(PORTAL_FEEDS).intersection(feeds):
        return portal
    return PortalAccess(contact=check_contact(portal.contact), url=normalise_api_url(portal.url))


def sync_folder(store: Path, source: Path, *, around: Around | None = None) -> SyncResult:
    """Read the GDELT files in a folder, or one file, that the store has not read yet.

    Raises:
        KnowledgeError: there is no such folder, none of its files has news, or this is not a store.
        RunLocked: another sync is working on the store.
        RunError: the disk is full, or a reader process died.
    """
    around = around or Around()
    if not source.exists():
        raise KnowledgeError(
            "the news folder does not exist",
            where=str(source),
            hint=f"set --from to a folder of {UNDERSTOOD}, Events or Mentions",
        )

    def work(at: _Work) -> SyncResult:
        files = [file for file in find_files(source) if not file.is_relative_to(store)]
        offers = (Offer(path=file, name=_name_below(file, source)) for file in files)
        counts = at.take((Delivery(offers=(offer,)) for offer in offers), len(files))
        if not at.stop.asked:
            _require_news(source, counts)
        asked = list_ranges_of_copies(counts.copies, around.now())
        at.ledger.note_ranges(asked)
        return at.result(counts, asked, FetchTroubles())

    return _work_on_store(store, around, work)


# -- what both do ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Work:
    """An open store and the surroundings of its sync."""

    layout: StoreLayout
    ledger: StoreLedger
    stop: StopRequest
    around: Around

    def take(self, deliveries: Iterable[Delivery], total: int) -> IntakeCounts:
        """Read deliveries until there are no more or a stop is requested."""

        def tell(done: int, articles: int) -> None:
            self.around.watch(SyncProgress(done, total, articles))

        intake = Intake(self.layout, self.ledger, now=self.around.now, tell=tell)
        intake.take(self._until_stopped(deliveries))
        return intake.counts

    def result(
        self, counts: IntakeCounts, asked: Sequence[BatchRange], troubles: FetchTroubles
    ) -> SyncResult:
        """Return the result of the sync."""
        now = self.around.now()
        gaps = find_gaps(self.ledger, asked, now)
        feeds = sorted({*counts.copies, *(each.feed for each in asked)})
        return SyncResult(
            store=self.layout.root,
            counts=counts,
            gaps=sum(gap.batches for gap in gaps),
            known_gaps=sum(gap.batches for gap in gaps if gap.hole),
            troubles=troubles,
            ahead=count_ahead(self.ledger, feeds, now),
        )

    def _until_stopped(self, deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
        for delivery in deliveries:
            if self.stop.asked:
                return
            yield delivery


def _work_on_store(store: Path, around: Around, work: Callable[[_Work], SyncResult]) -> SyncResult:
    """Run work on a locked store, which a signal stops cleanly."""
    layout, stop, started = StoreLayout(store), StopRequest(), time.monotonic()
    layout.prepare()
    with (
        _explain_full_disk(layout),
        _lock_store(layout),
        stop.on_signals(),
        open_ledger(layout.ledger) as ledger,
    ):
        layout.clear_leftovers(segment.path for segment in ledger.segments())
        done = work(_Work(layout, ledger, stop, around))
        if not stop.asked:
            around.finish(store)
    return replace(done, stopped=stop.asked, seconds=time.monotonic() - started)


@contextmanager
def _lock_store(layout: StoreLayout) -> Iterator[None]:
    """Hold the store's lock.

    Raises:
        RunLocked: another process holds it.
    """
    taken = RunLocked(
        "another sync of this store is running",
        where=str(layout.root),
        hint="wait until that sync ends; the store stays readable meanwhile",
    )
    with hold_lock(layout.lock, taken):
        yield


@contextmanager
def _explain_full_disk(layout: StoreLayout) -> Iterator[None]:
    """Report a full disk in one message.

    Raises:
        RunError: the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise RunError(
            "the disk is full", where=str(error.filename or layout.root), hint=GO_ON
        ) from None


def _resume(
    ledger: StoreLedger, feeds: Sequence[Feed], store: Path, now: datetime
) -> dict[Feed, datetime]:
    """Return where each feed continues.

    Raises:
        KnowledgeError: nothing of the feeds was read, or only batches dated in the future.
    """
    if starts := find_resume_starts(ledger, feeds, now):
        return starts
    ahead = count_ahead(ledger, feeds, now)
    what = f": its {ahead:,} batches are dated after {now:%Y-%m-%d %H:%M} UTC" if ahead else ""
    raise KnowledgeError(
        f"the store has no news to continue from yet{what}",
        where=str(store),
        hint="choose how far back to start: coreeval gdelt sync --days 7"
        + (" (check this machine's clock)" if ahead else ""),
    )


def _name_below(file: Path, source: Path) -> str:
    return path_to_text(file.name if file == source else file.relative_to(source).as_posix())


def _require_news(source: Path, counts: IntakeCounts) -> None:
    if counts.files or counts.known:
        return
    left_out = list_first([f"{name} ({why})" for name, why in counts.ignored.items()], 5)
    found = f"found {left_out}" if left_out else "the folder contains no files"
    raise KnowledgeError(
        "there are no GDELT files at this path",
        where=str(source),
        hint=f"{found}; supported files: {UNDERSTOOD}, Events and Mentions (plain, .gz or .zip)",
    )
