"""The files of a news store, by names that only CoreEval gives.

A store may be from somebody else, as in a repository, or its `store.db` may be in a folder of the
user's. Syncs and takedowns delete files in a store, so they delete only these; the store may not
have links or pipes, or list other files.
"""

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from coreeval.errors import KnowledgeError
from coreeval.tools.files import special_files_among, special_kind

DOWNLOADS = ".coreeval-downloads"
"""The folder of downloads that are being read."""
WORK = ".coreeval-work"
"""The folder, in `parts/`, of the part that is being built."""
PART_FILES = ("index.bin", "texts.bin")
"""The files of a part."""
ENTRIES = ("store.db", "lock", "segments", "signals", "parts", "aside", DOWNLOADS)
"""The names that a store's folder may contain."""
_DATA_FILE = re.compile(
    r"(?:segments|signals)/[0-9]{4}-[0-9]{2}-[0-9]{2}/[0-9]{8,}-[0-9a-f]{8}\.parquet"
)
_DRAFT = re.compile(r"\.(.+)\.[0-9]+\.tmp")
_PART = re.compile(r"[0-9]{6,}")
_ASIDE = re.compile(r"[^/]+\.jsonl\.gz")


def refuse_special_files(store: Path) -> None:
    """Check that a store contains only files and folders; its own folder may be a link.

    Raises:
        KnowledgeError: the store contains a link, pipe or device, or too deep a folder.
    """
    try:
        path = next(special_files_among(store, ENTRIES), None)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise KnowledgeError(
            "this news store contains folders nested so deeply that they cannot be read, which "
            "CoreEval never creates",
            where=str(store),
            hint="delete them, or use another store",
        ) from None
    if path:
        raise KnowledgeError(
            f"this news store contains {special_kind(path)}, which CoreEval never creates; nothing "
            "was read or written",
            where=str(path),
            hint="delete it, or replace it with a file; if you do not know the origin of this "
            "store, use another store",
        )


def own_paths(store: Path, listed: Iterable[str]) -> list[str]:
    """Return the listed paths of data files, all of which have names that CoreEval gives.

    Raises:
        KnowledgeError: a path does not.
    """
    paths = list(listed)
    for path in paths:
        if not _DATA_FILE.fullmatch(str(path)):
            raise KnowledgeError(
                f"this news store lists a file that is not one of its data files: {path!r}",
                where=str(store),
                hint="CoreEval never writes such a list, so nothing was read or deleted; use "
                "another store, or rebuild this one from its files",
            )
    return paths


def find_data_files(store: Path) -> Iterator[Path]:
    """Yield the data files of a store, listed or not, and the drafts of killed processes."""
    for folder in ("segments", "signals"):
        for path in (store / folder).glob("*/*"):
            draft = _DRAFT.fullmatch(path.name)
            name = draft[1] if draft else path.name
            if _DATA_FILE.fullmatch(f"{folder}/{path.parent.name}/{name}") and _is_plain(path):
                yield path


def find_aside_files(store: Path) -> list[Path]:
    """Return the files of invalid rows, and the drafts of killed processes."""
    found = []
    for path in sorted((store / "aside").glob("*")):
        draft = _DRAFT.fullmatch(path.name)
        if _ASIDE.fullmatch(draft[1] if draft else path.name) and _is_plain(path):
            found.append(path)
    return found


def find_part_folders(store: Path) -> list[Path]:
    """Return the folders of parts, in use or replaced."""
    folders = (store / "parts").glob("[0-9]*")
    return sorted(path for path in folders if _PART.fullmatch(path.name) and path.is_dir())


def remove_part(folder: Path) -> None:
    """Delete a part; other files in its folder stay, and then also the folder."""
    for name in PART_FILES:
        if _is_plain(folder / name):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()


def find_own_entries(store: Path) -> Iterator[Path]:
    """Yield the files and folders in a store's folders whose names only CoreEval gives."""
    yield from filter(Path.is_dir, (store / DOWNLOADS, store / "parts" / WORK))
    yield from find_data_files(store)
    yield from find_aside_files(store)
    for folder in find_part_folders(store):
        yield from (path for name in PART_FILES if _is_plain(path := folder / name))


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
