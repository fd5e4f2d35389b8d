"""A folder of plain GDELT files as a store: made once for each state of the folder."""

import hashlib
import json
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from filelock import FileLock

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.files import UNDERSTOOD, find_files
from coreeval.tools.gdelt.parts.catalogue import DATABASE, add_segments, catalogue
from coreeval.tools.gdelt.parts.compact import code_version, compact
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.sources import Sources, read_sources

_ENTITY = pa.struct(
    [("name", pa.string()), ("type", pa.string()), ("at", pa.int32()), ("n", pa.int16())]
)
SEGMENT = pa.schema(
    [
        ("url", pa.string()), ("title", pa.string()), ("snippet", pa.string()),
        ("crawled_at", pa.int64()), ("stated_at", pa.int64()), ("language", pa.string()),
        ("feed", pa.string()), ("file", pa.int32()), ("line", pa.int32()),
        ("entities", pa.list_(_ENTITY)), ("themes", pa.list_(pa.string())), ("words", pa.int32()),
    ]
)  # fmt: skip
"""What a segment's rows are."""


def open_folder(path: Path, cache: Path) -> Path:
    """Return the store made from the files under `path`, making it if need be; a store is itself.

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
    if (path / DATABASE).exists():
        return path
    files = find_files(path)
    store = cache / _fingerprint(path, files)
    if not store.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(store.with_suffix(".lock")):
            if not store.exists():
                _make(store, path, files)
    return store


def _make(store: Path, path: Path, files: Sequence[Path]) -> None:
    """Write the store beside its place and rename it, so that a half-made one is never seen."""
    sources = read_sources(path, files)
    work = store.with_suffix(".part")
    if work.exists():
        shutil.rmtree(work)  # left by a process that was killed; the lock says it is not at work
    work.mkdir()
    write_segments(work, sources)
    compact(work)
    work.rename(store)


def _fingerprint(path: Path, files: Sequence[Path]) -> str:
    """Hash the names, sizes and times of the files, and the code that reads them."""
    digest = hashlib.sha256(code_version().encode())
    for file in files:
        found = file.stat()
        name = file.name if file == path else file.relative_to(path).as_posix()
        digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def write_segments(store: Path, sources: Sources) -> None:
    """Write all articles, a segment for each crawl day, and list files and segments."""
    by_day: defaultdict[str, list[tuple[int, Article]]] = defaultdict(list)
    for file, article in sources.articles:
        by_day[f"{article.crawled_at:%Y-%m-%d}"].append((file, article))
    listed = {}
    for day, rows in by_day.items():
        path = f"segments/{day}/1.parquet"
        (store / path).parent.mkdir(parents=True)
        pq.write_table(_table(rows), store / path, compression="zstd")
        listed[path] = day, len(rows)
    with catalogue(store) as database:
        _list_files(database, sources)
        add_segments(database, listed)


def _table(rows: Sequence[tuple[int, Article]]) -> pa.Table:
    return pa.Table.from_pylist([_row(file, article) for file, article in rows], schema=SEGMENT)


def _row(file: int, article: Article) -> dict[str, object]:
    entities = [{"name": entity.name, "type": entity.type, "at": 0, "n": 1}
                for entity in article.entities]  # fmt: skip
    return {
        "url": article.url, "title": article.title, "snippet": article.snippet,
        "crawled_at": int(article.crawled_at.timestamp()),
        "stated_at": int(article.stated_at.timestamp()) if article.stated_at else None,
        "language": article.language, "feed": "", "file": file,
        "line": int(article.origin.rpartition(":")[2]), "entities": entities, "themes": [],
    }  # fmt: skip


def _list_files(database: sqlite3.Connection, sources: Sources) -> None:
    with database:
        database.executemany(
            "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(number, file.name, file.kind, file.sha256, file.rows, file.articles,
              json.dumps(file.bad)) for number, file in enumerate(sources.files)],
        )  # fmt: skip
        database.executemany("INSERT INTO ignored VALUES (?, ?)", sources.ignored.items())
