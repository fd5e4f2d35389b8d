"""The store on disk: made once for each state of the news folder, then opened again."""

import hashlib
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from filelock import FileLock

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.files import UNDERSTOOD, find_files
from coreeval.tools.gdelt.items import Item, offered_items
from coreeval.tools.gdelt.sources import Sources, read_sources
from coreeval.tools.gdelt.stats import StoreStats
from coreeval.tools.gdelt.tables import write_tables

STATS = "stats.json"


def open_index(path: Path, cache: Path) -> Path:
    """Return the folder of the store made from the files under `path`, making it if need be.

    Two processes that need the same store make it once: the second waits for the first.

    Raises:
        KnowledgeError: there is no such folder, or none of its files holds articles.
    """
    if not path.exists():
        raise KnowledgeError(
            "the news folder does not exist",
            where=str(path),
            hint=f"point knowledge.path at a folder of {UNDERSTOOD}",
        )
    files = find_files(path)
    fingerprint = _fingerprint(path, files)
    index = cache / fingerprint
    if not index.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{fingerprint}.lock"):
            if not index.exists():
                _make(index, path, files)
    return index


def _make(index: Path, path: Path, files: Sequence[Path]) -> None:
    """Write the store beside its place and rename it, so that a half-made one is never seen."""
    sources = read_sources(path, files)
    items, dropped = offered_items(sources.articles)
    stats = _stats(index.name, sources, items, dropped)
    work = index.with_suffix(".part")
    if work.exists():
        shutil.rmtree(work)  # left by a process that was killed; the lock says it is not at work
    work.mkdir()
    write_tables(work, items)
    (work / STATS).write_text(stats.model_dump_json(indent=1), encoding="utf-8")
    work.rename(index)


def _fingerprint(path: Path, files: Sequence[Path]) -> str:
    """Hash the names, sizes and times of the files, and the code that reads them."""
    digest = hashlib.sha256(_code().encode())
    for file in files:
        found = file.stat()
        name = file.name if file == path else file.relative_to(path).as_posix()
        digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


@cache
def _code() -> str:
    """Hash this package: a store made by other rules is another store."""
    digest = hashlib.sha256()
    for module in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def _stats(
    fingerprint: str, sources: Sources, items: Sequence[Item], dropped: dict[str, int]
) -> StoreStats:
    bad: Counter[str] = Counter()
    for read in sources.files:
        bad.update(read.bad)
    told = Counter(item.story for item in items)
    return StoreStats(
        fingerprint=fingerprint,
        files=tuple(sources.files),
        ignored=sources.ignored,
        rows=sum(read.rows for read in sources.files),
        bad=dict(bad),
        duplicates=sum(read.articles for read in sources.files) - len(sources.articles),
        dropped=dropped,
        articles=len(items),
        clusters=sum(count > 1 for count in told.values()),
        precision=dict(Counter(item.precision for item in items)),
    )
