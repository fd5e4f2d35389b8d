"""Deletes the stored scores of texts that belong to no run."""

from collections.abc import Iterator
from pathlib import Path

from coreeval.releases.takedown.calls import TextMatches

_KIND = "files of text scores about any person"


def erase_scores(folder: Path, *, dry: bool) -> Iterator[TextMatches]:
    """Delete all scores in a folder.

    They contain the texts as token numbers, in which names cannot be searched.
    """
    files = list_scores(folder)
    if files and not dry:
        for path in files:
            path.unlink(missing_ok=True)
    if files:
        yield TextMatches(kind=_KIND, path=folder, count=len(files), action="deleted")


def list_scores(folder: Path) -> list[Path]:
    """Return the files of scores in a folder."""
    every = sorted(folder.glob("*.jsonl"))
    return [path for path in every if path.is_file() and not path.is_symlink()]
