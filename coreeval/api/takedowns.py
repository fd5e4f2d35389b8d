"""Removing a person who asks to be forgotten from stored data."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.places import find_workspace
from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.errors import UsageError
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from coreeval.graph.monitor import Watch
    from coreeval.releases.takedown.calls import TextMatches

_PLACE_COLUMNS: Final = parse_columns("kind path count:integer action to_do")
_REPORTED: Final = "reported"
"""The action for places that only their owner can change."""


def take_down(
    name: str,
    *,
    aliases: Sequence[str] = (),
    paths: Sequence[Path | str] = (),
    listed: Path | str | None = None,
    dry_run: bool = True,
    workspace: Path | str | None = None,
    progress: bool = True,
) -> CommandResult:
    """Delete stored data about a person; by default, only show where it is.

    Args:
        name: The name of the person who asks to be forgotten.
        aliases: Other names of the person.
        paths: Other places to search: sheets, runs, news stores, or folders that contain them.
        listed: The takedown list to add the person to; by default `takedown.txt` in the workspace.
        dry_run: Whether to search without changing anything.
        workspace: The workspace, or the folder that has a `.coreeval`; by default the current one.
        progress: Show a progress bar on a terminal and in a notebook.

    Returns:
        A result whose table has a row for each place: the matches, and what was done.

    Raises:
        UsageError: there is no workspace, or a name is too short to be searched.
        RunLocked: another process is using a run that names the person.
    """
    from coreeval.api.progress import show_progress_to_viewer

    given = list(map(Path, paths))
    return search_places(
        [name, *aliases],
        given,
        None if listed is None else Path(listed),
        workspace,
        dry_run=dry_run,
        progress=lambda: show_progress_to_viewer(progress),
    )


def search_places(
    names: Sequence[str],
    paths: Sequence[Path],
    listed: Path | None,
    workspace: Path | str | None,
    *,
    dry_run: bool,
    progress: "Callable[[], AbstractContextManager[Watch]]",
) -> CommandResult:
    """Do the same as `take_down`; `progress` opens a callback that shows the search's progress."""
    from coreeval.agents.name_finder import NameFinder
    from coreeval.releases.takedown.erasure import Erasure, find_places
    from coreeval.releases.takedown.names import check_names, find_missing_names

    known, here = check_names(names), find_workspace(workspace)
    if not here.root.is_dir() and not paths:
        raise UsageError(
            "no workspace found",
            where=str(here.root),
            hint="use --workspace DIR (usually .coreeval next to the config)",
        )
    place = listed or here.takedown
    number = find_places(here, paths, place).number
    with progress() as watch:
        tell = _count_places(watch, number)
        erasure = Erasure(here, paths, NameFinder(known), place, tell)
        found = erasure.count_all() if dry_run else erasure.erase_all()
    rows = [*map(_place_row, found)]
    document = {
        "names": list(known),
        "list": str(place),
        "listed": not find_missing_names(place, known),
        "workspace": str(here.root),
        "dry_run": dry_run,
        "done": not dry_run,
        "places": [row for row in rows if row["action"] != _REPORTED],
        "left": [row for row in rows if row["action"] == _REPORTED],
        "resume": [
            each.to_do for each in found if each.kind == "results of the run" and each.to_do
        ],
    }
    places = format_quantity(len(rows), "place names", "places name")
    said = f"{places} {', '.join(known)}; {'nothing was changed' if dry_run else 'taken out'}"
    return CommandResult(document, said, Table.from_dicts("places", _PLACE_COLUMNS, rows))


def _count_places(watch: "Watch", total: int) -> Callable[[str], None]:
    """Return a callback that shows the place being searched."""
    from coreeval.graph.monitor import Progress

    done = 0

    def tell(place: str) -> None:
        nonlocal done
        watch(Progress(stage="takedown", done=done, total=total))
        done = min(done + 1, total)

    return tell


def _place_row(found: "TextMatches") -> dict[str, object]:
    return {
        "kind": found.kind,
        "path": str(found.path),
        "count": found.count,
        "action": found.action,
        "to_do": found.to_do,
    }
