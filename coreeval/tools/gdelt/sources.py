"""Reading a folder of GDELT files: every article once, whatever files tell it."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.artlist import read_artlist
from coreeval.tools.gdelt.files import UNDERSTOOD, DamagedFile, sniff
from coreeval.tools.gdelt.gal import read_gal
from coreeval.tools.gdelt.gkg import read_gkg
from coreeval.tools.gdelt.rows import Article, Kind, Rows
from coreeval.tools.gdelt.stats import FileRead
from coreeval.tools.gdelt.urls import evidence_id

READERS: dict[Kind, Callable[[Path, str], Rows]] = {
    "gkg": read_gkg,
    "gal": read_gal,
    "artlist": read_artlist,
}


@dataclass(frozen=True, slots=True)
class Sources:
    """What a folder holds."""

    articles: dict[str, Article] = field(default_factory=dict)
    """By evidence id, so one for each canonical URL."""
    files: list[FileRead] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    """Files without articles, and why they were left out."""


def read_sources(root: Path, files: Sequence[Path]) -> Sources:
    """Read all files once.

    Raises:
        KnowledgeError: none of them holds articles.
    """
    sources = Sources()
    for file in files:
        name = file.name if file == root else file.relative_to(root).as_posix()
        try:
            kind = sniff(file)
        except DamagedFile as error:
            sources.ignored[name] = f"damaged: {error}"
            continue
        if kind is None:
            sources.ignored[name] = "holds no articles"
        else:
            sources.files.append(_read(file, name, kind, sources.articles))
    if not sources.files:
        raise _nothing_found(root, sources.ignored)
    return sources


def _read(file: Path, name: str, kind: Kind, articles: dict[str, Article]) -> FileRead:
    """Add one file's articles to those known, joining rows about the same page."""
    bad: Counter[str] = Counter()
    good = 0
    try:
        for row in READERS[kind](file, name):
            if not isinstance(row, Article):
                bad[row.reason] += 1
                continue
            good += 1
            key = evidence_id(row.url)
            articles[key] = joined(articles[key], row) if key in articles else row
    except DamagedFile:
        bad["damaged"] += 1
    with file.open("rb") as raw:
        digest = hashlib.file_digest(raw, "sha256").hexdigest()
    rows = good + bad.total()
    return FileRead(name=name, kind=kind, sha256=digest, rows=rows, articles=good, bad=dict(bad))


def joined(one: Article, other: Article) -> Article:
    """Join two rows about one page: the better one, completed by what only the other has."""
    best, rest = sorted((one, other), key=_preference)
    whole = replace(
        best,
        crawled_at=min(best.crawled_at, rest.crawled_at),
        stated_at=best.stated_at or rest.stated_at,
        snippet=best.snippet or rest.snippet,
        entities=best.entities or rest.entities,
    )
    return whole if whole == best else replace(whole, origin=f"{best.origin}; {rest.origin}")


def _preference(article: Article) -> tuple[bool, bool, bool, datetime, str]:
    return (
        article.stated_at is None,
        not article.snippet,
        not article.entities,
        article.crawled_at,
        article.origin,
    )


def _nothing_found(root: Path, ignored: dict[str, str]) -> KnowledgeError:
    names = [f"{name} ({why})" for name, why in list(ignored.items())[:5]]
    more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
    found = f"found {', '.join(names)}{more}" if names else "there is no file in it"
    return KnowledgeError(
        "the news folder holds no GDELT articles",
        where=str(root),
        hint=f"{found}; understood are {UNDERSTOOD}, each plain, .gz or .zip",
    )
