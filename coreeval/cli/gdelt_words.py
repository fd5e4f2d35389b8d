"""What `coreeval gdelt sync` and `coverage` say, for programs and for people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreeval.cli.output import Document, brief, one_line

if TYPE_CHECKING:
    from coreeval.tools.gdelt.sync.batches import FeedCoverage, Gap, StoreCoverage
    from coreeval.tools.gdelt.sync.sync import SyncResult

MOST_DAYS = 45
"""Days that are shown one by one; of more, months are."""
MOST_NAMED = 5
_BAR = 10
_REASONS = {
    "columns": "not the columns of such a file",
    "collection": "no web page",
    "untitled": "no title",
    "no_url": "no address",
    "no_date": "no date",
    "invalid_json": "no valid JSON",
    "damaged": "the file ends or breaks there",
    "too_large": "the file is too large when unpacked",
}
_WHY = {"missing": "not on the mirror", "not_fetched": "not fetched"}
Json = Mapping[str, Any]


def synced_document(done: "SyncResult") -> Document:
    """Return what `sync --json` prints."""
    counts = done.counts
    return {
        "store": str(done.store),
        "files": counts.files,
        "rows": counts.rows,
        "articles": counts.articles,
        "bad_rows": counts.bad.total(),
        "gaps": done.gaps,
        "known_gaps": done.known_gaps,
        "bad": dict(sorted(counts.bad.items())),
        "known_files": counts.known,
        "ignored": counts.ignored,
        "failed": done.troubles.failed,
        "late": done.troubles.late,
        "bytes": counts.size,
        "seconds": round(done.seconds, 1),
        "stopped": done.stopped,
    }


def synced_lines(done: "SyncResult") -> Iterator[str]:
    """Yield what a sync came to."""
    counts, state = done.counts, "stopped" if done.stopped else "done"
    pace = f", {counts.rows / done.seconds:,.0f} rows a second" if done.seconds > 1 else ""
    yield (
        f"{state}: {counts.files:,} files, {counts.rows:,} rows, {counts.articles:,} articles"
        f" in {done.seconds:.0f} s{pace}"
    )
    for reason, count in counts.bad.most_common():
        yield f"  bad rows    {count:>9,}   {_REASONS.get(reason, reason)}"
    if counts.known:
        yield f"  known files {counts.known:>9,}   read before, not read again"
    yield from _left_out("left out", counts.ignored)
    yield from _left_out("not fetched", done.troubles.failed)
    if done.troubles.late:
        yield f"  not yet     {done.troubles.late:>9,}   batches may still come: sync again later"
    if done.gaps:
        hole = f", {done.known_gaps:,} of them in a known hole" if done.known_gaps else ""
        yield f"  gaps        {done.gaps:>9,}   batches{hole}"
    yield f"store: {brief(done.store)}"
    if done.stopped or done.troubles.failed:
        yield "go on: give the same command again"
    else:
        yield "look:  coreeval gdelt coverage"


def _left_out(what: str, found: Mapping[str, str]) -> Iterator[str]:
    if found:
        yield (
            f"  {what:<11} {len(found):>9,}   "
            + "; ".join(
                one_line(f"{name}: {why}") for name, why in list(found.items())[:MOST_NAMED]
            )
            + ("; …" if len(found) > MOST_NAMED else "")
        )


# -- coverage -------------------------------------------------------------------------------------


def coverage_document(store: Path, found: "StoreCoverage") -> Document:
    """Return what `coverage --json` prints."""
    from coreeval.tools.gdelt.sync.feeds import HOLES

    size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    return {
        "store": str(store),
        "articles": sum(found.days.values()),
        "days": [{"day": day, "articles": count} for day, count in found.days.items()],
        "feeds": [_feed_document(feed) for feed in found.feeds],
        "holes": [
            {"start": _minute(hole.start), "end": _minute(hole.end), "batches": hole.batches,
             "reason": hole.reason}
            for hole in HOLES
        ],
        "segments": found.segments,
        "bytes": size,
        "ignored": dict(found.ignored),
    }  # fmt: skip


def _feed_document(feed: "FeedCoverage") -> Json:
    return {
        "feed": feed.feed,
        "files": feed.files,
        "rows": feed.rows,
        "articles": feed.articles,
        "bad": dict(feed.bad),
        "expected": feed.batch_count,
        "present": feed.present,
        "days": [
            {"day": day.day, "expected": day.expected, "present": day.present,
             "articles": day.articles}
            for day in feed.days
        ],
        "gaps": [_gap_document(gap) for gap in feed.gaps],
    }  # fmt: skip


def _gap_document(gap: "Gap") -> Json:
    return {
        "start": _minute(gap.start),
        "end": _minute(gap.end),
        "batches": gap.batches,
        "why": gap.why,
        "known_hole": gap.hole.reason if gap.hole else None,
    }


def _minute(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


def coverage_lines(document: Json) -> Iterator[str]:
    """Yield a store's coverage as a table, a line a day or a month."""
    days, size = document["days"], document["bytes"]
    a_day = f", {size / len(days) / 1e6:,.1f} MB a day" if days else ""
    yield (
        f"{document['articles']:,} articles of {len(days):,} days of crawl in"
        f" {brief(Path(document['store']))} ({size / 1e6:,.1f} MB{a_day})"
    )
    for feed in document["feeds"]:
        yield ""
        yield from _feed_lines(feed)
    yield ""
    yield "known holes of GDELT's archive, in every store:"
    for hole in document["holes"]:
        yield f"  {_span(hole)}  {hole['reason']}"


def _feed_lines(feed: Json) -> Iterator[str]:
    bad = sum(feed["bad"].values())
    yield (
        f"{feed['feed']}: {feed['files']:,} files, {feed['rows']:,} rows"
        + (f", {bad:,} bad" if bad else "")
        + (f"; {feed['present']:,} of {feed['expected']:,} batches" if feed["expected"] else "")
    )
    for name, rows in _grouped(feed["days"]):
        yield f"  {name:<10}  {_share(rows)}  {sum(row['articles'] for row in rows):>9,} rows"
    for gap in feed["gaps"]:
        why = gap["known_hole"] or _WHY[gap["why"]]
        yield f"  gap {_span(gap)}  {gap['batches']:,} batches: {why}"


def _grouped(days: Sequence[Json]) -> Iterable[tuple[str, list[Json]]]:
    length = 10 if len(days) <= MOST_DAYS else 7
    by_name = groupby(days, key=lambda row: row["day"][:length])
    return [(name, list(rows)) for name, rows in by_name]


def _share(rows: Sequence[Json]) -> str:
    """Return a bar and the batches that are there of those that should be."""
    expected, present = (sum(row[key] for row in rows) for key in ("expected", "present"))
    full = round(_BAR * present / expected) if expected else 0
    return f"{'#' * full:.<{_BAR}} {present:>5,}/{expected:<5,}"


def _span(found: Json) -> str:
    return " to ".join(found[key][:16].replace("T", " ") for key in ("start", "end"))
