"""The coverage manifest: which batches a store should have, which it has, and where it has gaps."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from coreeval.tools.gdelt.holes import Hole, hole_at
from coreeval.tools.gdelt.store.feeds import Feed
from coreeval.tools.gdelt.store.ledger import Asked, BatchRow, BatchState, Ledger
from coreeval.tools.gdelt.store.plan import is_gap
from coreeval.tools.gdelt.store.reading import BATCH_S

Missing = Literal["missing", "not_fetched"]
"""Why a batch is not there: the mirror has none, or nobody has come to it yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Consecutive batches of a feed that should be there and are not."""

    feed: Feed
    start: datetime
    end: datetime
    """The first batch that is not among them."""
    batches: int
    why: Missing
    hole: Hole | None = None
    """The known hole of the archive that they lie in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCoverage:
    """One day of a feed."""

    day: str
    expected: int
    present: int
    articles: int = 0
    """Rows of the files of this day; of signals, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCoverage:
    """One feed."""

    feed: Feed
    files: int
    rows: int
    articles: int
    bad: Mapping[str, int] = field(default_factory=dict)
    days: tuple[DayCoverage, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def expected(self) -> int:
        """Batches that should be there."""
        return sum(day.expected for day in self.days)

    @property
    def present(self) -> int:
        """Batches that are there, be it in part."""
        return sum(day.present for day in self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCoverage:
    """What a store holds of what it should hold."""

    feeds: tuple[FeedCoverage, ...]
    days: Mapping[str, int]
    """Articles by the day of their crawl."""
    segments: int
    ignored: Mapping[str, str]


def coverage_of(ledger: Ledger, now: datetime) -> StoreCoverage:
    """Return the manifest of a store."""
    days: Counter[str] = Counter()
    segments = ledger.segments()
    for segment in segments:
        if segment.path.startswith("segments/"):
            days[segment.day] += segment.rows
    return StoreCoverage(
        feeds=tuple(_feeds(ledger, now)),
        days=dict(sorted(days.items())),
        segments=len(segments),
        ignored=ledger.ignored(),
    )


def gaps_in(ledger: Ledger, asked: Sequence[Asked], now: datetime) -> list[Gap]:
    """Return the gaps inside some stretches, in order of feed and time."""
    feeds: list[Feed] = sorted({each.feed for each in asked})
    return [
        gap
        for feed in feeds
        for gap in _gaps(feed, _asked_batches(feed, asked), ledger.batches(feed), now)
    ]


def _feeds(ledger: Ledger, now: datetime) -> Iterator[FeedCoverage]:
    asked, files = ledger.asked(), ledger.files()
    feeds: list[Feed] = sorted({each.feed for each in asked} | {row.feed for row in files})
    for feed in feeds:
        known = ledger.batches(feed)
        expected = sorted(_asked_batches(feed, asked) | _present(known))
        own = [row for row in files if row.feed == feed]
        articles: Counter[str] = Counter()
        bad: Counter[str] = Counter()
        for row in own:
            bad.update(row.bad)
            if row.batch is not None:
                articles[_day(row.batch)] += row.articles
        yield FeedCoverage(
            feed=feed,
            files=len(own),
            rows=sum(row.rows for row in own),
            articles=sum(row.articles for row in own),
            bad=dict(bad),
            days=tuple(_days(expected, known, articles)),
            gaps=tuple(_gaps(feed, expected, known, now)),
        )


def _days(
    expected: Sequence[int], known: Mapping[int, BatchRow], articles: Mapping[str, int]
) -> Iterator[DayCoverage]:
    due = Counter(_day(batch) for batch in expected)
    present = Counter(_day(batch) for batch in _present(known))
    for day in sorted({*due, *articles}):
        yield DayCoverage(
            day=day, expected=due[day], present=present[day], articles=articles.get(day, 0)
        )


def _present(known: Mapping[int, BatchRow]) -> set[int]:
    return {batch for batch, row in known.items() if row.state != "missing"}


def _asked_batches(feed: Feed, asked: Iterable[Asked]) -> set[int]:
    """Return every batch of the stretches of one feed."""
    found: set[int] = set()
    for each in asked:
        if each.feed == feed:
            found.update(range(each.first, each.last + 1, BATCH_S))
    return found


def _gaps(
    feed: Feed, expected: Iterable[int], known: Mapping[int, BatchRow], now: datetime
) -> Iterator[Gap]:
    """Yield runs of batches that are not there for the same reason."""
    run: list[int] = []
    last: tuple[Missing, Hole | None] | None = None
    for batch in sorted(expected):
        moment = datetime.fromtimestamp(batch, UTC)
        row = known.get(batch)
        state: BatchState | None = row.state if row else None
        why = _why(feed, state, moment, now)
        if run and (why != last or batch != run[-1] + BATCH_S):
            yield _gap(feed, run, last)
            run = []
        if why:
            run.append(batch)
        last = why
    if run:
        yield _gap(feed, run, last)


def _why(
    feed: Feed, state: BatchState | None, batch: datetime, now: datetime
) -> tuple[Missing, Hole | None] | None:
    if state in ("read", "part") or not is_gap(batch, now):
        return None
    return "missing" if state else "not_fetched", hole_at(batch, feed)


def _gap(feed: Feed, run: Sequence[int], why: tuple[Missing, Hole | None] | None) -> Gap:
    assert why
    return Gap(
        feed=feed,
        start=datetime.fromtimestamp(run[0], UTC),
        end=datetime.fromtimestamp(run[-1] + BATCH_S, UTC),
        batches=len(run),
        why=why[0],
        hole=why[1],
    )


def _day(batch: int) -> str:
    return datetime.fromtimestamp(batch, UTC).date().isoformat()
