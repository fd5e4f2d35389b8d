"""Hides folders of this machine in texts for other people."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from coreeval.config.models import ON_THIS_MACHINE
from coreeval.tools.local_paths import FOLDER_START

_ENDS: Final = range(1, 8)
"""The numbers of last parts that may tell two paths apart."""
_MOST_CHARACTERS: Final = 4095
"""The most characters of a path on Linux; a run from a stranger may name any text."""


def list_private_folders(settings: object, known: Iterable[str]) -> list[str]:
    """Return known folders, and those of files outside them that settings name.

    Two files of the same name in different folders keep as many folders as tell them apart.

    Args:
        settings: Mappings, lists and texts. A text may be a path, or a model's name with one.
        known: The folders that are private in any case.
    """
    folders = {each for each in known if len(each) > 1}
    paths = {*_iter_paths(settings)}
    ends = Counter(
        path.parts[-count:] for path in paths for count in _ENDS if count < len(path.parts)
    )
    outside = [path for path in paths if not any(map(path.is_relative_to, folders))]
    for path in outside:
        told_apart = (count for count in _ENDS if ends[path.parts[-count:]] == 1)
        folder = PurePosixPath(*path.parts[: -next(told_apart, 1)])
        folders.add(str(folder if folder.name else path.parent))
    return sorted(folders - {"/"}, key=len, reverse=True)


def _iter_paths(value: object) -> Iterator[PurePosixPath]:
    if isinstance(value, str):
        provider, _, name = value.partition(":")
        path = name if provider in ON_THIS_MACHINE else value
        if path.startswith("/") and len(path) <= _MOST_CHARACTERS:
            yield PurePosixPath(path)
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_paths(each)


def hide_private_folders(text: str, folders: Iterable[str]) -> str:
    """Return a plain text, page or JSON document without folders: `/home/me/x` becomes `…/x`."""
    from markupsafe import escape

    spelled = {
        said
        for folder in folders
        for said in (
            folder,
            str(escape(folder)),
            json.dumps(folder)[1:-1],
            json.dumps(folder, ensure_ascii=False)[1:-1],
        )
    }
    if not spelled:
        return text
    longest_first = "|".join(map(re.escape, sorted(spelled, key=len, reverse=True)))
    return re.sub(f"{FOLDER_START}(?:{longest_first})/", "\N{HORIZONTAL ELLIPSIS}/", text)
