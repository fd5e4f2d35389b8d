"""Migrates stores of older CoreEval versions to the tables of this one.

The first released versions are those of `places.STORE_VERSIONS` when 0.1.0 was published; every
later version has a step. All steps run in one transaction: a killed process leaves the store
unchanged. A process of the older version may be running meanwhile, so steps only add: columns with
a default, tables, indexes, triggers. Statements in the files of older versions that new files do
not have, and those that a step changes, are listed in `Schema.also`. Code that reads a store
without opening it (`heartbeat.open_readonly`) uses only what the first version has.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import Connection, text

from coreeval.errors import RunCorrupt

Migration = Callable[[Connection], None]
"""A function that changes the tables of one version to the next, in SQLite and PostgreSQL."""
Migrations = Mapping[int, Migration]
"""The steps of a store, by the version that each starts from."""
_NONE: Final[Migrations] = {}


def migrate(connection: Connection, found: int, wanted: int, steps: Migrations) -> None:
    """Migrate the tables of a store to this version, within the connection's transaction.

    Args:
        connection: The store, in a transaction that excludes other processes.
        found: The version that the store has; `refuse_version` says whether steps lead from it.
        wanted: The version to reach.
        steps: The steps from older versions.
    """
    for version in range(found, wanted):
        steps[version](connection)
    connection.execute(text("DELETE FROM schema_version"))
    connection.execute(text("INSERT INTO schema_version VALUES (:n)"), {"n": wanted})


def refuse_version(
    found: object, wanted: int, steps: Migrations = _NONE, *, what: str, where: str
) -> None:
    """Refuse a store of another version if no steps lead to this one.

    Args:
        found: The version that the store has.
        wanted: The version that it must have.
        steps: The steps from older versions.
        what: The name of the store to show to users.
        where: Its place to show to users.

    Raises:
        RunCorrupt: it is of a newer CoreEval, or of one before the first release.
    """
    newer = isinstance(found, int) and found > wanted
    if isinstance(found, int) and not newer and set(range(found, wanted)) <= steps.keys():
        return
    raise RunCorrupt(
        f"{what} has schema version {found}; this version of CoreEval supports only {wanted}",
        where=where,
        hint="install a newer CoreEval"
        if newer
        else "a pre-release version of CoreEval created it; move it away and start again",
    )
