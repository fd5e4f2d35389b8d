"""The place of a store: its file, or the PostgreSQL schema named by a small file beside it.

Callers know a store by the path of its file, such as RUN/run.db. If RUN/run.store.json exists
instead, the store is a schema of the database that `COREEVAL_STORE_URL` names. That file may be
foreign, like the run's folder: it contains no address, and can only name CoreEval's schemas.
"""

import json
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from coreeval.errors import RunCorrupt
from coreeval.tools.files import special_kind, write_text

StoreKind = Literal["sqlite", "postgresql"]
URL_VARIABLE: Final = "COREEVAL_STORE_URL"
MARKER_ENDING: Final = ".store.json"
STORE_VERSIONS: Final = {"the call store": 10, "run.db": 13}
"""The version of the tables of each store, by the store's name for users."""
_SCHEMA = re.compile(r"coreeval_[a-z0-9_]{1,54}")
_MOST_BYTES = 1000


def marker_of(path: Path) -> Path:
    """Return the file that says that a store is in PostgreSQL."""
    return path.with_name(f"{path.stem}{MARKER_ENDING}")


def has_store(path: Path) -> bool:
    """Return whether a store exists: its file, or the file that names its schema."""
    return path.exists() or marker_of(path).exists()


def store_kind(path: Path) -> StoreKind | None:
    """Return where a store is; None if there is none.

    Raises:
        RunCorrupt: there are both kinds, or the file that names the schema is damaged.
    """
    if find_schema(path):
        return "postgresql"
    return "sqlite" if path.exists() else None


def find_schema(path: Path) -> str | None:
    """Return the schema of a store in PostgreSQL; None if the store is a file, or is missing.

    Raises:
        RunCorrupt: the file that names it is damaged, or there is also a store in a file.
    """
    marker = marker_of(path)
    if not marker.exists() and not marker.is_symlink():
        return None
    if kind := special_kind(marker):
        raise RunCorrupt(
            f"{marker.name} is {kind}, which CoreEval never creates; nothing was read or written",
            where=str(marker),
            hint="delete it, or replace it with a file",
        )
    schema = read_marker(marker)
    if path.exists():
        raise RunCorrupt(
            f"{path.name} exists, but {marker.name} says that the store is in PostgreSQL",
            where=str(path),
            hint="move away the file that does not belong to the store",
        )
    return schema


def read_marker(marker: Path) -> str:
    """Return the schema that a file names.

    Raises:
        RunCorrupt: it does not name a schema of CoreEval.
    """
    try:
        with marker.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
        store, schema = found["store"], found["schema"]
        if store == "postgresql" and _SCHEMA.fullmatch(schema):
            return str(schema)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise RunCorrupt(
        f"{marker.name} does not name a schema of CoreEval",
        where=str(marker),
        hint="restore it from a copy, or start a new run",
    )


def write_marker(path: Path, schema: str) -> None:
    """Write the file that names the schema of a store.

    Raises:
        FileExistsError: another process has written it first.
    """
    told = json.dumps({"store": "postgresql", "schema": schema})
    draft = path.with_name(f"{schema}.tmp")
    write_text(draft, f"{told}\n")
    try:
        os.link(draft, marker_of(path))
    finally:
        draft.unlink()


def name_schema(path: Path) -> str:
    """Return a new name for a store's schema, with its kind and the name of its folder."""
    parts = (path.stem, path.resolve().parent.name, secrets.token_hex(6))
    plain = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_")[:20] for part in parts]
    return "_".join(["coreeval", *filter(None, plain)])


def iter_stores(folder: Path, name: str) -> Iterator[Path]:
    """Yield the paths of the stores of a name in a folder and its folders, sorted."""
    marker = marker_of(Path(name)).name
    found = {*folder.rglob(name), *(path.with_name(name) for path in folder.rglob(marker))}
    yield from sorted(found)
