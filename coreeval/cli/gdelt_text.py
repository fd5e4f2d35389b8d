"""`coreeval gdelt text`: the text of an article, or the reason that there is none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from coreeval.api.article_texts import find_article_texts
from coreeval.cli.output import AsJson, Document, one_line, show


def text(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Addresses of articles.")],
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A JSON Lines file with `url` and `text`, a CC-NEWS WARC file, or a folder of "
            "such files; repeatable.",
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
    """Show the texts of articles that a run with `knowledge.text: article` would find."""
    document = find_article_texts(
        urls,
        source=source or (),
        fetch=fetch,
        contact=contact,
        title=title,
        published=published or None,
        language=language,
        full=full,
    ).document
    show(document, as_json, lambda: "\n".join(text_lines(document)))


def text_lines(document: Document) -> Iterator[str]:
    """Yield the texts, or the reasons that there are none."""
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
