"""`coreeval gdelt text`: the text of an article, or why there is none."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.gdelt_query import parse_moment
from coreeval.cli.output import AsJson, Document, one_line, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.config.knowledge import ArticlesConfig
    from coreeval.tools.articles.article_text import TextRetrieval, WantedText

EXCERPT = 300
"""The most characters of a text that are shown without `--full`."""
_ARCHIVES = (".warc", ".warc.gz")


def text(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Addresses of articles.")],
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="JSON Lines with url and text, or CC-NEWS WARC files; repeatable.",
        ),
    ] = None,
    fetch: Annotated[
        bool,
        typer.Option("--fetch", help="Fetch pages that no file contains, if the host allows it."),
    ] = False,
    contact: Annotated[
        str | None,
        typer.Option(
            "--contact",
            metavar="ADDRESS",
            help="With --fetch: your contact address, sent to hosts.",
        ),
    ] = None,
    title: Annotated[
        str, typer.Option("--title", help="The headline; the text must contain its words.")
    ] = "",
    published: Annotated[
        str | None,
        typer.Option(
            "--published",
            metavar="DATE",
            help="The date from the feed; the page's date must be close to it.",
        ),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="CODE", help="The expected language, such as en.")
    ] = "und",
    full: Annotated[bool, typer.Option("--full", help="Show whole texts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the texts of articles as a run with knowledge.text: article would find them."""
    import asyncio

    config = _to_config(source or [], fetch=fetch, contact=contact)
    date = parse_moment(published, "--published") if published else None
    wanted = [_to_wanted(url, title, date, language) for url in urls]
    found = asyncio.run(_find(config, wanted))
    document = text_document(wanted, found, full=full)
    show(document, as_json, lambda: "\n".join(text_lines(document)))


def _to_config(source: Sequence[Path], *, fetch: bool, contact: str | None) -> "ArticlesConfig":
    """Return the sources that the command line names.

    Raises:
        UsageError: there are none, or the contact is missing or none.
    """
    from pydantic import ValidationError

    from coreeval.config.knowledge import ArticlesConfig

    if not source and not fetch:
        raise UsageError(
            "no source of texts was given",
            where="coreeval gdelt text",
            hint="give --from PATH, or --fetch with --contact ADDRESS",
        )
    archives = tuple(str(path) for path in source if path.is_dir() or _is_archive(path))
    files = tuple(str(path) for path in source if path.is_dir() or not _is_archive(path))
    try:
        return ArticlesConfig(files=files, ccnews=archives, fetch=fetch, contact=contact)
    except ValidationError as error:
        from coreeval.config.value_errors import describe_value_error

        told = describe_value_error(error.errors()[0])
        raise UsageError(
            f"pages cannot be downloaded: {told}",
            where="--contact",
            hint="--contact https://example.org/about or --contact name@example.org",
        ) from None


def _is_archive(path: Path) -> bool:
    return path.name.endswith(_ARCHIVES)


def _to_wanted(url: str, title: str, date: datetime | None, language: str) -> "WantedText":
    """Return what is searched for an address.

    Raises:
        UsageError: it is not the address of a web page.
    """
    from coreeval.tools.articles.addresses import is_web_address
    from coreeval.tools.articles.article_text import WantedText
    from coreeval.tools.gdelt.rows import evidence_id, host_of

    if not is_web_address(url):
        raise UsageError(
            f"{url!r} is not the address of a web page",
            where="coreeval gdelt text",
            hint="an address starts with https:// or http:// and contains no password",
        )
    return WantedText(
        id=evidence_id(url),
        url=url,
        title=title,
        domain=host_of(url),
        published_at=date,
        language=language,
    )


async def _find(config: "ArticlesConfig", wanted: "Sequence[WantedText]") -> "TextRetrieval":
    from coreeval.agents.safety import load_active_takedown
    from coreeval.tools.articles.sources import open_articles
    from coreeval.tools.workspace import workspace_for

    workspace = workspace_for(Path.cwd())
    listed = load_active_takedown(None, workspace.takedown)
    async with open_articles(
        config, "article", workspace.cache, refuses=lambda text: any(listed.names_in(text))
    ) as texts:
        return await texts.find_texts(wanted)


def text_document(
    wanted: "Sequence[WantedText]", found: "TextRetrieval", *, full: bool
) -> Document:
    """Return the output of `text --json`; texts are cut to an excerpt unless `full`."""
    results = {each.id: found.by_id[each.id].model_dump(mode="json") for each in wanted}
    for each in wanted:
        results[each.id]["url"] = results[each.id].get("url") or each.url
        if "text" in results[each.id] and not full:
            results[each.id]["text"] = _cut(results[each.id]["text"])
    return {
        "texts": list(results.values()),
        "sources": dict(found.count_sources()),
        "reasons": dict(found.count_reasons()),
        "notes": list(found.notes),
    }


def _cut(text: str) -> str:
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1].rpartition(" ")[0] + "\u2026"


def text_lines(document: Document) -> Iterator[str]:
    """Yield the texts, or the reasons why there are none."""
    from coreeval.tools.articles.article_text import WHY_NO_TEXT

    for each in document["texts"]:
        if each["depth"] != "article":
            detail = f" ({one_line(each['detail'])})" if each["detail"] else ""
            yield f"no text     {one_line(each['url'])}"
            yield f"            {WHY_NO_TEXT[each['reason']]}{detail}"
            continue
        mark = " [reads like an instruction]" if each["instruction_like"] else ""
        date = f"{each['published_at'][:10]} ({each['date_source']})"
        yield f"{date}  {one_line(each['title'])}{mark}"
        known = (each["publisher"], each["language"], f"from {each['source']}", each["licence"])
        yield f"            {', '.join(one_line(part) for part in known if part)}"
        yield f"            {one_line(each['url'])}"
        yield f"            sha256 {each['text_sha256']}"
        yield from (f"            {one_line(line)}" for line in each["text"].splitlines())
    yield from document["notes"]
