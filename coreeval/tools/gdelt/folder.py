"""A folder of plain GDELT files as a store: made once for each state of the folder."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.files import UNDERSTOOD, find_files
from coreeval.tools.gdelt.parts.catalogue import DATABASE
from coreeval.tools.gdelt.parts.version import code_version


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
                _make(store, path)
    return store


def _make(store: Path, path: Path) -> None:
    """Write the store beside its place and rename it, so that a half-made one is never seen."""
    from coreeval.tools.gdelt.parts.compact import compact
    from coreeval.tools.gdelt.store.sync import Around, sync_folder

    work = store.with_suffix(".part")
    if work.exists():
        shutil.rmtree(work)  # left by a process that was killed; the lock says it is not at work
    sync_folder(work, path, around=Around(finish=compact))
    work.rename(store)


def _fingerprint(path: Path, files: Sequence[Path]) -> str:
    """Hash the names, sizes and times of the files, and the code that reads them."""
    digest = hashlib.sha256(code_version().encode())
    for file in files:
        found = file.stat()
        name = file.name if file == path else file.relative_to(path).as_posix()
        digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
