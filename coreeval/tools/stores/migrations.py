"""How a store of an older CoreEval gets the tables of this one.

The first released versions are those of `places.STORE_VERSIONS` when 0.1.0 was published; there are
steps from each of them on. A step runs in one transaction with those before and after it: a process
that is killed leaves the store as it was. A process of the older version may be at work meanwhile,
so that a step only adds: columns with a default, tables, indexes, triggers. What reads a store
without opening it (`heartbeat.open_readonly`) relies on nothing that the first version lacks.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import Connection, text

from coreeval.errors import RunCorrupt

Migration = Callable[[Connection], None]
"""Changes the tables of one version into those of the next, in SQLite and in PostgreSQL."""
Migrations = Mapping[int, Migration]
"""The steps of a store, each by the version that it starts from."""
_NONE: Final[Migrations] = {}


def migrate(connection: Connection, found: int, wanted: int, steps: Migrations) -> None:
    """Bring the tables of a store to this version, within the connection's transaction.

    Args:
        connection: The store, in a transaction that no other process can be in.
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
    """Refuse a store that is not of this version and that no steps lead to it.

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
        else "a pre-release version of CoreEval made it: move it away and start again",
    )
