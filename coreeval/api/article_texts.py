"""The texts of articles, as a run with `knowledge.text: article` would find them.

Commands import this module on every call, so slow imports are inside functions.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.arguments import Day, parse_moment
from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.errors import UsageError
from coreeval.tools.formatting import format_quantity
from coreeval.tools.loops import run_coroutine
from coreeval.tools.workspace import workspace_for

if TYPE_CHECKING:
    from coreeval.config.knowledge import ArticlesConfig
    from coreeval.tools.articles.article_text import TextRetrieval, WantedText


EXCERPT: Final = 300
"""The most characters of a text, unless the full text is requested."""
_ARCHIVES: Final = (".warc", ".warc.gz")


def find_article_texts(
    urls: Sequence[str],
    *,
    source: Sequence[Path | str] = (),
    fetch: bool = False,
    contact: str | None = None,
    title: str = "",
    published: Day | None = None,
    language: str = "und",
    full: bool = True,
) -> CommandResult:
    """Return the texts of articles as a run with `knowledge.text: article` would find them.

    Args:
        urls: Addresses of articles.
        source: JSON Lines with `url` and `text`, CC-NEWS WARC files, or folders of them.
        fetch: Whether to fetch pages that no file contains, if the host allows it.
        contact: With `fetch`, your contact address, sent to hosts.
        title: The headline; the text must contain its words.
        published: The date from the feed; the page's date must be close to it.
        language: The expected language, such as `en`.
        full: Whether to return whole texts in place of excerpts.

    Returns:
        A result whose table has a row for each address: its text, or the reason that there is none.

    Raises:
        UsageError: there is no source of texts, or an address or the contact is not valid.
    """
    config = _make_articles_config(list(map(Path, source)), fetch=fetch, contact=contact)
    moment = parse_moment(published, "--published")
    wanted = [_make_wanted_text(url, title, moment, language) for url in urls]
    found = run_coroutine(_find_texts(config, wanted))
    texts = _describe_texts(wanted, found, full=full)
    document = {
        "texts": texts,
        "sources": dict(found.count_sources()),
        "reasons": dict(found.count_reasons()),
        "notes": list(found.notes),
    }
    number = sum(each["depth"] == "article" for each in texts)
    said = f"{number} of {format_quantity(len(texts), 'text')} found"
    return CommandResult(document, said, Table.from_dicts("texts", _TEXT_COLUMNS, texts))


_TEXT_COLUMNS: Final = parse_columns(
    "url depth reason published_at title publisher language source licence text text_sha256"
)


def _make_articles_config(
    source: Sequence[Path], *, fetch: bool, contact: str | None
) -> "ArticlesConfig":
    from pydantic import ValidationError

    from coreeval.config.knowledge import ArticlesConfig

    if not source and not fetch:
        raise UsageError(
            "no source of texts was chosen",
            where="coreeval gdelt text",
            hint="use --from PATH, or --fetch with --contact ADDRESS",
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


def _make_wanted_text(url: str, title: str, day: datetime | None, language: str) -> "WantedText":
    from coreeval.config.credentials import hide_url_credentials
    from coreeval.tools.articles.addresses import is_web_address
    from coreeval.tools.articles.article_text import WantedText
    from coreeval.tools.gdelt.rows import evidence_id, host_of

    if not is_web_address(url):
        raise UsageError(
            f"{url!r} is not the address of a web page",
            where="coreeval gdelt text",
            hint="an address starts with https:// or http:// and contains no password",
        )
    url = hide_url_credentials(url)
    return WantedText(
        id=evidence_id(url),
        url=url,
        title=title,
        domain=host_of(url),
        published_at=day,
        language=language,
    )


async def _find_texts(config: "ArticlesConfig", wanted: "Sequence[WantedText]") -> "TextRetrieval":
    from coreeval.agents.safety import load_active_takedown
    from coreeval.tools.articles.sources import open_articles

    workspace = workspace_for(Path.cwd())
    listed = load_active_takedown((), workspace.takedown)
    async with open_articles(
        config, "article", workspace.cache, refuses=lambda text: any(listed.names_in(text))
    ) as texts:
        return await texts.find_texts(wanted)


def _describe_texts(
    wanted: "Sequence[WantedText]", found: "TextRetrieval", *, full: bool
) -> list[dict[str, object]]:
    results = {each.id: found.by_id[each.id].model_dump(mode="json") for each in wanted}
    for each in wanted:
        text = results[each.id]
        text["url"] = text.get("url") or each.url
        if "text" in text and not full:
            text["text"] = _cut(text["text"])
    return list(results.values())


def _cut(text: str) -> str:
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1].rpartition(" ")[0] + "\u2026"
