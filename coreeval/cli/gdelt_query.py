"""`coreeval gdelt query`: what the store knows of a name or a topic.

`find_store` returns where the news store is if the command line does not say.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, note, one_line, show
from coreeval.errors import UsageError
from coreeval.tools.knowledge import describe_coverage

if TYPE_CHECKING:
    from coreeval.schema import Coverage, EvidenceSource, Precision, Window


PRECISIONS = ("exact", "url", "cluster", "crawl")
SOURCES = ("gdelt", "current_events")
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
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, or a topic with --topic.")],
    start: Annotated[
        str | None,
        typer.Option(
            "--start", metavar="DATE", help="First day, in UTC; by default the store's first."
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--end",
            metavar="DATE",
            help="End day (excluded), in UTC; by default the day after the store's last.",
        ),
    ] = None,
    alias: Annotated[
        list[str] | None, typer.Option("--alias", metavar="NAME", help="Another spelling.")
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="WORD", help="Words that disambiguate the name."),
    ] = None,
    topic: Annotated[
        bool, typer.Option("--topic", help="Match any of the words, the rarest first.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="K", min=1, max=1000)] = 8,
    min_precision: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help=f"Least certain publication time to accept: {', '.join(PRECISIONS)}.",
        ),
    ] = "crawl",
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="NAME", help=f"Only news from this source: {', '.join(SOURCES)}."
        ),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="CODE", help="The language of the news.")
    ] = "en",
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Show dated news about a name, best first, or why there is none."""
    import asyncio

    from coreeval.schema import EntityQuery
    from coreeval.tools.gdelt.index.store_catalog import StoreLayout
    from coreeval.tools.gdelt.local import LocalKnowledge

    first, last = parse_moment(start, "--start"), parse_moment(end, "--end")
    place = store or find_store()
    StoreLayout(place).require()
    asked = EntityQuery(
        id="q",
        text=name,
        rung="concept" if topic else "named",
        aliases=tuple(alias or ()),
        context=tuple(context or ()),
    )
    how, only = _parse_precision(min_precision), _parse_source(source)
    code = parse_language(language, "--language")
    with LocalKnowledge(place, news=place, min_precision=how, source=only, language=code) as news:
        window = _choose_window(first, last, news.span())
        answer = asyncio.run(news.fetch([asked], window, limit))
        coverage = news.coverage(window)
        if news.unsearchable:
            note(news.unsearchable)
    document: Document = {
        "name": name,
        "window": window.model_dump(mode="json"),
        "source": only,
        "evidence": [item.model_dump(mode="json") for item in answer.by_query["q"]],
        "reason": answer.reasons.get("q"),
        "coverage": coverage.model_dump(mode="json"),
        "store": str(place),
    }
    show(document, as_json, lambda: "\n".join(_lines(document, coverage)))


def _lines(document: Document, coverage: "Coverage") -> Iterator[str]:
    for item in document["evidence"]:
        mark = " [reads like an instruction]" if item["instruction_like"] else ""
        yield f"{item['published_at'][:10]}  {one_line(item['title'])}{mark}"
        site = f"{item['domain']} ({item['published_precision']})"
        yield f"            {site}  {one_line(item['url'])}"
        if item["source"] != "gdelt":
            yield f"            {item['source']}, {one_line(item['licence'])}"
        if item["snippet"]:
            yield f"            {one_line(item['snippet'])}"
    if document["reason"]:
        yield WHY[document["reason"]]
    days = describe_coverage(coverage)
    start, end = (document["window"][key][:10] for key in ("start", "end"))
    yield f"the window, {start} to {end} (end excluded): {days} ({document['store']})"
    if coverage.gaps:
        more = len(coverage.gaps) - SHOWN_GAPS
        listed = ", ".join(coverage.gaps[:SHOWN_GAPS]) + (f" and {more} more" if more > 0 else "")
        yield f"days without news: {listed}"


def _choose_window(start: datetime | None, end: datetime | None, held: "Window") -> "Window":
    """Return the window asked for; a side that was not given is that of the store.

    Raises:
        UsageError: the window ends before it begins, or lies outside of what the store holds.
    """
    from coreeval.schema import Window

    first, last = start or held.start, end or held.end
    if first >= last:
        raise UsageError(
            f"the window ends ({last:%Y-%m-%d}) before it begins ({first:%Y-%m-%d})",
            where="--end" if end else "--start",
            hint=f"the end day is excluded; the store has news from {held.start:%Y-%m-%d} to "
            f"{held.end:%Y-%m-%d}",
        )
    return Window(start=first, end=last)


def parse_language(code: str, option: str) -> str:
    """Return the language code that an option names.

    Raises:
        UsageError: it is none.
    """
    from coreeval.languages import check_language

    try:
        return check_language(code)
    except ValueError as error:
        raise UsageError(str(error), where=option) from None


def parse_moment(text: str | None, option: str) -> datetime | None:
    """Return the moment that an option names; None if it was not given.

    Raises:
        UsageError: it is not a date.
    """
    from coreeval.config.dates import as_utc

    if text is None:
        return None
    try:
        return as_utc(datetime.fromisoformat(text))
    except ValueError:
        raise UsageError(
            f"{text!r} is not a date", where=option, hint="write it as 2026-10-05"
        ) from None


def _parse_precision(text: str) -> "Precision":
    for known in PRECISIONS:
        if text == known:
            return known  # type: ignore[return-value]  # the names are those of the type
    raise UsageError(
        f"{text!r} is not a precision", where="--min-precision", hint=", ".join(PRECISIONS)
    )


def _parse_source(text: str | None) -> "EvidenceSource | None":
    if text is None:
        return None
    for known in SOURCES:
        if text == known:
            return known  # type: ignore[return-value]  # the names are those of the type
    raise UsageError(f"{text!r} is not a source", where="--source", hint=", ".join(SOURCES))


def find_store() -> Path:
    """Return the store of this folder's workspace."""
    from coreeval.tools.workspace import workspace_for

    return workspace_for(Path.cwd()).news
