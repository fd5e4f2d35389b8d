"""What may be lost and asked again: entries of a cache, and places of samples in flight."""

import zlib
from collections.abc import Iterator
from pathlib import Path

from coreeval.agents.name_finder import NameFinder
from coreeval.releases.forgetting.databases import opened, transaction
from coreeval.releases.forgetting.found import Found
from coreeval.tools.links import is_plain_file, leads_out

CACHE = "cache.db"
_FOREIGN = (
    "its list names files outside of its folder, which CoreEval never writes: those files were "
    "neither read nor deleted. Delete the cache: what is in it is asked again"
)


def forget_cached(folder: Path, finder: NameFinder, *, dry: bool) -> Iterator[Found]:
    """Delete the entries of a cache (tools/json_cache.py) that name somebody.

    Somebody else may have made the cache: only files in its folder are read and deleted.

    Raises:
        RunError: it cannot be used, is damaged, or another process uses it.
    """
    path = folder / CACHE
    with opened(path, dry=dry) as database:
        rows = database.execute("SELECT rowid, key, filename, value FROM Cache").fetchall()
        entries = [
            (row["rowid"], row["filename"])
            for row in rows
            if any(map(finder.finds, _texts(folder, row["key"], row["filename"], row["value"])))
        ]
        foreign = sum(leads_out(folder, str(row["filename"])) for row in rows if row["filename"])
        if not dry:
            with transaction(database):
                database.executemany(
                    "DELETE FROM Cache WHERE rowid = ?", [(rowid,) for rowid, _ in entries]
                )
                for _, name in entries:
                    if name and is_plain_file(folder, str(name)):
                        (folder / str(name)).unlink(missing_ok=True)
    if entries:
        yield Found(kind="cached answers", path=path, count=len(entries), action="deleted")
    if foreign:
        yield Found(
            kind="cached answers", path=path, count=foreign, action="reported", to_do=_FOREIGN
        )


def _texts(folder: Path, key: object, filename: object, value: object) -> Iterator[str]:
    yield _unpacked(key)
    yield _unpacked(value)
    if filename and is_plain_file(folder, str(filename)):
        yield _unpacked((folder / str(filename)).read_bytes())


def _unpacked(value: object) -> str:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return zlib.decompress(value).decode(errors="replace")
    except zlib.error:
        return value.decode(errors="replace")


def forget_places(
    path: Path, finder: NameFinder, samples: set[str], *, dry: bool
) -> Iterator[Found]:
    """Delete the places of samples that name somebody, or are asked anew.

    Args:
        path: checkpoints.db.
        finder: Whom to look for.
        samples: Ids of the samples that are asked anew or no more.
        dry: Whether only to look.

    Raises:
        RunError: it cannot be used, is damaged, or another process uses it.
    """
    if not path.exists():
        return
    with opened(path, dry=dry) as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        told = {"checkpoints": "checkpoint, metadata", "writes": "channel, value"}
        threads = set[str]()
        for table in told.keys() & tables:
            for row in database.execute(f"SELECT thread_id, {told[table]} FROM {table}"):
                bodies = [each.decode(errors="replace") if isinstance(each, bytes) else str(each)
                          for each in row]  # fmt: skip
                if row["thread_id"] in samples or any(map(finder.finds, bodies)):
                    threads.add(row["thread_id"])
        if not dry:
            with transaction(database):
                for table in told.keys() & tables:
                    database.executemany(
                        f"DELETE FROM {table} WHERE thread_id = ?", [(each,) for each in threads]
                    )
    if threads:
        yield Found(kind="samples in flight", path=path, count=len(threads), action="deleted")
