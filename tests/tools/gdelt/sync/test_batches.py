"""The manifest: what should be there, what is, and each gap with its reason."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coreeval.tools.gdelt.sync.batches import (
    FIRST_BATCH,
    FeedCoverage,
    find_resume_starts,
    measure_store_coverage,
)
from coreeval.tools.gdelt.sync.feeds import HOLES, Feed, find_hole
from coreeval.tools.gdelt.sync.store_ledger import (
    BatchRange,
    BatchRow,
    BatchState,
    FileRow,
    LedgerEntry,
    open_ledger,
)
from tests.tools.gdelt.sync.kit import NOW, quarters

START = NOW - timedelta(days=2)
(HOLE,) = HOLES


def batch(at: datetime, state: BatchState, feed: Feed = "gkg") -> BatchRow:
    return BatchRow(feed, int(at.timestamp()), state, int(NOW.timestamp()))


def file(number: int, at: datetime, articles: int) -> FileRow:
    return FileRow(
        id=number, name=f"{number}", feed="gkg", batch=int(at.timestamp()), size=1, md5=f"{number}",
        state="read", rows=articles + 1, articles=articles, bad={"untitled": 1}, read_at=0,
    )  # fmt: skip


def covered(path: Path, *batches: BatchRow, files: tuple[FileRow, ...] = ()) -> FeedCoverage:
    """Return the coverage of a feed of which eight quarters from `START` were asked for."""
    eight = [int(at.timestamp()) for at in quarters(START, 8)]
    with open_ledger(path / "store.db") as ledger:
        ledger.note_ranges([BatchRange("gkg", eight[0], eight[-1])])
        ledger.commit(LedgerEntry(batches=list(batches), files=list(files)))
        (feed,) = measure_store_coverage(ledger, NOW).feeds
    return feed


def test_a_whole_window_has_no_gap(tmp_path: Path) -> None:
    rows = [batch(at, "read") for at in quarters(START, 8)]
    feed = covered(tmp_path, *rows, files=(file(1, START, 30), file(2, START, 12)))
    assert (feed.batch_count, feed.present, feed.gaps) == (8, 8, ())
    assert [(day.day, day.articles) for day in feed.days] == [("2026-10-03", 42)]
    assert (feed.files, feed.rows, dict(feed.bad)) == (2, 44, {"untitled": 2})


def test_gaps_are_runs_of_one_reason(tmp_path: Path) -> None:
    states: list[BatchState | None] = [
        "read", "missing", "missing", "part", None, None, "missing", "read",
    ]  # fmt: skip
    pairs = zip(quarters(START, 8), states, strict=True)
    feed = covered(tmp_path, *(batch(at, state) for at, state in pairs if state))
    times = quarters(START, 8)
    assert [(gap.start, gap.end, gap.batches, gap.why) for gap in feed.gaps] == [
        (times[1], times[3], 2, "missing"),
        (times[4], times[6], 2, "not_fetched"),
        (times[6], times[7], 1, "missing"),
    ]
    assert (feed.present, feed.batch_count) == (3, 8)


def test_what_nobody_asked_for_is_no_gap(tmp_path: Path) -> None:
    long_ago = START - timedelta(days=400)
    feed = covered(
        tmp_path, batch(long_ago, "part"), *(batch(at, "read") for at in quarters(START, 8))
    )
    assert (feed.batch_count, feed.present, feed.gaps) == (9, 9, ())


def test_what_may_still_come_is_no_gap(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "store.db") as ledger:
        last = int(NOW.timestamp())
        ledger.note_ranges([BatchRange("gkg", last - 900, last)])
        (feed,) = measure_store_coverage(ledger, NOW).feeds
    assert (feed.batch_count, feed.present, feed.gaps) == (2, 0, ())


def test_a_known_hole_is_told_from_other_gaps(tmp_path: Path) -> None:
    first, last = HOLE.start - timedelta(minutes=30), HOLE.end + timedelta(minutes=15)
    with open_ledger(tmp_path / "store.db") as ledger:
        ledger.note_ranges([BatchRange("events", int(first.timestamp()), int(last.timestamp()))])
        (feed,) = measure_store_coverage(ledger, NOW).feeds
    before, inside, after = feed.gaps
    assert (before.batches, inside.batches, after.batches) == (2, HOLE.batches, 2)
    assert inside.hole == HOLE and before.hole is after.hole is None
    assert (inside.start, inside.end) == (HOLE.start, HOLE.end)


@pytest.mark.timeout(60)
def test_ranges_with_wrong_dates_count_what_gdelt_may_have(tmp_path: Path) -> None:
    wrong = [int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1, 2999)]
    with open_ledger(tmp_path / "store.db") as ledger:
        ledger.note_ranges([BatchRange("gkg", wrong[0], wrong[1])])
        ledger.commit(LedgerEntry(batches=[BatchRow("gkg", at, "read", 0) for at in wrong]))
        (feed,) = measure_store_coverage(ledger, NOW).feeds
        assert find_resume_starts(ledger, ["gkg"], NOW) == {}
    assert feed.batch_count == (NOW - FIRST_BATCH) // timedelta(minutes=15) + 1 + len(wrong)
    assert feed.gaps[0].start == FIRST_BATCH


def test_the_hole_of_2025() -> None:
    assert HOLE.batches == 1664
    assert find_hole(HOLE.start, "gkg") == HOLE and find_hole(HOLE.end, "gkg") is None
    assert find_hole(HOLE.start, "gal") is None


@pytest.mark.parametrize("count", [1, 1200])
def test_a_ledger_takes_many_rows_at_once(tmp_path: Path, count: int) -> None:
    with open_ledger(tmp_path / "store.db") as ledger:
        rows = [batch(START + timedelta(minutes=15) * number, "read") for number in range(count)]
        ledger.commit(LedgerEntry(batches=rows, ignored={"a": "x"}))
        ledger.commit(LedgerEntry(batches=rows, ignored={"a": "y"}))
        assert len(ledger.batches("gkg")) == count
        assert ledger.list_ignored_files() == {"a": "y"}
