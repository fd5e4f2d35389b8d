"""Which batches are to be fetched: those of a window that are not settled yet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from coreeval.errors import UsageError
from coreeval.tools.gdelt.holes import QUARTER
from coreeval.tools.gdelt.store.feeds import MIRRORED, Feed
from coreeval.tools.gdelt.store.ledger import Asked, BatchRow

FIRST = datetime(2015, 2, 18, 22, 45, tzinfo=UTC)
"""GDELT 2's first batch."""
PATIENCE = timedelta(hours=3)
"""A batch that is not there so long after its time is a gap; before, it may still come."""
SETTLED = timedelta(days=1)
"""A gap that was still one so long after its time is not asked for again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A batch of a feed that is to be fetched."""

    feed: Feed
    batch: datetime


def checked_window(
    start: datetime, end: datetime | None, now: datetime
) -> tuple[datetime, datetime]:
    """Return a window that can be fetched; it ends now where no end is given.

    Raises:
        UsageError: it is backwards, in the future, or before GDELT 2.
    """
    if start >= now:
        raise UsageError(
            f"the window starts in the future: {start:%Y-%m-%d %H:%M}",
            where="--since",
            hint=f"it is {now:%Y-%m-%d %H:%M} UTC; GDELT has what was crawled before",
        )
    if end is not None and end <= start:
        raise UsageError(
            f"the window is backwards: from {start:%Y-%m-%d} to {end:%Y-%m-%d}",
            where="--since, --until",
            hint="give the earlier day to --since",
        )
    if end is not None and end <= FIRST:
        raise UsageError(
            f"GDELT 2 begins on {FIRST:%Y-%m-%d}", where="--until", hint="move the window"
        )
    return max(start, FIRST), min(end or now, now)


def batches_between(start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the batches from the quarter hour of `start` to before `end`."""
    at = datetime.fromtimestamp(start.timestamp() // 900 * 900, UTC)
    while at < end:
        yield at
        at += QUARTER


def asked_for(feeds: Iterable[Feed], start: datetime, end: datetime, now: datetime) -> list[Asked]:
    """Return what a window should bring, as the ledger notes it."""
    return [
        Asked(feed, int(found[0].timestamp()), int(found[-1].timestamp()))
        for feed in feeds
        if (found := list(_published(feed, start, end, now)))
    ]


def wanted(
    feeds: Sequence[Feed],
    known: Mapping[Feed, Mapping[int, BatchRow]],
    start: datetime,
    end: datetime,
    now: datetime,
) -> list[Wanted]:
    """Return the batches to fetch, oldest first."""
    found = [
        Wanted(feed, batch)
        for feed in feeds
        for batch in _published(feed, start, end, now)
        if not _is_settled(known[feed].get(int(batch.timestamp())), now)
    ]
    return sorted(found, key=lambda each: (each.batch, feeds.index(each.feed)))


def is_gap(batch: datetime, now: datetime) -> bool:
    """Tell whether a batch that is not there should have been."""
    return now >= batch + PATIENCE


def _published(feed: Feed, start: datetime, end: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the batches of a window that can be there by now."""
    ready = now - MIRRORED[feed].ready_after
    until = ready if end >= now else min(end, ready)
    return batches_between(start, until)


def _is_settled(row: BatchRow | None, now: datetime) -> bool:
    """Tell whether a batch need not be asked for; a look from the future was a clock's mistake."""
    if row is None or row.state == "part":
        return False
    late = row.batch + SETTLED.total_seconds()
    return row.state == "read" or late <= row.checked_at <= now.timestamp()
