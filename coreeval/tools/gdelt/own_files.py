"""Checks that a news store has no links or pipes, and no listed paths outside of it.

A store may be from somebody else, as in a repository, and syncs and takedowns delete files in it.
"""

from collections.abc import Iterable
from pathlib import Path

from coreeval.errors import KnowledgeError
from coreeval.tools.files import is_inside, special_files_among, special_kind

ENTRIES = ("store.db", "lock", "segments", "signals", "parts", "aside", "downloads")
"""The names that a store's folder may contain."""
_DATA = ("segments", "signals")


def refuse_special_files(store: Path) -> None:
    """Check that a store contains only files and folders; its own folder may be a link.

    Raises:
        KnowledgeError: the store contains a link, pipe or device.
    """
    for path in special_files_among(store, ENTRIES):
        raise KnowledgeError(
            f"this news store contains {special_kind(path)}, which CoreEval never creates; nothing "
            "was read or written",
            where=str(path),
            hint="delete it, or replace it with a file; if you do not know the origin of this "
            "store, use another store",
        )


def own_paths(store: Path, listed: Iterable[str]) -> list[str]:
    """Return the listed paths of data files, all of which are in the store's data folders.

    Raises:
        KnowledgeError: a path is not in one of these folders.
    """
    paths = list(listed)
    for path in paths:
        if not is_inside(str(path)) or str(path).partition("/")[0] not in _DATA:
            raise KnowledgeError(
                f"this news store lists a data file outside its folders: {path!r}",
                where=str(store),
                hint="CoreEval never writes such a list, so nothing was read or deleted; use "
                "another store, or rebuild this one from its files",
            )
    return paths
