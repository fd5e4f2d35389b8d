"""`coreeval gdelt coverage`: the news in a store by publication time and by crawl day."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from coreeval.api.news import find_feed_source, measure_news_coverage
from coreeval.cli.gdelt_query import StoreOption
from coreeval.cli.output import AsJson, Document, brief, note, show
from coreeval.tools.formatting import format_quantity, plural
from coreeval.tools.gdelt.left_out import describe_left_out

MOST_DAYS = 45
"""The most days shown one by one; longer spans are shown by month."""
_BAR = 10
_LARGE = 1e5
"""The fewest bytes per day for which sizes are shown by day."""
_ORIGINS = {"current_events": " (Wikipedia, CC BY-SA 4.0)", "file": " (your own news)"}
_WHY = {"missing": "not on the mirror", "not_fetched": "not fetched"}
Json = Mapping[str, Any]


def coverage(store: StoreOption = None, as_json: AsJson = False) -> None:
    """Show which days the store covers, and where it has gaps."""
    document: Document = measure_news_coverage(store).document
    for remark in document["notes"]:
        note(remark)
    show(document, as_json, lambda: "\n".join(coverage_lines(document)))


def coverage_lines(document: Json) -> Iterator[str]:
    """Yield a store's coverage as a table, with one line per day or month."""
    days, size = document["days"], document["bytes"]
    a_day = f", {size / len(days) / 1e6:,.1f} MB a day" if size >= _LARGE * len(days) > 0 else ""
    yield (
        f"{format_quantity(document['articles'], 'article')} of "
        f"{format_quantity(len(days), 'crawl day')} in "
        f"{brief(Path(document['store']))} ({size / 1e6:,.1f} MB{a_day})"
    )
    yield ""
    yield from _published_lines(document)
    if left_out := describe_left_out(document["not_searchable"]):
        yield left_out
    for feed in document["feeds"]:
        yield ""
        yield from _feed_lines(feed)
    yield ""
    yield "known gaps in GDELT's archive, which every store has:"
    for hole in document["holes"]:
        yield f"  {_format_span(hole)}  {hole['reason']}"


def _published_lines(document: Json) -> Iterator[str]:
    """Yield the publication times of the news available to runs."""
    days = document["published"]
    if not days:
        yield "published: no searchable articles"
        return
    count, first, last = sum(row["articles"] for row in days), days[0]["day"], days[-1]["day"]
    articles = format_quantity(count, "searchable article")
    yield f"published: {articles} on {format_quantity(len(days), 'day')}, {first} to {last}"
    grouped = [(name, sum(row["articles"] for row in rows)) for name, rows in _group_days(days)]
    most = max(articles for _, articles in grouped)
    for name, articles in grouped:
        yield f"  {name:<10}  {'#' * max(1, round(_BAR * articles / most)):<{_BAR}}  {articles:>9,}"
    yield "  kinds of publication time: " + ", ".join(
        f"{kind} {articles:,}" for kind, articles in document["precision"].items()
    )


def _feed_lines(feed: Json) -> Iterator[str]:
    bad, unit = sum(feed["bad"].values()), _unit(feed["feed"], feed["expected"])
    named = feed["feed"] + _ORIGINS.get(feed["source"], "")
    yield (
        f"{named}: {format_quantity(feed['files'], 'file')}, "
        f"{format_quantity(feed['rows'], 'row')}"
        + (f", {bad:,} bad" if bad else "")
        + (f"; {feed['present']:,} of {feed['expected']:,} {unit}" if feed["expected"] else "")
    )
    dated = any(row["articles"] for row in feed["days"])  # false if no batch is complete
    for name, rows in _group_days(feed["days"]):
        counted = f"  {sum(row['articles'] for row in rows):>9,} rows" if dated else ""
        yield f"  {name:<10}  {_share(rows)}{counted}"
    for gap in feed["gaps"]:
        absent = "no page" if _is_daily(feed["feed"]) and gap["why"] == "missing" else ""
        why = gap["known_hole"] or absent or _WHY[gap["why"]]
        batches = f"{gap['batches']:,} {_unit(feed['feed'], gap['batches'])}"
        yield f"  gap {_format_span(gap)}  {batches}: {why}"


def _unit(feed: str, number: int) -> str:
    return plural(number, "day") if _is_daily(feed) else plural(number, "batch", "batches")


def _is_daily(feed: str) -> bool:
    return find_feed_source(feed) == "current_events"


def _group_days(days: Sequence[Json]) -> Iterable[tuple[str, list[Json]]]:
    length = 10 if len(days) <= MOST_DAYS else 7
    by_name = groupby(days, key=lambda row: row["day"][:length])
    return [(name, list(rows)) for name, rows in by_name]


def _share(rows: Sequence[Json]) -> str:
    """Return a bar and the number of batches present out of those expected."""
    expected, present = (sum(row[key] for row in rows) for key in ("expected", "present"))
    full = round(_BAR * present / expected) if expected else 0
    return f"{'#' * full:.<{_BAR}} {present:>5,}/{expected:<5,}"


def _format_span(found: Json) -> str:
    return " to ".join(found[key][:16].replace("T", " ") for key in ("start", "end"))
