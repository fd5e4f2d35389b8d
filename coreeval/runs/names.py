"""The names of runs: ways to identify a run of a workspace without its path.

A run is in `runs/NAME/START` of its workspace. It can be named by its short id, by the beginning of
its start, by its benchmark's name (the newest run of it), or as `latest`.
"""

import difflib
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coreeval.errors import RunStateError, UsageError
from coreeval.tools.files import write_text
from coreeval.tools.terminal import one_line
from coreeval.tools.workspace import RunFiles, Workspace, workspace_for

LATEST: Final = "latest"
ID_DIGITS: Final = 6
_FEWEST_DIGITS: Final = 3
"""The fewest characters of an id or start time that identify a run (own choice)."""
_START: Final = re.compile(r"(\d{8}T\d{6}Z)(?:-(\d+))?")
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
MOST_TAGS: Final = 100
_MOST_CHARACTERS: Final = 10_000
"""A size that no file of tags exceeds; the file may come from a stranger."""


def list_run_folders(workspace: Workspace, name: str = "*") -> list[Path]:
    """Return the directories of the runs of a workspace, or of one benchmark, newest first."""
    found = [path.parent for path in workspace.runs.glob(f"{name}/*/manifest.json")]
    return sorted(found, key=lambda folder: (_start_of(folder), folder), reverse=True)


def _start_of(folder: Path) -> tuple[str, int]:
    """Return when a run began, from the name of its directory, and its number in that second."""
    start = _START.fullmatch(folder.name)
    return (start[1], int(start[2] or 1)) if start else ("", 0)


def short_id(folder: Path) -> str:
    """Return the id of a run: the first hex digits of the sha256 of its name and start time."""
    return hashlib.sha256("/".join(folder.parts[-2:]).encode()).hexdigest()[:ID_DIGITS]


def has_manifest(folder: Path) -> bool:
    """Return whether a folder has a manifest, even a damaged one; otherwise it is not a run's."""
    return os.path.lexists(folder / "manifest.json")


def find_run(word: str, workspace: Workspace, *, what: str = "run") -> Path:
    """Return the directory of the run with a name.

    An existing path that is not a run's is returned only if no run has this name.

    Args:
        word: A path, an id, the beginning of a start, a benchmark's name or `latest`.
        workspace: The workspace with the runs.
        what: The things that the word may stand for, in the message if there is none.

    Raises:
        RunStateError: there is no such run, or `latest`, and there is no run.
        UsageError: the word stands for several runs.
    """
    given = Path(word)
    if has_manifest(given):
        return given
    if word == LATEST:
        return _newest(workspace)
    name, slash, start = word.rpartition("/")
    if slash and "/" in name and os.path.lexists(given):
        return given
    known = list_run_folders(workspace)
    of_name = _of_benchmark(name or word, known)
    if of_name and (not slash or start == LATEST):
        return of_name[0]
    found = [folder for folder in of_name or known if _is_meant(folder, start or word)]
    if len(found) > 1:
        raise UsageError(
            f"{word!r} matches {len(found)} runs",
            hint=f"one of {', '.join(short_id(folder) for folder in found[:5])}",
        )
    if found:
        return found[0]
    if os.path.lexists(given):
        return given
    raise _no_such_run(word, known, workspace, what)


def find_run_folder(run: Path | str, *, what: str = "run") -> Path:
    """Return the directory of a run, named as `find_run` takes it, of the current workspace.

    Args:
        run: A path, an id, the beginning of a start, a benchmark's name or `latest`.
        what: The things that the word may stand for, in the message if there is none.

    Raises:
        RunStateError: there is no such run.
        UsageError: the word stands for several runs, or for a file.
    """
    found = find_run(str(run), workspace_for(Path.cwd()), what=what)
    if found.is_file():
        raise UsageError(
            f"{one_line(str(found))!r} is a file, but a run is a directory",
            hint="pass a run's directory, a run's id, the name of a benchmark, or `latest`",
        )
    return found


def _no_such_run(
    word: str, known: Sequence[Path], workspace: Workspace, what: str
) -> RunStateError:
    """Return the error for a word that is neither a run nor a path, with the most similar name."""
    told = f"there is no {what} {word!r}"
    if not known:
        hint = "change to the folder of your config, or start a run: coreeval refresh CONFIG"
        return RunStateError(told, where=str(workspace.runs), hint=hint)
    names = [LATEST, *map(short_id, known), *(folder.parent.name for folder in known)]
    names += ["/".join(folder.parts[-2:]) for folder in known]
    near = difflib.get_close_matches(word, names, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    hint = f"{meant}`coreeval runs` lists the ids of all runs"
    return RunStateError(told, where=str(workspace.runs), hint=hint)


def _of_benchmark(name: str, known: Sequence[Path]) -> list[Path]:
    """Return the runs of a benchmark; a part of its name is enough if no other has it."""
    exact = [folder for folder in known if folder.parent.name == name]
    near = [folder for folder in known if name in re.split(r"[-_.]", folder.parent.name)]
    return exact or (near if len({folder.parent for folder in near}) == 1 else [])


def _is_meant(folder: Path, word: str) -> bool:
    if len(word) < _FEWEST_DIGITS:
        return False
    return folder.name.startswith(word) or short_id(folder).startswith(word)


def _newest(workspace: Workspace) -> Path:
    for folder in list_run_folders(workspace):
        return folder
    raise RunStateError(
        "there are no runs yet",
        where=str(workspace.runs),
        hint="change to the folder of your config, or start a run: coreeval refresh CONFIG",
    )


def read_tags(files: RunFiles) -> list[str]:
    """Return the tags of a run; invalid lines are ignored."""
    try:
        with files.tags.open(encoding="utf-8", errors="replace") as file:
            lines = file.read(_MOST_CHARACTERS).splitlines()
    except OSError:
        return []
    return sorted({line for line in lines[:MOST_TAGS] if _TAG.fullmatch(line)})


def require_tag(word: str) -> str:
    """Return a word after checking that it is a tag.

    Raises:
        UsageError: it is not a tag.
    """
    if not _TAG.fullmatch(word):
        raise UsageError(
            f"{word[:80]!r} is not a valid tag",
            hint="use letters, digits, dots, dashes and underscores",
        )
    return word


def change_tags(files: RunFiles, add: Sequence[str], remove: Sequence[str]) -> list[str]:
    """Add and remove tags of a run; return the resulting tags.

    Raises:
        UsageError: a word is not a valid tag.
    """
    for word in (*add, *remove):
        require_tag(word)
    tags = sorted({*read_tags(files), *add} - set(remove))
    if len(tags) > MOST_TAGS:
        raise UsageError(f"a run has at most {MOST_TAGS} tags")
    write_text(files.tags, "".join(f"{tag}\n" for tag in tags))
    return tags
