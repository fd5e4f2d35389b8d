"""Erases articles of a news store that name a person in their text or address."""

import json
from collections import Counter
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
from coreeval.releases.takedown.documents import (
    MALFORMED,
    MOST_UNPACKED,
    erase_in_document,
    report_unreadable,
)
from coreeval.tools.files import hold_lock, read_parquet_parts, replacing
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.store_catalog import (
    CATALOG,
    StoreLayout,
    find_replaced_parts,
    list_segments,
    open_catalog,
)
from coreeval.tools.gdelt.own_files import WORK, find_aside_files, refuse_special_files, remove_part
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
            file of the user's, or a data file is damaged.
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
    for folder in (layout.downloads, root / "parts" / WORK):
        if folder.is_dir():
            yield report_unreadable(
                folder, ValueError("a killed sync left it; it cannot be deleted")
            )


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
    file = root / path
    named, owners, total = list[int](), list[int](), 0
    try:
        for rows, found in _read_pieces(file, finder):
            named += [total + at for at in found]
            total += len(rows)
            if "file" in rows.column_names:
                owners += rows["file"].take(pa.array(found, pa.int64())).to_pylist()
    except (OSError, *MALFORMED) as error:
        raise KnowledgeError(
            f"a data file of the news store, {path}, is damaged: {error}",
            where=str(file),
            hint="delete the store and download its news again",
        ) from None
    if not named or dry:
        return len(named)
    new = f"{path.rpartition('-')[0]}-{sha256(f'{path} {named}'.encode()).hexdigest()[:8]}.parquet"
    if left := total - len(named):
        _write_others(file, root / new, finder)
    with transaction(database):
        _rewrite_list(database, path, new, left)
        _count_out(database, owners)
    file.unlink()
    return len(named)


def _read_pieces(file: Path, finder: NameFinder) -> Iterator[tuple[Any, list[int]]]:
    """Yield some rows of a file at a time, and which of them name a person."""
    schema = pq.read_schema(file)
    for part in read_parquet_parts(file, MOST_UNPACKED):
        rows = pa.Table.from_batches([part]).cast(schema)
        yield rows, list(_matching_rows(rows, finder))


def _write_others(file: Path, new: Path, finder: NameFinder) -> None:
    """Write the rows of a file that name nobody to another file."""
    packing = {"compression": "zstd", "compression_level": COMPRESSION_LEVEL}
    with (
        replacing(new) as draft,
        pq.ParquetWriter(draft, pq.read_schema(file), **packing) as writer,
    ):
        for rows, found in _read_pieces(file, finder):
            writer.write_table(rows.take(pa.array(np.setdiff1d(np.arange(len(rows)), found))))


def _rewrite_list(database: StoreDatabase, old: str, new: str, rows: int) -> None:
    (day,) = database.execute("SELECT day FROM segments WHERE path = ?", (old,)).fetchone()
    database.execute("DELETE FROM segments WHERE path = ?", (old,))
    if rows:
        database.execute("INSERT INTO segments VALUES (?, ?, ?)", (new, day, rows))
        database.execute("UPDATE holds SET segment = ? WHERE segment = ?", (new, old))
    else:
        database.execute("DELETE FROM holds WHERE segment = ?", (old,))


def _count_out(database: StoreDatabase, files: Sequence[int]) -> None:
    """Record the erased rows as bad rows, so that the counts of each file still add up."""
    for number, count in Counter(files).items():
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
