"""The files that a dataset in the hub's layout may read: those of its own folder or repository.

Its card names its files, and the card is untrusted: a path that leaves the folder, a link or an
address would turn any file of this machine, or any response in its network, into samples.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final
from urllib.parse import urlsplit

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import refuse_special_files
from coreeval.tools.files import is_inside

READERS_OF_OTHER_FILES: Final = ("h5py", "lance", "pyiceberg")
"""Packages for files that name other files, which they open without any check of paths."""


@contextmanager
def keep_to_own_files(package: ModuleType, path: str) -> Iterator[None]:
    """Restrict the package `datasets` to the files of one dataset before it opens any.

    Within the block, its function that turns the names in a card into paths refuses all other
    names, without a request. `READERS_OF_OTHER_FILES` cannot be imported.

    Args:
        package: The package `datasets`.
        path: The dataset: a folder, or a name on the hub.

    Raises:
        DatasetError: a link leaves the folder, or, within the block, the card names a file that is
            not the dataset's own.
    """
    root = _find_root(path)
    resolve = package.data_files.resolve_pattern

    def resolve_own(pattern: str, base_path: str, *args: object, **options: object) -> list[str]:
        if not (_is_below(base_path, root) and _is_own_name(pattern)):
            raise _refuse(pattern if _is_below(base_path, root) else base_path, path)
        found: list[str] = resolve(pattern, base_path, *args, **options)
        return found

    hidden = {name: sys.modules.get(name) for name in READERS_OF_OTHER_FILES}
    sys.modules.update(dict.fromkeys(READERS_OF_OTHER_FILES))  # type: ignore[arg-type]
    package.data_files.resolve_pattern = resolve_own
    try:
        yield
    finally:
        package.data_files.resolve_pattern = resolve
        for name, module in hidden.items():
            del sys.modules[name]
            if module:
                sys.modules[name] = module


def _find_root(path: str) -> str:
    """Return the common root of all files: the folder, or the address on the hub.

    Raises:
        DatasetError: a link in the folder leaves it.
    """
    if Path(path).is_dir():
        folder = Path(path).resolve()
        walked = ((Path(at), names + files) for at, names, files in os.walk(folder))
        inside = (at / name for at, names in walked for name in names)
        refuse_special_files(folder, filter(Path.is_symlink, inside))
        return str(folder)
    name = path.removeprefix("hf://")
    if name.startswith("buckets/"):
        return f"hf://{name}"
    return f"hf://datasets/{name.removeprefix('datasets/')}"


def _is_below(base_path: str, root: str) -> bool:
    """Return whether the base folder of names is the dataset's own."""
    if not root.startswith("hf://"):
        return "://" not in base_path and Path(base_path).resolve().is_relative_to(root)
    rest = base_path.removeprefix(root)
    return rest != base_path and (not rest or (rest[0] in "@/" and _is_own_name(rest[1:])))


def _is_own_name(pattern: str) -> bool:
    """Return whether a name or pattern of a card is relative and stays inside its folder.

    In the package, `::` marks a file within another one, whose address follows.
    """
    return (
        is_inside(pattern.replace("\\", "/"))
        and "::" not in pattern
        and "://" not in pattern
        and not _has_scheme(pattern)
    )


def _has_scheme(pattern: str) -> bool:
    try:
        return bool(urlsplit(pattern).scheme)
    except ValueError:
        return True


def _refuse(name: str, path: str) -> DatasetError:
    return DatasetError(
        f"the dataset card names a file outside the dataset: {name!a}",
        where=path,
        hint="in README.md or .huggingface.yaml, set `data_files` and `data_dir` to paths "
        "relative to the dataset's folder; if someone else wrote these entries, ask why they "
        "point elsewhere",
    )
