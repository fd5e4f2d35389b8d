"""`coreeval runs`: lists, tags and deletes the runs of a workspace."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.calls import WorkspaceOption
from coreeval.cli.completion import complete_run_names
from coreeval.cli.options import RunArgument
from coreeval.cli.output import AsJson, Document, brief, command, one_line, show
from coreeval.errors import RunCorrupt, RunStateError, UsageError
from coreeval.meanings import RUN_STATES
from coreeval.tools.formatting import format_expected_usd, format_number, format_quantity
from coreeval.tools.tables import Foreign, Row, Table, numbers, text_lines, texts

runs = typer.Typer(name="runs", help="List, tag and delete runs.")
_MOST_KEPT = 20
"""The most remaining paths listed after a deletion; `--json` has them all."""


@runs.callback(invoke_without_command=True)
def list_runs(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Show only runs of this benchmark.",
            autocompletion=complete_run_names,
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="STATE",
            help=f"Show only runs in this state: {', '.join(RUN_STATES)}.",
            autocompletion=lambda: list(RUN_STATES),
        ),
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="TAG", help="Show only runs with this tag.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    if context.invoked_subcommand is not None:
        return
    from coreeval.runs.listing import list_described_runs

    document = list_described_runs(workspace, name=name, status=status, tag=tag)
    show(document, as_json, lambda: "\n".join(_run_lines(document)))


@runs.command("tag")
def tag_run(
    run: RunArgument,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags to add.")],
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tags instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add tags to a run, for filtering the list."""
    from coreeval.api.runs import tag_run as change

    found = change(run, add=() if remove else tags, remove=tags if remove else ())
    document: Document = {"run": str(run), "tags": list(found)}
    show(document, as_json, lambda: f"{brief(run)}: {', '.join(found) or 'no tags'}")


@runs.command("delete")
def delete_run(
    run: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a run's files. Model answers stay in the workspace: see `coreeval calls gc`."""
    from coreeval.api.runs import delete_run_after
    from coreeval.runs.names import short_id

    deleted = short_id(run.resolve())
    kept = delete_run_after(run, lambda: None if yes else _confirm(run, as_json))
    document: Document = {
        "deleted": str(run),
        "id": deleted,
        "kept": [str(path) for path in kept],
    }
    show(document, as_json, lambda: "\n".join(_deletion_lines(run, kept)))


def _deletion_lines(run: Path, kept: Sequence[Path]) -> Iterator[str]:
    yield f"deleted: {brief(run)}" if not kept else f"deleted: the run's files in {brief(run)}"
    if kept:
        yield "kept, because they are not part of the run:"
        yield from (f"  {one_line(str(brief(path)))}" for path in kept[:_MOST_KEPT])
    if len(kept) > _MOST_KEPT:
        yield f"  and {len(kept) - _MOST_KEPT:,} more"


def _confirm(run: Path, as_json: bool) -> None:
    """Ask whether to delete a run; raise an error if the answer is no, or nobody can be asked."""
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "this deletes a run and needs confirmation, but the session is not interactive",
            hint="use --yes",
        )
    typer.confirm(f"Delete {brief(run)} {_describe_loss(run)}?", abort=True, err=True)


def _describe_loss(run: Path) -> str:
    from coreeval.runs.status import read_status

    try:
        counts = read_status(run).counts
    except (RunStateError, RunCorrupt):
        return "(damaged)"
    return f"with {counts['accepted']} of {format_quantity(counts['total'], 'sample')} accepted"


def _run_lines(document: Document) -> Iterator[str]:
    rows = document["runs"]
    if not rows:
        yield f"no matching runs in {one_line(document['workspace'])}"
        return
    columns = (
        texts("id", 8),
        texts("name", 12, most=30),
        texts("started", 16, gap=2),
        texts("status", 12, gap=2),
        numbers("accepted", 8, gap=1),
        numbers("of", 6, gap=1),
        numbers("usd", 9, gap=1),
        texts("tags", gap=2),
    )
    yield from text_lines(Table(columns, [_cells(row) for row in rows]))
    yield f"show one: {command('status', rows[0]['id'])}"


def _cells(row: Document) -> Row:
    started = str(row.get("created_at", ""))[:16].replace("T", " ")
    return (
        row["id"],
        Foreign(row["name"]),
        started,
        row["status"],
        format_number(row.get("accepted"), "d", "?"),
        format_number(row.get("samples"), "d", "?"),
        format_number(row.get("usd"), format_expected_usd, "unknown" if "usd" in row else "?"),
        Foreign(", ".join(row["tags"]) or row.get("problem", "")),
    )
