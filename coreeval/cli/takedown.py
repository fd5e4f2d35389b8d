"""`coreeval takedown`: finds and deletes stored data about a person who asks to be forgotten."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.calls import WorkspaceOption
from coreeval.cli.output import AsJson, Document, brief, note, show
from coreeval.errors import UsageError
from coreeval.tools.terminal import one_line


def takedown(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The name of the person who asks to be forgotten.",
            show_default=False,
        ),
    ],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATHS",
            help="Other places to search: sheets, runs, news stores, or folders that contain them.",
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
    from coreeval.api.progress import show_progress
    from coreeval.api.takedowns import search_places
    from coreeval.releases.takedown.calls import UNREADABLE_FILE
    from coreeval.releases.takedown.erasure import LATE
    from coreeval.releases.takedown.project_configs import DOUBTED

    def search(*, dry_run: bool) -> Document:
        names = [name, *(alias or ())]
        found = search_places(
            names, paths or [], listed, workspace, dry_run=dry_run, progress=show_progress
        )
        return found.document

    document = search(dry_run=True) if dry_run or not yes else None
    if document is None or (not dry_run and _confirm(document, as_json)):
        document = search(dry_run=False)
    show(document, as_json, lambda: "\n".join(takedown_lines(document)))
    kinds = {row["kind"] for row in (*document["places"], *document["left"])}
    if document["done"] and kinds & {UNREADABLE_FILE, LATE, DOUBTED}:
        raise typer.Exit(1)


def _confirm(document: Document, as_json: bool) -> bool:
    """Ask whether to delete.

    Raises:
        UsageError: nobody can be asked.
    """
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "this permanently deletes a person's data and needs confirmation, but the session is "
            "not interactive",
            where="coreeval takedown",
            hint="preview with --dry-run, then confirm with --yes",
        )
    note("\n".join(place_lines([*document["places"], *document["left"]])))
    names = ", ".join(document["names"])
    return typer.confirm(f"Permanently delete everything stored about {names}?", err=True)


_DONE = {"blanked": "blanked", "deleted": "deleted", "reopened": "open again"}


def place_lines(rows: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each place."""
    for row in rows:
        said = _DONE.get(row["action"], "left")
        path = one_line(str(brief(Path(row["path"]))))
        yield f"  {row['count']:>7,}  {row['kind']:<38}{said:<12}{path}"


def takedown_lines(document: Document) -> Iterator[str]:
    """Yield the result in words."""
    places, left, done = document["places"], document["left"], document["done"]
    names = ", ".join(document["names"])
    if not places:
        yield f"nothing stored here names {names}" + (
            ", except in the places below" if left else ""
        )
    else:
        yield f"{'removed' if done else 'would be removed'}: {names}"
        yield from place_lines(places)
    if left:
        yield "unchanged places that still name the person:"
        yield from place_lines(left)
        yield from (f"  to do: {to_do}" for to_do in dict.fromkeys(row["to_do"] for row in left))
    if document["resume"]:
        yield "runs whose results have changed; open samples will be redone:"
        yield from (f"  {each}" for each in document["resume"])
    listed = "on the list" if document["listed"] else "not on the list yet"
    yield f"{listed}: {brief(Path(document['list']))}"
    if not done:
        yield "nothing was changed"
