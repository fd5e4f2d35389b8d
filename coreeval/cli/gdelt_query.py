"""`coreeval gdelt query`: the news in the store about a name or a topic."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from coreeval.api.news import PRECISIONS, SOURCES, query_news
from coreeval.cli.output import AsJson, Document, note, one_line, show
from coreeval.schema import Coverage
from coreeval.tools.knowledge import describe_coverage

WHY = {
    "no_news": "no news: the store covers these days, but no article matches",
    "not_covered": "not covered: the store has no articles for these days",
}
SHOWN_GAPS = 5
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        file_okay=False,
        help="The news store; by default gdelt/store in the workspace (COREEVAL_HOME or "
        ".coreeval).",
    ),
]


def query(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name or, with --topic, a topic.")],
    start: Annotated[
        str | None,
        typer.Option(
            "--start", metavar="DATE", help="First day, in UTC; by default the store's first day."
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--end",
            metavar="DATE",
            help="End day (excluded), in UTC; by default the day after the store's last day.",
        ),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option("--alias", metavar="NAME", help="Another spelling of the name; repeatable."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context", metavar="WORD", help="A word that disambiguates the name; repeatable."
        ),
    ] = None,
    topic: Annotated[
        bool,
        typer.Option(
            "--topic", help="Treat NAME as a topic: an article may match any of its words."
        ),
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", metavar="K", min=1, max=1000, help="Maximum number of articles to show."
        ),
    ] = 8,
    min_precision: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help=f"Least certain kind of publication time to accept: {', '.join(PRECISIONS)}.",
        ),
    ] = "crawl",
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help=f"Show only news from this source: {', '.join(SOURCES)}.",
        ),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="CODE", help="The language of the news.")
    ] = "en",
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Show dated news about a name, best matches first, or the reason why there is none."""
    document: Document = query_news(
        name,
        start=start,
        end=end,
        aliases=alias or (),
        context=context or (),
        topic=topic,
        limit=limit,
        min_precision=min_precision,
        source=source,
        language=language,
        store=store,
    ).document
    for remark in document["notes"]:
        note(remark)
    show(document, as_json, lambda: "\n".join(_lines(document)))


def _lines(document: Document) -> Iterator[str]:
    for item in document["evidence"]:
        mark = " [reads like an instruction]" if item["instruction_like"] else ""
        yield f"{item['published_at'][:10]}  {one_line(item['title'])}{mark}"
        site = f"{item['domain']} ({item['published_precision']})"
        yield f"            {site}  {one_line(item['url'])}"
        if item["source"] != "gdelt":
            licence = f", {one_line(item['licence'])}" if item["licence"] else ""
            yield f"            {item['source']}{licence}"
        if item["snippet"]:
            yield f"            {one_line(item['snippet'])}"
    if document["reason"]:
        yield WHY[document["reason"]]
    coverage = Coverage.model_validate(document["coverage"])
    days = describe_coverage(coverage)
    start, end = (document["window"][key][:10] for key in ("start", "end"))
    yield f"the window, {start} to {end} (end excluded): {days} ({document['store']})"
    if coverage.gaps:
        more = len(coverage.gaps) - SHOWN_GAPS
        listed = ", ".join(coverage.gaps[:SHOWN_GAPS]) + (f" and {more} more" if more > 0 else "")
        yield f"days without news: {listed}"
