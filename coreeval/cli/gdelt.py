"""`coreeval gdelt sync`: brings news into the store that a workspace keeps."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from coreeval.cli.gdelt_coverage import coverage
from coreeval.cli.gdelt_query import StoreOption, find_store, parse_language, query
from coreeval.cli.gdelt_text import text
from coreeval.cli.options import MOST_DAYS_BACK
from coreeval.cli.output import AsJson, Document, brief, note, one_line, say, show
from coreeval.errors import UsageError
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from coreeval.graph.monitor import Progress
    from coreeval.tools.gdelt.sync.sync import Around, SyncProgress, SyncResult


LAST = "last"
MOST_UNASKED_MB = 2_000
"""The most megabytes that are downloaded without asking (own choice: some minutes of a fast
line)."""
gdelt = typer.Typer(name="gdelt", help="Download news, check its coverage and query it.")
gdelt.command("query")(query)
gdelt.command("text")(text)
gdelt.command("coverage")(coverage)
_FEEDS = (
    "Feeds to fetch, separated by commas. Size of a day: gkg 420 MB (titles, names, themes), "
    "gkg_translated about as much again, gal about 30 MB (titles and descriptions), events 8 MB "
    "and mentions 9 MB (how prominent a page is), current_events 0.1 MB (dated facts from "
    "Wikipedia; needs --contact)."
)


@gdelt.command("sync")
def sync(
    days: Annotated[
        int | None,
        typer.Option(
            "--days", metavar="N", min=1, max=MOST_DAYS_BACK, help="Fetch the last N days."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="last|DAY",
            help="Continue from the newest batch, or start at YYYY-MM-DD.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DAY", help="With --since DAY: the end day (exclusive)."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PATH", help="Read local files or a folder; download nothing."
        ),
    ] = None,
    feeds: Annotated[
        str, typer.Option("--feeds", metavar="NAMES", help=_FEEDS)
    ] = "gkg,gal,events,mentions",
    mirror: Annotated[
        str, typer.Option("--mirror", metavar="URL", help="The base URL, above gdeltv2/.")
    ] = "https://storage.googleapis.com/data.gdeltproject.org",
    contact: Annotated[
        str | None,
        typer.Option(
            "--contact",
            metavar="ADDRESS",
            envvar="COREEVAL_CONTACT",
            help="Your email or web address, sent to Wikimedia for current_events.",
        ),
    ] = None,
    wiki: Annotated[
        str, typer.Option("--wiki", metavar="URL", help="The API that serves current_events.")
    ] = "https://en.wikipedia.org/w/api.php",
    languages: Annotated[
        str | None,
        typer.Option(
            "--languages",
            metavar="CODES",
            help="The languages of the store's news, separated by commas, such as en,de; "
            "unchanged by default (English in a new store).",
        ),
    ] = None,
    store: StoreOption = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help=f"Download more than {MOST_UNASKED_MB / 1000:g} GB without confirmation."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Download news and facts. Ctrl-C stops cleanly; run the same command to continue."""
    if sum(given is not None for given in (days, since, source)) != 1:
        raise UsageError(
            "no news source was given",
            where="coreeval gdelt sync",
            hint="give one of --days N, --since last, --since YYYY-MM-DD, --from PATH",
        )
    if until and since in (None, LAST):
        raise UsageError("--until needs --since YYYY-MM-DD", where="coreeval gdelt sync")
    place = store or find_store()
    offered = _parse_languages(languages)
    if source:
        done = _from_folder(place, source, offered)
    else:
        start, end = _first_moment(days, since), _parse_day(until, "--until")
        if start and not (yes or _agrees(start, end, feeds, as_json)):
            say("nothing was downloaded")  # nobody is asked with --json
            return
        done = _from_mirror(
            place,
            start,
            end,
            feeds,
            _Addresses(mirror, wiki, contact or ""),
            offered,
        )
    show(sync_document(done), as_json, lambda: "\n".join(sync_lines(done)))
    if done.stopped or done.troubles.failed:
        raise typer.Exit(130 if done.stopped else 1)


def _agrees(start: datetime, end: datetime | None, feeds: str, as_json: bool) -> bool:
    """Return whether to download; a person is asked if it is much. `--since last` is never asked.

    Raises:
        UsageError: it is much, and nobody can be asked, or there is no such feed.
    """
    from coreeval.tools.clock import utc_now
    from coreeval.tools.gdelt.sync.feeds import MIRRORED, estimate_download_mb, parse_feeds

    chosen, until = parse_feeds(feeds), min(end or utc_now(), utc_now())
    size_mb = estimate_download_mb(chosen, start, until)
    if size_mb <= MOST_UNASKED_MB:
        return True
    parts = ", ".join(f"{feed} {MIRRORED[feed].day_mb:g}" for feed in chosen)
    gal_mb, facts_mb = (
        estimate_download_mb((feed,), start, until) for feed in ("gal", "current_events")
    )
    what = f"this downloads about {size_mb / 1000:,.1f} GB: a day of news has, in MB, {parts}"
    lighter = (
        f"fewer days; --feeds gal (titles and descriptions, about {gal_mb / 1000:,.1f} GB); "
        f"--feeds current_events --contact ADDRESS (facts from Wikipedia, about {facts_mb:,.0f} MB)"
    )
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            what,
            where="coreeval gdelt sync",
            hint=f"confirm with --yes, or download less: {lighter}",
        )
    note(f"{what}\nless is: {lighter}")
    return typer.confirm("download it?", err=True)


class _Addresses(NamedTuple):
    """Where news is fetched from, and who asks for it."""

    mirror: str
    wiki: str
    contact: str


def _parse_languages(codes: str | None) -> tuple[str, ...]:
    if codes is None:
        return ()
    return tuple(parse_language(code.strip(), "--languages") for code in codes.split(","))


def _from_mirror(
    store: Path,
    start: datetime | None,
    end: datetime | None,
    feeds: str,
    named: _Addresses,
    languages: Sequence[str],
) -> "SyncResult":
    from coreeval.tools.gdelt.sync.feeds import parse_feeds
    from coreeval.tools.gdelt.sync.portal_sync import PortalAccess
    from coreeval.tools.gdelt.sync.sync import sync_mirror

    chosen, portal = parse_feeds(feeds), PortalAccess(contact=named.contact, url=named.wiki)
    with _run_around(languages) as around:
        return sync_mirror(
            store,
            start=start,
            end=end,
            feeds=chosen,
            mirror=named.mirror,
            portal=portal,
            around=around,
        )


def _from_folder(store: Path, source: Path, languages: Sequence[str]) -> "SyncResult":
    from coreeval.tools.gdelt.sync.sync import sync_folder

    with _run_around(languages) as around:
        return sync_folder(store, source, around=around)


@contextmanager
def _run_around(languages: Sequence[str]) -> "Iterator[Around]":
    from coreeval.api.progress import show_progress
    from coreeval.graph.monitor import Progress
    from coreeval.tools.gdelt.index.build import compact
    from coreeval.tools.gdelt.sync.sync import Around

    with show_progress() as watch:

        def finish(store: Path) -> None:
            watch(Progress(stage="compact"))
            compact(store, languages)

        yield Around(watch=_show_progress(watch), finish=finish)


def _show_progress(watch: "Callable[[Progress], None]") -> "Callable[[SyncProgress], None]":
    from coreeval.graph.monitor import Progress

    def tell(at: "SyncProgress") -> None:
        counts = {"articles": at.articles}
        watch(Progress(stage="sync", done=at.done, total=at.total, counts=counts))

    return tell


def _first_moment(days: int | None, since: str | None) -> datetime | None:
    """Return the start of the window; None means the end of the store."""
    from coreeval.tools.clock import utc_now

    if days is not None:
        return utc_now() - timedelta(days=days)
    return None if since == LAST else _parse_day(since, "--since")


def _parse_day(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a day", where=option, hint="write it as 2026-10-05"
        ) from None


MOST_NAMED = 5
_REASONS = {
    "columns": "unexpected columns for this kind of file",
    "collection": "not a web page",
    "untitled": "no title",
    "no_url": "no address",
    "no_date": "no date",
    "invalid_json": "not valid JSON",
    "damaged": "the file is truncated or damaged",
    "too_large": "the file is too large when unpacked",
    "layout": "not that day's page of current events",
    "licence": "its licence is not CC BY-SA",
}


def sync_document(done: "SyncResult") -> Document:
    """Return the output of `sync --json`."""
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
        "growing": done.troubles.growing,
        "ahead": done.ahead,
        "bytes": counts.size,
        "seconds": round(done.seconds, 1),
        "stopped": done.stopped,
    }


def sync_lines(done: "SyncResult") -> Iterator[str]:
    """Yield the result of a sync."""
    counts, state = done.counts, "stopped" if done.stopped else "done"
    pace = f", {counts.rows / done.seconds:,.0f} rows a second" if done.seconds > 1 else ""
    yield (
        f"{state}: {format_quantity(counts.files, 'file')}, {format_quantity(counts.rows, 'row')}, "
        f"{format_quantity(counts.articles, 'article')}"
        f" in {done.seconds:.0f} s{pace}"
    )
    for reason, count in counts.bad.most_common():
        yield f"  bad rows    {count:>9,}   {_REASONS.get(reason, reason)}"
    if counts.known:
        yield f"  known files {counts.known:>9,}   read before, not read again"
    yield from _skipped_lines("left out", counts.ignored)
    yield from _skipped_lines("not fetched", done.troubles.failed)
    yield from _incomplete_lines(done)
    yield f"store: {brief(done.store)}"
    if done.stopped:
        yield (
            "to continue, run the same command again; articles become searchable once it completes"
        )
    elif done.troubles.failed:
        yield "to continue, run the same command again"
    else:
        yield "look:  coreeval gdelt coverage"


def _incomplete_lines(done: "SyncResult") -> Iterator[str]:
    """Yield what the store lacks, or has and should not have yet."""
    late, growing = done.troubles.late, done.troubles.growing
    if late:
        yield f"  not yet     {late:>9,}   batches are still to come: sync again later"
    if growing:
        yield f"  in part     {growing:>9,}   batches may get more files: sync again later"
    if done.ahead:
        yield f"  ahead       {done.ahead:>9,}   batches are dated in the future; check the clock"
    if done.gaps:
        hole = f", {done.known_gaps:,} of them in a known gap" if done.known_gaps else ""
        yield f"  gaps        {done.gaps:>9,}   batches{hole}"


def _skipped_lines(what: str, found: Mapping[str, str]) -> Iterator[str]:
    if found:
        yield (
            f"  {what:<11} {len(found):>9,}   "
            + "; ".join(
                one_line(f"{name}: {why}") for name, why in list(found.items())[:MOST_NAMED]
            )
            + ("; …" if len(found) > MOST_NAMED else "")
        )
