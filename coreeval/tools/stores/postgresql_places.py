"""The record of a PostgreSQL schema: its store, version and folder.

The schema records the path of the file that names it. If the folder was moved, the new path is
recorded; while the recorded file still exists, another file that names the schema is a copy,
through which the schema may be read but not changed.
"""

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from coreeval.errors import RunCorrupt, RunStateError
from coreeval.tools.stores.places import URL_VARIABLE, read_marker

Execute = Callable[[str, Mapping[str, object]], Any]
"""A function that runs a statement with values for `:name`; its result has `fetchone`."""
_COMMENT = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = :schema"
TABLE: Final = "marker_place"
_CREATE = f"CREATE TABLE {TABLE} (host TEXT NOT NULL, path BYTEA NOT NULL)"
_RECORDED = f"SELECT host, path FROM {TABLE}"
_FORGET = f"DELETE FROM {TABLE}"
_RECORD = f"INSERT INTO {TABLE} VALUES (:host, :path)"


def name_owner(what: str) -> str:
    """Return the comment on the schema of a store."""
    return f"CoreEval: {what}"


def find_version(execute: Execute, schema: str, *, what: str, where: str) -> object:
    """Return the version of the tables of a store's schema.

    Args:
        execute: Runs a statement in the database.
        schema: The schema.
        what: The name of the store to show to users.
        where: The database and the schema to show to users.

    Raises:
        RunCorrupt: the schema is missing, or of another store.
    """
    row = execute(_COMMENT, {"schema": schema}).fetchone()
    if row is None:
        raise RunCorrupt(
            f"{what} is missing: the database has no such schema",
            where=where,
            hint=f"name the right database in {URL_VARIABLE}, or restore the schema from a backup",
        )
    if row[0] != name_owner(what):
        raise RunCorrupt(
            f"the schema does not belong to {what}; nothing was written to it",
            where=where,
            hint="restore from a backup the file that names the schema",
        )
    (found,) = execute("SELECT max(version) FROM schema_version", {}).fetchone()
    return found


def create_record(execute: Execute, marker: Path) -> None:
    """Create the record of a new schema.

    Args:
        execute: Runs a statement in the schema.
        marker: The file that will name the schema.
    """
    execute(_CREATE, {})
    execute(_RECORD, _describe(marker))


def claim_schema(execute: Execute, marker: Path, *, what: str) -> None:
    """Check that a schema may be changed through a file that names it, and record a new path.

    Args:
        execute: Runs a statement in the schema, whose other writers wait meanwhile.
        marker: The file that names the schema.
        what: The name of the store to show to users.

    Raises:
        RunStateError: the file is a copy of another one, which exists or may exist.
    """
    if not refuse_copy(execute, marker, what=what):
        execute(_FORGET, {})
        execute(_RECORD, _describe(marker))


def refuse_copy(execute: Execute, marker: Path, *, what: str) -> bool:
    """Do the same check as `claim_schema`; return whether the path of the file is recorded."""
    found = execute(_RECORDED, {}).fetchone()
    if found is None:
        return False
    host, recorded = str(found[0]), Path(os.fsdecode(found[1]))
    if recorded == marker.resolve():
        return True
    if host != _describe(marker)["host"]:
        why = f"the store belongs to {recorded.parent} on the machine {host}"
        raise _refuse(marker, what, why, host)
    if _is_other(recorded, marker):
        raise _refuse(marker, what, f"the store belongs to {recorded.parent}")
    return False


def _describe(marker: Path) -> dict[str, object]:
    return {"host": socket.gethostname(), "path": os.fsencode(marker.resolve())}


def _is_other(recorded: Path, marker: Path) -> bool:
    """Return whether a recorded file still names the schema and is not the same as another."""
    try:
        status = recorded.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # unknown, so it counts as another
        return True
    if os.path.samestat(status, marker.stat()) and status.st_nlink == 1:  # one folder, two paths
        return False
    try:
        return read_marker(recorded) == read_marker(marker)
    except RunCorrupt:
        return True


def _refuse(marker: Path, what: str, why: str, host: str = "") -> RunStateError:
    schema = read_marker(marker)
    moved = (
        f"if the folder was moved from {host}, run (coreeval docs postgresql): "
        f'psql DATABASE -c "DELETE FROM {schema}.{TABLE}"'
        if host
        else "to use the store in this folder, delete the other folder (coreeval docs postgresql)"
    )
    return RunStateError(
        f"this folder is a copy and can only read {what} in PostgreSQL: {why}",
        where=str(marker),
        hint=f"work in that folder, or start a new run or workspace (COREEVAL_HOME=DIR); {moved}",
    )
