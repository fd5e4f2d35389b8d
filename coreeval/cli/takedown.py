"""`coreeval takedown`: finds and deletes what is kept of somebody who asks to be forgotten."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.calls import WorkspaceOption
from coreeval.cli.output import AsJson, Document, brief, note, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.releases.takedown.calls import TextMatches
    from coreeval.tools.workspace import Workspace


def takedown(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The person who asks to be forgotten.", show_default=False
        ),
    ],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATHS]...",
            help="Other places to search: sheets, runs, news stores or folders of them.",
            show_default=False,
        ),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option("--alias", metavar="NAME", help="Another name of the person; repeatable."),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option(
            "--list",
            metavar="FILE",
            dir_okay=False,
            help="The takedown list to add the person to; by default takedown.txt in the "
            "workspace, which applies to all its runs and releases.",
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show where the person is named; change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete stored data about a person who asks to be forgotten."""
    from coreeval.agents.name_finder import NameFinder
    from coreeval.releases.takedown.calls import UNREADABLE_FILE
    from coreeval.releases.takedown.erasure import LATE, Erasure, find_places
    from coreeval.releases.takedown.names import check_names

    names, given = check_names([name, *(alias or ())]), paths or []
    here = _workspace(workspace)
    _require_paths(here, given)
    place = listed or here.takedown
    number = find_places(here, given, place).number

    def forgetting(tell: Callable[[str], None]) -> Erasure:
        return Erasure(here, given, NameFinder(names), place, tell)

    found: list[TextMatches] | None = None
    if dry_run or not yes:
        with _show_progress(number) as tell:
            found = forgetting(tell).count_all()
    done = not dry_run and (yes or _confirm(found or [], names, as_json))
    if done:
        with _show_progress(number) as tell:
            found = forgetting(tell).erase_all()
    document = takedown_document(names, place, here, found or [], dry_run=dry_run, done=done)
    show(document, as_json, lambda: "\n".join(takedown_lines(document)))
    if done and any(each.kind in (UNREADABLE_FILE, LATE) for each in found or []):
        raise typer.Exit(1)


def _workspace(given: Path | None) -> "Workspace":
    from coreeval.tools.workspace import Workspace, workspace_for

    return Workspace(given) if given else workspace_for(Path.cwd())


def _require_paths(workspace: "Workspace", given: Sequence[Path]) -> None:
    if not workspace.root.is_dir() and not given:
        raise UsageError(
            "no workspace found",
            where=str(workspace.root),
            hint="give --workspace DIR (usually .coreeval next to the config)",
        )


@contextmanager
def _show_progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a callback that shows the place being searched."""
    from coreeval.api.progress import show_progress
    from coreeval.graph.monitor import Progress

    done = 0
    with show_progress() as watch:

        def tell(place: str) -> None:
            nonlocal done
            watch(Progress(stage="takedown", done=done, total=total))
            done = min(done + 1, total)

        yield tell


def _confirm(found: "Sequence[TextMatches]", names: Sequence[str], as_json: bool) -> bool:
    """Ask whether to delete.

    Raises:
        UsageError: nobody can be asked.
    """
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "this permanently deletes somebody's data and needs confirmation, but the session is "
            "not interactive",
            where="coreeval takedown",
            hint="preview with --dry-run, then confirm with --yes",
        )
    note("\n".join(place_lines(place_rows(found))))
    return typer.confirm(f"Delete what is kept of {', '.join(names)} permanently?", err=True)


_DONE = {"blanked": "blanked", "deleted": "deleted", "reopened": "open again"}


def takedown_document(
    names: Sequence[str],
    listed: Path,
    workspace: "Workspace",
    found: "Sequence[TextMatches]",
    *,
    dry_run: bool,
    done: bool,
) -> Document:
    """Return the result as a document."""
    from coreeval.releases.takedown.names import find_missing_names

    rows = place_rows(found)
    return {
        "names": list(names),
        "list": str(listed),
        "listed": not find_missing_names(listed, names),
        "workspace": str(workspace.root),
        "dry_run": dry_run,
        "done": done,
        "places": [row for row in rows if row["action"] != "reported"],
        "left": [row for row in rows if row["action"] == "reported"],
        "resume": [each.to_do for each in found if each.kind == "results of the run"],
    }


def place_rows(found: "Sequence[TextMatches]") -> list[Document]:
    """Return the findings as rows of a document."""
    return [
        {
            "kind": each.kind,
            "path": str(each.path),
            "count": each.count,
            "action": each.action,
            "to_do": each.to_do,
        }
        for each in found
    ]


def place_lines(rows: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each place."""
    for row in rows:
        said = _DONE.get(row["action"], "left")
        yield f"  {row['count']:>7,}  {row['kind']:<26}{said:<12}{brief(Path(row['path']))}"


def takedown_lines(document: Document) -> Iterator[str]:
    """Yield the result in words."""
    places, left, done = document["places"], document["left"], document["done"]
    names = ", ".join(document["names"])
    if not places:
        yield f"nothing stored here names {names}" + (", except what is left" if left else "")
    else:
        yield f"{'taken out' if done else 'would be taken out'}: {names}"
        yield from place_lines(places)
    if left:
        yield "left unchanged, and names them:"
        yield from place_lines(left)
        yield from (f"  to do: {to_do}" for to_do in dict.fromkeys(row["to_do"] for row in left))
    if document["resume"]:
        yield "runs whose results have changed; open samples will be redone:"
        yield from (f"  {each}" for each in document["resume"])
    listed = "on the list" if document["listed"] else "not on the list yet"
    yield f"{listed}: {brief(Path(document['list']))}"
    if not done:
        yield "nothing was changed"
