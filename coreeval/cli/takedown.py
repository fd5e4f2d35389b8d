"""`coreeval takedown`: finds and deletes what is kept of somebody who asks to be forgotten."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.calls import WorkspaceOption
from coreeval.cli.output import AsJson, note, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.releases.forgetting.found import Found
    from coreeval.tools.workspace import Workspace


def takedown(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who asks to be forgotten.", show_default=False)
    ],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATHS]...",
            help="Besides the workspace: sheets, runs, news stores or folders of them.",
            show_default=False,
        ),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option("--alias", metavar="NAME", help="Another name of theirs; repeatable."),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option(
            "--list",
            metavar="FILE",
            dir_okay=False,
            help="The list that they are put on; else takedown.txt in the workspace, which all "
            "its runs and releases respect.",
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say where they are named.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete what is kept of somebody who asks to be forgotten."""
    from coreeval.agents.name_finder import NameFinder
    from coreeval.cli.takedown_words import takedown_document, takedown_lines
    from coreeval.releases.forgetting.found import UNREAD
    from coreeval.releases.forgetting.listed import checked_names
    from coreeval.releases.forgetting.places import places_in
    from coreeval.releases.forgetting.working import Forgetting

    names, given = checked_names([name, *(alias or ())]), paths or []
    here = _workspace(workspace)
    _require(here, given)
    place = listed or here.takedown
    places = places_in(here, given, place)

    def forgetting(tell: Callable[[str], None]) -> Forgetting:
        return Forgetting(places, NameFinder(names), place, tell)

    found: list[Found] | None = None
    if dry_run or not yes:
        with _watching(places.number) as tell:
            found = forgetting(tell).look()
    done = not dry_run and (yes or _agreed(found or [], names, as_json))
    if done:
        with _watching(places.number) as tell:
            found = forgetting(tell).take_out()
    document = takedown_document(names, place, here, found or [], dry_run=dry_run, done=done)
    show(document, as_json, lambda: "\n".join(takedown_lines(document)))
    if done and any(each.kind == UNREAD for each in found or []):
        raise typer.Exit(1)


def _workspace(given: Path | None) -> "Workspace":
    from coreeval.tools.workspace import Workspace, workspace_for

    return Workspace(given) if given else workspace_for(Path.cwd())


def _require(workspace: "Workspace", given: Sequence[Path]) -> None:
    if not workspace.root.is_dir() and not given:
        raise UsageError(
            "there is no workspace here",
            where=str(workspace.root),
            hint="name it with --workspace DIR: the folder .coreeval beside the config",
        )


@contextmanager
def _watching(total: int) -> Iterator[Callable[[str], None]]:
    """Give a callback that shows which place is looked at."""
    from coreeval.cli.progress import watching
    from coreeval.graph.progress import Progress

    done = 0
    with watching() as watch:

        def tell(place: str) -> None:
            nonlocal done
            watch(Progress(stage="takedown", done=done, total=total))
            done = min(done + 1, total)

        yield tell


def _agreed(found: "Sequence[Found]", names: Sequence[str], as_json: bool) -> bool:
    """Ask whether to delete.

    Raises:
        UsageError: nobody is there to be asked.
    """
    from coreeval.cli.takedown_words import place_lines, place_rows

    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "this deletes what is kept of somebody for good, and nobody is there to agree",
            where="coreeval takedown",
            hint="look with --dry-run, then give --yes",
        )
    note("\n".join(place_lines(place_rows(found))))
    return typer.confirm(f"Delete this of {', '.join(names)} for good?", err=True)
