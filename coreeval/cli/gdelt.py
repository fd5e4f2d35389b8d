"""`coreeval gdelt sync|coverage`: the news that a workspace keeps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.gdelt_place import store_here
from coreeval.cli.gdelt_query import query
from coreeval.cli.output import AsJson, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.graph.progress import Progress
    from coreeval.tools.gdelt.sync.sync import Around, SyncProgress, SyncResult

LAST = "last"
gdelt = typer.Typer(name="gdelt", help="Bring news in, see what is there, ask for it.")
gdelt.command("query")(query)
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        file_okay=False,
        help="The news store; else gdelt/store in the workspace (COREEVAL_HOME or .coreeval).",
    ),
]
_FEEDS = (
    "What to fetch, joined by commas. A day costs: gkg 420 MB (titles, names, themes), "
    "gkg_translated about as much again, gal about 30 MB (titles and descriptions), events 8 MB "
    "and mentions 9 MB (how much is made of a page)."
)


@gdelt.command("sync")
def sync(
    days: Annotated[
        int | None, typer.Option("--days", metavar="N", min=1, help="Fetch the last N days.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="last|DAY", help="Go on from the newest batch, or from YYYY-MM-DD."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DAY", help="With --since DAY: the first day left out."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="Read files or a folder; fetch nothing."),
    ] = None,
    feeds: Annotated[
        str, typer.Option("--feeds", metavar="NAMES", help=_FEEDS)
    ] = "gkg,gal,events,mentions",
    mirror: Annotated[
        str, typer.Option("--mirror", metavar="URL", help="The address above gdeltv2/.")
    ] = "https://storage.googleapis.com/data.gdeltproject.org",
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Bring GDELT's news into the store. Ctrl-C stops it cleanly; the same command goes on."""
    from coreeval.cli.gdelt_words import synced_document, synced_lines

    if sum(given is not None for given in (days, since, source)) != 1:
        raise UsageError(
            "say which news to bring in",
            where="coreeval gdelt sync",
            hint="give one of --days N, --since last, --since YYYY-MM-DD, --from PATH",
        )
    if until and since in (None, LAST):
        raise UsageError("--until needs --since YYYY-MM-DD", where="coreeval gdelt sync")
    place = store or store_here()
    if source:
        done = _from_folder(place, source)
    else:
        done = _from_mirror(place, _start(days, since), _day(until, "--until"), feeds, mirror)
    show(synced_document(done), as_json, lambda: "\n".join(synced_lines(done)))
    if done.stopped or done.troubles.failed:
        raise typer.Exit(130 if done.stopped else 1)


@gdelt.command("coverage")
def coverage(store: StoreOption = None, as_json: AsJson = False) -> None:
    """Show which days the store has, and where it has gaps."""
    from coreeval.cli.gdelt_words import coverage_document, coverage_lines
    from coreeval.tools.clock import utc_now
    from coreeval.tools.gdelt.index.store_catalog import StoreLayout
    from coreeval.tools.gdelt.sync.batches import measure_store_coverage
    from coreeval.tools.gdelt.sync.store_ledger import open_ledger

    place = store or store_here()
    layout = StoreLayout(place)
    layout.require()
    with open_ledger(layout.ledger) as ledger:
        found = measure_store_coverage(ledger, utc_now())
    document = coverage_document(place, found)
    show(document, as_json, lambda: "\n".join(coverage_lines(document)))


def _from_mirror(
    store: Path, start: datetime | None, end: datetime | None, feeds: str, mirror: str
) -> "SyncResult":
    from coreeval.tools.gdelt.sync.feeds import parse_feeds
    from coreeval.tools.gdelt.sync.sync import sync_mirror

    chosen = parse_feeds(feeds)
    with _around() as around:
        return sync_mirror(store, start=start, end=end, feeds=chosen, mirror=mirror, around=around)


def _from_folder(store: Path, source: Path) -> "SyncResult":
    from coreeval.tools.gdelt.sync.sync import sync_folder

    with _around() as around:
        return sync_folder(store, source, around=around)


@contextmanager
def _around() -> "Iterator[Around]":
    from coreeval.cli.progress import watching
    from coreeval.graph.progress import Progress
    from coreeval.tools.gdelt.index.build import compact
    from coreeval.tools.gdelt.sync.sync import Around

    with watching() as watch:

        def finish(store: Path) -> None:
            watch(Progress(stage="compact"))
            compact(store)

        yield Around(watch=_shown(watch), finish=finish)


def _shown(watch: "Callable[[Progress], None]") -> "Callable[[SyncProgress], None]":
    from coreeval.graph.progress import Progress

    def tell(at: "SyncProgress") -> None:
        counts = {"articles": at.articles}
        watch(Progress(stage="sync", done=at.done, total=at.total, counts=counts))

    return tell


def _start(days: int | None, since: str | None) -> datetime | None:
    """Return when the window starts; None is where the store ends."""
    from coreeval.tools.clock import utc_now

    if days is not None:
        return utc_now() - timedelta(days=days)
    return None if since == LAST else _day(since, "--since")


def _day(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise UsageError(
            f"{text!r} is no day", where=option, hint="write it as 2026-10-05"
        ) from None
