"""The batches that a store should have, has, and lacks, and those to fetch."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from coreeval.errors import UsageError
from coreeval.tools.gdelt.sync.feeds import MIRRORED, PORTAL_FEEDS, QUARTER, Feed, Hole, find_hole
from coreeval.tools.gdelt.sync.file_reader import BATCH_S
from coreeval.tools.gdelt.sync.store_ledger import BatchRange, BatchRow, BatchState, StoreLedger

FIRST_BATCH = datetime(2015, 2, 18, 22, 45, tzinfo=UTC)
"""The time of GDELT 2's first batch."""


@dataclass(frozen=True, slots=True)
class BatchToFetch:
    """A batch of a feed to fetch."""

    feed: Feed
    batch: datetime
    known: frozenset[str] = frozenset()
    """The names of its files that were read to the end."""


SLOW_MIRROR = timedelta(days=7)
"""The age up to which a batch newer than all read batches of its feed is requested again: a mirror
may be days behind."""


def clamp_window(start: datetime, end: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    """Return a window that can be fetched; it ends now if no end is given.

    Raises:
        UsageError: the window is backwards, in the future, or before GDELT 2.
    """
    if start >= now:
        raise UsageError(
            f"the window starts in the future: {start:%Y-%m-%d %H:%M}",
            where="--since",
            hint=f"choose a time before the current one, {now:%Y-%m-%d %H:%M} UTC",
        )
    if end is not None and end <= start:
        raise UsageError(
            f"the window is reversed: from {start:%Y-%m-%d} to {end:%Y-%m-%d}",
            where="--since, --until",
            hint="pass the earlier day to --since",
        )
    if end is not None and end <= FIRST_BATCH:
        raise UsageError(
            f"GDELT 2 begins on {FIRST_BATCH:%Y-%m-%d}",
            where="--until",
            hint="choose a later window",
        )
    return max(start, FIRST_BATCH), min(end or now, now)


def batches_between(
    start: datetime, end: datetime, step: timedelta = QUARTER
) -> Iterator[datetime]:
    """Yield the batches from the step (a quarter hour or other) of `start` to before `end`."""
    size = step.total_seconds()
    at = datetime.fromtimestamp(start.timestamp() // size * size, UTC)
    while at < end:
        yield at
        at += step


def list_ranges(starts: Mapping[Feed, datetime], end: datetime, now: datetime) -> list[BatchRange]:
    """Return the batches that the window of each feed should have, as stored in the ledger."""
    return [
        BatchRange(feed, int(found[0].timestamp()), int(found[-1].timestamp()))
        for feed, start in starts.items()
        if (found := list(_available_batches(feed, start, end, now)))
    ]


def list_ranges_of_copies(copies: Mapping[Feed, Iterable[int]], now: datetime) -> list[BatchRange]:
    """Return the first and last batch read of each feed, without files of wrong dates."""
    first, last = int(FIRST_BATCH.timestamp()), int((now + QUARTER).timestamp())
    return [
        BatchRange(feed, min(found), max(found))
        for feed, batches in copies.items()
        if (found := [batch for batch in batches if first <= batch <= last])
    ]


def list_batches_to_fetch(
    starts: Mapping[Feed, datetime],
    known: Mapping[Feed, Mapping[int, BatchRow]],
    names: Mapping[Feed, Collection[str]],
    end: datetime,
    now: datetime,
) -> list[BatchToFetch]:
    """Return the batches to fetch, oldest first.

    Args:
        starts: The feeds, and the start of the window of each.
        known: The rows of each feed's batches.
        names: The names of each feed's files that were read to the end.
        end: The end of the windows.
        now: The current time.
    """
    feeds = list(starts)
    found = [
        BatchToFetch(feed, batch, _names_of_batch(feed, batch, names[feed]))
        for feed, start in starts.items()
        for batch in _unsettled_batches(
            feed, known[feed], _available_batches(feed, start, end, now), now
        )
    ]
    return sorted(found, key=lambda each: (each.batch, feeds.index(each.feed)))


def find_resume_starts(
    ledger: StoreLedger, feeds: Sequence[Feed], now: datetime
) -> dict[Feed, datetime]:
    """Return where each feed continues; empty if none of them was read.

    This is some time before its newest batch, since some are late or rewritten, or the oldest batch
    that was requested in the `SLOW_MIRROR` before that and is still open, but not before the first
    requested one. A feed without read batches continues with the others. Batches dated after `now`
    or before GDELT 2 do not count: they are from a wrong clock.
    """
    latest = int(now.timestamp())
    newest = {feed: _newest_read(ledger.batches(feed), latest) for feed in feeds}
    others = max((each for each in newest.values() if each is not None), default=None)
    if others is None:
        return {}
    return {
        feed: _resume_start(ledger, feed, others if own is None else own, now)
        for feed, own in newest.items()
    }


def _resume_start(ledger: StoreLedger, feed: Feed, newest: int, now: datetime) -> datetime:
    asked = sorted(_expand_ranges(feed, ledger.list_ranges(), now))
    since = newest - int(SLOW_MIRROR.total_seconds())
    recent = (datetime.fromtimestamp(each, UTC) for each in asked if each >= since)
    still_open = next(_unsettled_batches(feed, ledger.batches(feed), recent, now), None)
    back = datetime.fromtimestamp(newest, UTC) - MIRRORED[feed].settled
    start = min(back, still_open) if still_open else back
    return max(start, datetime.fromtimestamp(asked[0], UTC)) if asked else start


def count_ahead(ledger: StoreLedger, feeds: Sequence[Feed], now: datetime) -> int:
    """Return the number of read batches that begin a quarter hour or more after now.

    GDELT publishes batches some minutes before their time.
    """
    return ledger.count_batches_after(feeds, int((now + QUARTER).timestamp()))


def _unsettled_batches(
    feed: Feed, known: Mapping[int, BatchRow], batches: Iterable[datetime], now: datetime
) -> Iterator[datetime]:
    newest = _newest_read(known, int(now.timestamp()))
    for batch in batches:
        row = known.get(int(batch.timestamp()))
        if not _is_settled(row, now, behind=newest is None or batch.timestamp() > newest):
            yield batch


def _newest_read(known: Mapping[int, BatchRow], latest: int) -> int | None:
    """Return the newest batch up to `latest` read from the mirror or from a complete copy."""
    oldest = int(FIRST_BATCH.timestamp())
    read = (row.batch for row in known.values() if row.state == "read")
    return max((at for at in read if oldest <= at <= latest), default=None)


def _names_of_batch(feed: Feed, batch: datetime, names: Collection[str]) -> frozenset[str]:
    paths = MIRRORED[feed].paths(batch)
    return frozenset(name for path in paths if (name := path.rpartition("/")[2]) in names)


def is_gap(feed: Feed, batch: datetime, now: datetime) -> bool:
    """Return whether a missing batch should have been available by now."""
    published = MIRRORED.get(feed)
    return published is None or now >= batch + published.patience


def _step_s(feed: Feed) -> int:
    """Return the seconds between two batches of a feed."""
    published = MIRRORED.get(feed)
    return int(published.step.total_seconds()) if published else BATCH_S


def _available_batches(
    feed: Feed, start: datetime, end: datetime, now: datetime
) -> Iterator[datetime]:
    """Yield the batches of a window that may be available by now."""
    ready = now - MIRRORED[feed].ready_after
    until = ready if end >= now else min(end, ready)
    return batches_between(start, until, MIRRORED[feed].step)


def is_final(batch: datetime, feed: Feed, now: datetime) -> bool:
    """Return whether no more files are expected for a batch that the mirror has passed."""
    return now >= batch + MIRRORED[feed].settled


def _is_settled(row: BatchRow | None, now: datetime, *, behind: bool) -> bool:
    """Return whether a batch need not be requested; checks dated in the future are ignored.

    Args:
        row: The batch.
        now: The current time.
        behind: Whether nothing newer was read, so that the mirror itself may be behind.
    """
    if row is None or row.state == "part":
        return False
    published = MIRRORED[row.feed]
    patience = SLOW_MIRROR if behind and row.state == "missing" else published.settled
    final = row.batch + patience.total_seconds() <= row.checked_at <= now.timestamp()
    return final or (row.state == "read" and not published.grows)


Missing = Literal["missing", "not_fetched"]
"""The reason that a batch is missing: the mirror does not have it, or it was not fetched yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Consecutive batches of a feed that should be in the store but are not."""

    feed: Feed
    start: datetime
    end: datetime
    """The first batch after the gap."""
    batches: int
    why: Missing
    hole: Hole | None = None
    """The known hole of the archive that contains the gap; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCoverage:
    """The coverage of one day of a feed."""

    day: str
    expected: int
    present: int
    articles: int = 0
    """The number of rows in this day's files, also for signals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCoverage:
    """The coverage of one feed."""

    feed: Feed
    files: int
    rows: int
    articles: int
    bad: Mapping[str, int] = field(default_factory=dict)
    days: tuple[DayCoverage, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def batch_count(self) -> int:
        """The number of batches that should be in the store."""
        return sum(day.expected for day in self.days)

    @property
    def present(self) -> int:
        """The number of batches in the store, including partial ones."""
        return sum(day.present for day in self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCoverage:
    """The coverage of a store: its actual and its expected contents."""

    feeds: tuple[FeedCoverage, ...]
    days: Mapping[str, int]
    """The number of articles by crawl day."""
    segments: int
    ignored: Mapping[str, str]


def measure_store_coverage(ledger: StoreLedger, now: datetime) -> StoreCoverage:
    """Return the coverage of a store, as its manifest."""
    days: Counter[str] = Counter()
    segments = ledger.segments()
    for segment in segments:
        if segment.path.startswith("segments/"):
            days[segment.day] += segment.rows
    return StoreCoverage(
        feeds=tuple(_cover_feeds(ledger, now)),
        days=dict(sorted(days.items())),
        segments=len(segments),
        ignored=ledger.list_ignored_files(),
    )


def find_gaps(ledger: StoreLedger, asked: Sequence[BatchRange], now: datetime) -> list[Gap]:
    """Return the gaps inside some ranges, in order of feed and time."""
    feeds: list[Feed] = sorted({each.feed for each in asked})
    return [
        gap
        for feed in feeds
        for gap in _runs_of_gaps(feed, _expand_ranges(feed, asked, now), ledger.batches(feed), now)
    ]


def _cover_feeds(ledger: StoreLedger, now: datetime) -> Iterator[FeedCoverage]:
    asked, files = ledger.list_ranges(), ledger.files()
    feeds: list[Feed] = sorted({each.feed for each in asked} | {row.feed for row in files})
    for feed in feeds:
        known = ledger.batches(feed)
        expected = sorted(_expand_ranges(feed, asked, now) | _present_batches(known))
        own = [row for row in files if row.feed == feed]
        articles: Counter[str] = Counter()
        bad: Counter[str] = Counter()
        for row in own:
            bad.update(row.bad)
            if row.batch is not None:
                day, rewritten = _day_of(row.batch), feed in PORTAL_FEEDS and row.articles
                articles[day] = row.articles + (0 if rewritten else articles[day])
        yield FeedCoverage(
            feed=feed,
            files=len(own),
            rows=sum(row.rows for row in own),
            articles=sum(row.articles for row in own),
            bad=dict(bad),
            days=tuple(_day_coverages(expected, known, articles)),
            gaps=tuple(_runs_of_gaps(feed, expected, known, now)),
        )


def _day_coverages(
    expected: Sequence[int], known: Mapping[int, BatchRow], articles: Mapping[str, int]
) -> Iterator[DayCoverage]:
    due = Counter(_day_of(batch) for batch in expected)
    present = Counter(_day_of(batch) for batch in _present_batches(known))
    for day in sorted({*due, *articles}):
        yield DayCoverage(
            day=day, expected=due[day], present=present[day], articles=articles.get(day, 0)
        )


def _present_batches(known: Mapping[int, BatchRow]) -> set[int]:
    return {batch for batch, row in known.items() if row.state != "missing"}


def _expand_ranges(feed: Feed, asked: Iterable[BatchRange], now: datetime) -> set[int]:
    """Return the batches of one feed's ranges that GDELT 2 may have published by now."""
    step, found = _step_s(feed), set[int]()
    for each in asked:
        if each.feed == feed:
            before = max(0, int(FIRST_BATCH.timestamp()) - each.first)
            last = min(each.last, int(now.timestamp()))
            found.update(range(each.first + -(-before // step) * step, last + 1, step))
    return found


def _runs_of_gaps(
    feed: Feed, expected: Iterable[int], known: Mapping[int, BatchRow], now: datetime
) -> Iterator[Gap]:
    """Yield runs of batches that are missing for the same reason."""
    run: list[int] = []
    last: tuple[Missing, Hole | None] | None = None
    for batch in sorted(expected):
        moment = datetime.fromtimestamp(batch, UTC)
        row = known.get(batch)
        state: BatchState | None = row.state if row else None
        why = _why_missing(feed, state, moment, now)
        if run and (why != last or batch != run[-1] + _step_s(feed)):
            yield _make_gap(feed, run, last)
            run = []
        if why:
            run.append(batch)
        last = why
    if run:
        yield _make_gap(feed, run, last)


def _why_missing(
    feed: Feed, state: BatchState | None, batch: datetime, now: datetime
) -> tuple[Missing, Hole | None] | None:
    if state in ("read", "part") or not is_gap(feed, batch, now):
        return None
    return "missing" if state else "not_fetched", find_hole(batch, feed)


def _make_gap(feed: Feed, run: Sequence[int], why: tuple[Missing, Hole | None] | None) -> Gap:
    assert why
    return Gap(
        feed=feed,
        start=datetime.fromtimestamp(run[0], UTC),
        end=datetime.fromtimestamp(run[-1] + _step_s(feed), UTC),
        batches=len(run),
        why=why[0],
        hole=why[1],
    )


def _day_of(batch: int) -> str:
    return datetime.fromtimestamp(batch, UTC).date().isoformat()
