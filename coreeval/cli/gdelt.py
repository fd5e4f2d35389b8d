"""`coreeval gdelt sync`: syncs news to the store of a workspace."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from coreeval.api.news import FEEDS, MIRROR, MOST_UNASKED_MB, WIKI, NewsRequest
from coreeval.cli.gdelt_coverage import coverage
from coreeval.cli.gdelt_query import StoreOption, query
from coreeval.cli.gdelt_text import text
from coreeval.cli.options import MOST_DAYS_BACK
from coreeval.cli.output import AsJson, Document, brief, note, one_line, say, show
from coreeval.errors import UsageError
from coreeval.tools.formatting import format_quantity, plural
from coreeval.tools.gdelt.left_out import describe_left_out

gdelt = typer.Typer(name="gdelt", help="Download news, check its coverage and query it.")
gdelt.command("query")(query)
gdelt.command("text")(text)
gdelt.command("coverage")(coverage)
_FEEDS = (
    "Feeds to fetch, separated by commas. Size per day: gkg 420 MB (titles, names, themes), "
    "gkg_translated about the same, gal about 30 MB (titles and descriptions), events 8 MB and "
    "mentions 9 MB (both for the prominence of pages), current_events 0.1 MB (dated facts from "
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
        typer.Option("--until", metavar="DAY", help="With --since DAY: the end day (excluded)."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PATH", help="Read a local file or folder instead of downloading."
        ),
    ] = None,
    feeds: Annotated[str, typer.Option("--feeds", metavar="NAMES", help=_FEEDS)] = FEEDS,
    mirror: Annotated[
        str,
        typer.Option(
            "--mirror", metavar="URL", help="The base URL of the mirror, without gdeltv2/."
        ),
    ] = MIRROR,
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
        str,
        typer.Option(
            "--wiki", metavar="URL", help="The URL of the API that provides current_events."
        ),
    ] = WIKI,
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
    """Download news and facts. Ctrl-C stops the download; the same command continues it."""
    from coreeval.api.progress import show_progress

    request = NewsRequest(
        days=days, since=since, until=until, source=source, feeds=feeds, mirror=mirror,
        contact=contact, wiki=wiki, languages=languages, store=store,
    )  # fmt: skip
    request.check()
    if not (yes or _agrees(request, as_json)):
        say("nothing was downloaded")  # with --json, nobody is asked
        return
    with show_progress() as watch:
        document = request.fetch(watch).document
    show(document, as_json, lambda: "\n".join(sync_lines(document, store)))
    if document["stopped"] or document["failed"]:
        raise typer.Exit(130 if document["stopped"] else 1)


def _agrees(request: NewsRequest, as_json: bool) -> bool:
    """Return whether to download; ask a person about large downloads, except `--since last`.

    Raises:
        UsageError: the download is large and nobody can be asked, or there is no such feed.
    """
    much = request.describe_download()
    if much is None:
        return True
    what, lighter = much
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            what,
            where="coreeval gdelt sync",
            hint=f"confirm with --yes, or download less: {lighter}",
        )
    note(f"{what}\nto download less: {lighter}")
    return typer.confirm("download it?", err=True)


MOST_NAMED = 5
_REASONS = {
    "columns": "unexpected columns for this kind of file",
    "collection": "not a web page",
    "untitled": "no title",
    "no_url": "no address (`url`)",
    "no_date": "no date",
    "invalid_json": "not valid JSON",
    "damaged": "the file is truncated or damaged",
    "too_large": "the file is too large when unpacked",
    "layout": "not the page of current events for that day",
    "licence": "its licence does not allow this use",
}


def sync_lines(document: Document, store: Path | None = None) -> Iterator[str]:
    """Yield the result of a sync to a store; None is the workspace's."""
    state, seconds = "stopped" if document["stopped"] else "done", document["seconds"]
    rows = document["rows"]
    pace = f", {rows / seconds:,.0f} rows a second" if rows > seconds > 1 else ""
    yield (
        f"{state}: {format_quantity(document['files'], 'file')}, "
        f"{format_quantity(rows, 'row')}, "
        f"{format_quantity(document['articles'], 'article')}"
        f" in {seconds:.0f} s{pace}"
    )
    for reason, count in sorted(document["bad"].items(), key=lambda pair: -pair[1]):
        yield f"  bad rows    {count:>9,}   {_REASONS.get(reason, reason)}"
    if document["known_files"]:
        yield f"  known files {document['known_files']:>9,}   already read, so skipped"
    yield from _skipped_lines("skipped", document["ignored"])
    yield from _skipped_lines("not fetched", document["failed"])
    yield from _incomplete_lines(document)
    yield f"store: {brief(Path(document['store']))}"
    if left_out := describe_left_out(document["not_searchable"]):
        yield f"  {left_out}"
    if document["stopped"]:
        yield (
            "to continue, run the same command again; articles become searchable once it completes"
        )
    elif document["failed"]:
        yield "to continue, run the same command again"
    else:
        option = f" --store {quote(str(store))}" if store else ""
        yield f"next:  coreeval gdelt coverage{option}"


def _incomplete_lines(document: Document) -> Iterator[str]:
    """Yield what the store lacks, or already has unexpectedly."""
    late, growing, ahead, gaps = (document[name] for name in ("late", "growing", "ahead", "gaps"))
    if late:
        are = plural(late, "batch is", "batches are")
        yield f"  not yet     {late:>9,}   {are} still to come: sync again later"
    if growing:
        yield (
            f"  partial     {growing:>9,}   {plural(growing, 'batch', 'batches')} may get more "
            "files: sync again later"
        )
    if ahead:
        are = plural(ahead, "batch is", "batches are")
        yield f"  ahead       {ahead:>9,}   {are} dated in the future; check the clock"
    if gaps:
        known = document["known_gaps"]
        hole = f", {known:,} of them in a known gap" if known else ""
        yield f"  gaps        {gaps:>9,}   missing {plural(gaps, 'batch', 'batches')}{hole}"


def _skipped_lines(what: str, found: Mapping[str, str]) -> Iterator[str]:
    if found:
        yield (
            f"  {what:<11} {len(found):>9,}   "
            + "; ".join(
                one_line(f"{name}: {why}") for name, why in list(found.items())[:MOST_NAMED]
            )
            + ("; …" if len(found) > MOST_NAMED else "")
        )
