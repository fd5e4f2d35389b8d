"""`coreeval calls stats|export|gc`: the answers that a workspace keeps."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, note, show
from coreeval.errors import UsageError
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from coreeval.releases.references import References
    from coreeval.tools.stores.call_admin import RetentionRule
    from coreeval.tools.stores.call_store import CallStore
    from coreeval.tools.workspace import Workspace

DAYS = 30
"""Age in days from which a call that no run refers to goes."""
calls = typer.Typer(name="calls", help="Count, export or clear away the answers that are kept.")
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        file_okay=False,
        help="The workspace; else COREEVAL_HOME, else .coreeval in this folder.",
    ),
]


@calls.command("stats")
def stats(workspace: WorkspaceOption = None, as_json: AsJson = False) -> None:
    """Count the calls, the bad ones, tokens and money."""
    from coreeval.cli.call_words import stats_document, stats_lines
    from coreeval.tools.stores.call_admin import count_calls

    path = _store_in(_workspace(workspace))
    with _opened(path) as store:
        counted = count_calls(store.records())
        document = stats_document(
            path, counted, store.ledger.open_usd_by_payer(), store.corrupt_rows
        )
    show(document, as_json, lambda: "\n".join(stats_lines(document)))


@calls.command("export")
def export(
    model: Annotated[
        str, typer.Option(metavar="PROVIDER:NAME", help="Whose answers.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", dir_okay=False, help="What to write.", show_default=False),
    ],
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", file_okay=False, help="Only the calls that this run used."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Write a model's answers into a file for replay:."""
    from coreeval.cli.call_words import export_document, export_lines
    from coreeval.models.replay import write_answers

    keys = _keys_of(run) if run else None
    with _opened(_store_in(_workspace(workspace, run))) as store:
        records = store.records() if keys is None else store.records_of(keys)
        answers = write_answers(records, out, model=model)
        missing = store.count_missing(keys or ())
        document = export_document(model, out, answers, missing, store.corrupt_rows)
    show(document, as_json, lambda: "\n".join(export_lines(document)))


@calls.command("gc")
def gc(
    older_than: Annotated[
        int, typer.Option("--older-than", metavar="DAYS", min=0, help="Least age of what goes.")
    ] = DAYS,
    keep_runs: Annotated[
        bool,
        typer.Option("--keep-runs", help="Keep what any run paid for, also one that is elsewhere."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the calls that no run in the workspace refers to."""
    from coreeval.cli.call_words import gc_document, gc_lines, waste_lines
    from coreeval.releases.references import at_rest, references, runs_in
    from coreeval.tools.stores import call_admin
    from coreeval.tools.stores.call_admin import size_on_disk

    here = _workspace(workspace)
    path, runs = _store_in(here), runs_in(here)
    before = size_on_disk(path)
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(at_rest(runs))
        opened = call_admin.open_store if dry_run else call_admin.open_exclusively
        connection = stack.enter_context(opened(path))
        keep = _keep(here, references(runs), older_than, every_run=keep_runs)
        waste = call_admin.find_garbage(connection, keep)
        agreed = bool(waste) and not dry_run and (yes or _agreed(waste_lines(waste), as_json))
        if agreed:
            call_admin.delete_garbage(connection, waste)
    document = gc_document(path, waste, agreed, before=before, after=size_on_disk(path))
    show(document, as_json, lambda: "\n".join(gc_lines(document, waste)))


# -- where ----------------------------------------------------------------------------------------


def _workspace(given: Path | None, run: Path | None = None) -> "Workspace":
    """Return the workspace that is named, that of a run, or the one of this folder."""
    from coreeval.releases.manifest import read_manifest
    from coreeval.tools.workspace import RunFiles, Workspace, workspace_for

    if given:
        return Workspace(given)
    if run:
        return Workspace(Path(read_manifest(RunFiles(run).manifest).workspace))
    return workspace_for(Path.cwd())


def _store_in(workspace: "Workspace") -> Path:
    if not workspace.calls.is_file():
        raise UsageError(
            "there is no call store here",
            where=str(workspace.calls),
            hint="name the workspace with --workspace DIR: the folder .coreeval beside the config",
        )
    return workspace.calls


@contextmanager
def _opened(path: Path) -> "Iterator[CallStore]":
    from coreeval.tools.stores.call_store import open_calls

    store = open_calls(path)
    try:
        yield store
    finally:
        store.close()


def _keys_of(run: Path) -> list[str]:
    from coreeval.releases.opening import opened_run

    with opened_run(run) as (_, _, store):
        return store.call_keys()


# -- what goes ------------------------------------------------------------------------------------


def _keep(
    here: "Workspace", references: "References", days: int, *, every_run: bool
) -> "RetentionRule":
    from coreeval.releases.references import is_run
    from coreeval.tools.stores.call_admin import RetentionRule

    def stays(payer: str) -> bool:
        paying = payer in references.payers or payer in here.asking_payers
        return paying or (every_run and is_run(payer))

    since = utc_now() - timedelta(days=days)
    return RetentionRule(
        keys=references.keys, payer=stays, since=since.isoformat(timespec="milliseconds")
    )


def _agreed(told: Iterator[str], as_json: bool) -> bool:
    """Ask whether to delete.

    Raises:
        UsageError: nobody is there to be asked.
    """
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "this deletes answers that were paid for, and nobody is there to agree",
            hint="look with --dry-run, then give --yes",
        )
    note("\n".join(told))
    return typer.confirm("delete this?", err=True)
