"""Reading a folder of GDELT files: every row that is an article, and what the others are."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.artlist import read_artlist
from coreeval.tools.gdelt.files import UNDERSTOOD, DamagedFile, sniff
from coreeval.tools.gdelt.gal import read_gal
from coreeval.tools.gdelt.gkg import read_gkg
from coreeval.tools.gdelt.rows import Article, Kind, Rows
from coreeval.tools.gdelt.stats import FileRead

READERS: dict[Kind, Callable[[Path, str], Rows]] = {
    "gkg": read_gkg,
    "gal": read_gal,
    "artlist": read_artlist,
}


@dataclass(frozen=True, slots=True)
class Sources:
    """What a folder holds."""

    articles: list[tuple[int, Article]] = field(default_factory=list)
    """Each with the place of its file in `files`."""
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
            sources.files.append(_read(file, name, kind, sources))
    if not sources.files:
        raise _nothing_found(root, sources.ignored)
    return sources


def _read(file: Path, name: str, kind: Kind, sources: Sources) -> FileRead:
    """Add one file's articles to those known."""
    bad: Counter[str] = Counter()
    good = 0
    try:
        for row in READERS[kind](file, name):
            if not isinstance(row, Article):
                bad[row.reason] += 1
                continue
            good += 1
            sources.articles.append((len(sources.files), row))
    except DamagedFile:
        bad["damaged"] += 1
    with file.open("rb") as raw:
        digest = hashlib.file_digest(raw, "sha256").hexdigest()
    rows = good + bad.total()
    return FileRead(name=name, kind=kind, sha256=digest, rows=rows, articles=good, bad=dict(bad))


def _nothing_found(root: Path, ignored: dict[str, str]) -> KnowledgeError:
    names = [f"{name} ({why})" for name, why in list(ignored.items())[:5]]
    more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
    found = f"found {', '.join(names)}{more}" if names else "there is no file in it"
    return KnowledgeError(
        "the news folder holds no GDELT articles",
        where=str(root),
        hint=f"{found}; understood are {UNDERSTOOD}, each plain, .gz or .zip",
    )
