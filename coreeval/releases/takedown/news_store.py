"""Erases articles of a news store that name a person in their text or address."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from coreeval.agents.name_finder import STROKED, NameFinder
from coreeval.errors import KnowledgeError, RunLocked
from coreeval.releases.takedown.calls import TextMatches, open_database, sqlite_errors, transaction
from coreeval.releases.takedown.documents import erase_in_document
from coreeval.tools.files import hold_lock, replacing
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.store_catalog import (
    CATALOG,
    StoreLayout,
    find_replaced_parts,
    list_segments,
    open_catalog,
)
from coreeval.tools.gdelt.own_files import find_aside_files, refuse_special_files, remove_part
from coreeval.tools.gdelt.sync.intake import COMPRESSION_LEVEL
from coreeval.tools.stores.heartbeat import StoreDatabase

TAKEN_DOWN_TITLE = "taken down"
"""The reason recorded for erased rows in the store's counts."""
_TEXTS = ("url", "title", "snippet")
_LISTS = ("entities", "cites")
_WORTH_A_LOOK = ("%", "&", "\\")
"""The first characters of escapes."""


def erase_news(root: Path, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    """Delete the articles of a store that name a person, and rebuild the search index.

    The remains of killed processes and replaced parts are deleted, too. The folder may have files
    of the user's: all that is deleted has a name that only CoreEval gives.

    Raises:
        RunLocked: a sync is using the store.
        RunError: the store's list cannot be used or is damaged.
        KnowledgeError: the store contains a link, its list names other files, or its lock is a
            file of the user's.
    """
    refuse_special_files(root)
    if dry:
        yield from _articles(root, finder, dry=True)
        return
    layout = StoreLayout(root)
    taken = RunLocked(
        "a sync of this news store is running", where=str(root), hint="wait until it has ended"
    )
    if layout.lock.exists() and layout.lock.stat().st_size:  # locking it would empty it
        raise KnowledgeError(
            "the lock of this news store is not empty, so CoreEval did not create it",
            where=str(layout.lock),
            hint="move it elsewhere",
        )
    with sqlite_errors(layout.ledger), hold_lock(layout.lock, taken):
        with open_catalog(root) as database:
            layout.clear_leftovers(list_segments(root, database))
        yield from _articles(root, finder, dry=False)
        compact(root)
        with open_catalog(root) as database:
            for folder in find_replaced_parts(root, database):  # kept for searches in progress
                remove_part(folder)


def _articles(root: Path, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    with open_database(StoreLayout(root).ledger, dry=dry, known=CATALOG) as database:
        listed = list_segments(root, database)
        count = sum(_erase_rows(root, path, finder, database, dry=dry) for path in listed)
    if count:
        yield TextMatches(kind="news", path=root, count=count, action="deleted")
    for file in find_aside_files(root):
        yield from erase_in_document(file, finder, dry=dry)


def _erase_rows(
    root: Path, path: str, finder: NameFinder, database: StoreDatabase, *, dry: bool
) -> int:
    """Rewrite a file without its matching rows, under a new name; return the number of these rows.

    The new name marks the parts derived from the file as out of date.
    """
    table = pq.read_table(root / path)
    named = np.fromiter(_matching_rows(table, finder), np.int64)
    if not len(named) or dry:
        return len(named)
    left = table.take(pa.array(np.setdiff1d(np.arange(len(table)), named)))
    new = f"{path.rpartition('-')[0]}-{sha256(f'{path} {named.tolist()}'.encode()).hexdigest()[:8]}"
    if len(left):
        with replacing(root / f"{new}.parquet") as draft:
            pq.write_table(left, draft, compression="zstd", compression_level=COMPRESSION_LEVEL)
    with transaction(database):
        _rewrite_list(database, path, f"{new}.parquet", len(left))
        if "file" in table.column_names:
            _count_out(database, table["file"].take(pa.array(named)).to_numpy())
    (root / path).unlink()
    return len(named)


def _rewrite_list(database: StoreDatabase, old: str, new: str, rows: int) -> None:
    (day,) = database.execute("SELECT day FROM segments WHERE path = ?", (old,)).fetchone()
    database.execute("DELETE FROM segments WHERE path = ?", (old,))
    if rows:
        database.execute("INSERT INTO segments VALUES (?, ?, ?)", (new, day, rows))
        database.execute("UPDATE holds SET segment = ? WHERE segment = ?", (new, old))
    else:
        database.execute("DELETE FROM holds WHERE segment = ?", (old,))


def _count_out(database: StoreDatabase, files: Any) -> None:  # noqa: ANN401 - numpy's
    """Record the erased rows as bad rows, so that the counts of each file still add up."""
    numbers, counts = np.unique(files, return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        where = "FROM files WHERE id = ?"
        for row in database.execute(f"SELECT bad {where}", (number,)).fetchall():
            bad = json.loads(row["bad"])
            bad[TAKEN_DOWN_TITLE] = bad.get(TAKEN_DOWN_TITLE, 0) + count
            change = "UPDATE files SET bad = ?, articles = articles - ? WHERE id = ?"
            database.execute(change, (json.dumps(bad), count, number))


# -- which ----------------------------------------------------------------------------------------


def _matching_rows(table: Any, finder: NameFinder) -> Iterator[int]:  # noqa: ANN401 - Arrow has no types
    """Yield the indices of the rows that name a person."""
    pieces = finder.plainest
    texts = [name for name in _TEXTS if name in table.column_names]
    likely = set[int]()
    for name in texts:
        likely.update(_likely_rows(table[name].combine_chunks(), pieces))
    for name in _LISTS:
        if name in table.column_names:
            lists = table[name].combine_chunks()
            owners, items = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists)
            items = pc.struct_field(items, "name") if name == "entities" else items
            likely.update(int(owners[at]) for at in _likely_rows(items, pieces))
            texts.append(name)
    chosen = table.select(texts)
    for row in sorted(likely):
        if finder.finds_in(chosen.slice(row, 1).to_pylist()):
            yield row


def _likely_rows(texts: Any, pieces: Sequence[str]) -> list[int]:  # noqa: ANN401
    """Return the rows that may match; Arrow scans a million titles per second."""
    if not pieces:
        return list(range(len(texts)))
    plain = pc.replace_substring_regex(pc.utf8_normalize(texts, "NFKD"), r"[\p{Mn}\p{Cf}]", "")
    plain = pc.utf8_lower(plain)
    if pc.any(pc.match_substring_regex(plain, f"[{''.join(STROKED)}]")).as_py():
        for letter, written in STROKED.items():
            plain = pc.replace_substring(plain, letter, written)
    found = [pc.match_substring(plain, piece) for piece in (*pieces, *_WORTH_A_LOOK)]
    either = found[0]
    for each in found[1:]:
        either = pc.or_(either, each)
    rows: list[int] = np.flatnonzero(pc.fill_null(either, False).to_numpy(False)).tolist()
    return rows
