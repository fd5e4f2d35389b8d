"""`coreeval calls stats|export|gc`: the answers that a workspace keeps."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.completion import complete_providers, complete_runs, unless_completing
from coreeval.cli.options import MOST_DAYS_BACK, find_optional_run
from coreeval.cli.output import AsJson, Document, brief, note, one_line, show
from coreeval.errors import UsageError
from coreeval.tools.clock import utc_now
from coreeval.tools.formatting import (
    format_expected_usd,
    format_number,
    format_price,
    format_quantity,
    format_size,
    plural,
)
from coreeval.tools.tables import Row, Table, numbers, text_lines, texts

if TYPE_CHECKING:
    from coreeval.runs.open import CallReferences
    from coreeval.tools.stores.call_admin import CallStats, CallTally, Garbage, RetentionRule
    from coreeval.tools.stores.call_store import CallStore
    from coreeval.tools.workspace import Workspace


DAYS = 30
"""Age in days from which a call that no run refers to is deleted."""
calls = typer.Typer(name="calls", help="Count, export or delete stored answers.")
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        file_okay=False,
        help="The workspace; by default COREEVAL_HOME, or else .coreeval in this folder.",
    ),
]


@calls.command("stats")
def stats(workspace: WorkspaceOption = None, as_json: AsJson = False) -> None:
    """Show the number of calls, failures, tokens and the cost."""
    from coreeval.tools.stores.call_admin import count_calls

    path = _store_in(_workspace(workspace))
    with _open_store(path) as store:
        counted = count_calls(store.records())
        document = stats_document(
            path, counted, store.ledger.open_usd_by_payer(), store.corrupt_rows
        )
    show(document, as_json, lambda: "\n".join(stats_lines(document)))


@calls.command("export")
def export(
    model: Annotated[
        str,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="Whose answers.",
            show_default=False,
            autocompletion=complete_providers,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", dir_okay=False, help="Output file.", show_default=False),
    ],
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            file_okay=False,
            help="Only the calls that this run used.",
            callback=unless_completing(find_optional_run),
            autocompletion=complete_runs,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Write a model's answers to a file that replay:FILE can read."""
    from coreeval.models.replay import write_answers

    keys = _call_keys(run) if run else None
    with _open_store(_store_in(_workspace(workspace, run))) as store:
        records = store.records() if keys is None else store.records_of(keys)
        answers = write_answers(records, out, model=model)
        missing = store.count_missing(keys or ())
        document = export_document(model, out, answers, missing, store.corrupt_rows)
    show(document, as_json, lambda: "\n".join(export_lines(document)))


@calls.command("gc")
def gc(
    older_than: Annotated[
        int,
        typer.Option(
            "--older-than",
            metavar="DAYS",
            min=0,
            max=MOST_DAYS_BACK,
            help="Delete only calls at least this old.",
        ),
    ] = DAYS,
    keep_runs: Annotated[
        bool,
        typer.Option(
            "--keep-runs",
            help="Keep calls that any run paid for, even a run outside the workspace.",
        ),
    ] = False,
    open_batches: Annotated[
        bool,
        typer.Option("--open-batches", help="Also delete open batches; their answers are lost."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the calls that no run in the workspace uses."""
    from coreeval.runs.open import collect_references, list_runs, lock_runs
    from coreeval.tools.stores import call_admin
    from coreeval.tools.stores.call_admin import size_on_disk

    here = _workspace(workspace)
    path, runs = _store_in(here), list_runs(here)
    before = size_on_disk(path)
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(lock_runs(runs))
        opened = call_admin.open_store if dry_run else call_admin.open_exclusively
        connection = stack.enter_context(opened(path))
        ages = timedelta(days=older_than), call_admin.LONGEST_BATCH * (not open_batches)
        keep = _keep(here, collect_references(runs), *ages, every_run=keep_runs)
        waste = call_admin.find_garbage(connection, keep)
        agreed = bool(waste) and not dry_run and (yes or _confirm(waste_lines(waste), as_json))
        if agreed:
            call_admin.delete_garbage(connection, waste)
    document = gc_document(path, waste, agreed, before=before, after=size_on_disk(path))
    show(document, as_json, lambda: "\n".join(gc_lines(document, waste)))


# -- where ----------------------------------------------------------------------------------------


def _workspace(given: Path | None, run: Path | None = None) -> "Workspace":
    """Return the named workspace, the workspace of a run, or the one of this folder."""
    from coreeval.runs.manifest import read_manifest
    from coreeval.tools.workspace import RunFiles, Workspace, workspace_for

    if given:
        return Workspace(given)
    if run:
        return Workspace(Path(read_manifest(RunFiles(run).manifest).workspace))
    return workspace_for(Path.cwd())


def _store_in(workspace: "Workspace") -> Path:
    from coreeval.tools.stores.places import has_store

    if not has_store(workspace.calls):
        raise UsageError(
            "no call store found",
            where=str(workspace.calls),
            hint="name the workspace with --workspace DIR (usually .coreeval next to the config)",
        )
    return workspace.calls


@contextmanager
def _open_store(path: Path) -> "Iterator[CallStore]":
    from coreeval.tools.stores.call_store import open_calls

    store = open_calls(path)
    try:
        yield store
    finally:
        store.close()


def _call_keys(run: Path) -> list[str]:
    from coreeval.runs.open import open_run_reader

    with open_run_reader(run) as (_, _, store):
        return store.history.call_keys()


# -- what goes ------------------------------------------------------------------------------------


def _keep(
    here: "Workspace",
    references: "CallReferences",
    age: timedelta,
    open_age: timedelta,
    *,
    every_run: bool,
) -> "RetentionRule":
    from coreeval.runs.open import is_run_name
    from coreeval.tools.stores.call_admin import RetentionRule

    def stays(payer: str) -> bool:
        paying = payer in references.payers or payer in here.asking_payers
        return paying or (every_run and is_run_name(payer))

    since, open_since = (
        (utc_now() - each).isoformat(timespec="milliseconds") for each in (age, max(age, open_age))
    )
    return RetentionRule(keys=references.keys, payer=stays, since=since, open_since=open_since)


def _confirm(told: Iterator[str], as_json: bool) -> bool:
    """Ask whether to delete.

    Raises:
        UsageError: nobody can be asked.
    """
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "this deletes paid answers and needs confirmation, but the session is not interactive",
            hint="preview with --dry-run, then confirm with --yes",
        )
    note("\n".join(told))
    return typer.confirm("delete this?", err=True)


WIDEST_MODEL = 32
SHOWN = 10
"""The most payers listed; `--json` has them all."""
UNKNOWN_PAYER = "(nobody said)"


# -- stats ----------------------------------------------------------------------------------------


def stats_document(
    path: Path, stats: "CallStats", reserved: Mapping[str, float], damaged: int
) -> Document:
    """Return the contents of a store."""
    from coreeval.tools.stores.call_admin import CallTally, size_on_disk

    payers = {
        **stats.by_payer,
        **{one: CallTally() for one in reserved if one not in stats.by_payer},
    }
    return {
        "store": str(path),
        "bytes": size_on_disk(path),
        "damaged": damaged,
        **_tally_document(stats.total),
        "models": [
            {"model": model, "role": role, **_tally_document(tally)}
            for (model, role), tally in sorted(stats.by_player.items())
        ],
        "payers": [
            {
                "payer": payer,
                "calls": tally.calls,
                "usd": tally.total_usd,
                "reserved_usd": reserved.get(payer, 0.0),
            }
            for payer, tally in sorted(payers.items())
        ],
    }


def _tally_document(tally: "CallTally") -> Document:
    share = tally.cache_share
    return {
        "calls": tally.calls,
        "valid": tally.valid,
        "invalid": dict(sorted(tally.invalid.items())),
        "prompt_tokens": tally.prompt_tokens,
        "cached_tokens": tally.cached_tokens,
        "cached_share": None if share is None else round(share, 4),
        "completion_tokens": tally.completion_tokens,
        "usd": tally.total_usd,
        "unpriced": tally.unpriced,
    }


def stats_lines(document: Document) -> Iterator[str]:
    """Yield a line for each model and role, then the payers."""
    from coreeval.tools.stores.call_store import describe_damage

    damaged = document["damaged"]
    where = brief(Path(document["store"]).resolve())
    yield f"{where}: {format_quantity(document['calls'], 'call')}, {format_size(document['bytes'])}"
    if document["models"]:
        total = {**document, "model": "all", "role": ""}
        rows = [*document["models"], *([total] if len(document["models"]) > 1 else [])]
        yield from text_lines(Table(_COLUMNS, [*map(_tally_row, rows)]))
    yield from _payer_lines(document["payers"])
    if damaged:
        yield describe_damage(damaged)


_COLUMNS = (
    texts("model", most=WIDEST_MODEL), texts("role", 12, gap=2), numbers("calls", 9),
    numbers("answers", 9), numbers("tokens in", 13), numbers("cached", 8), numbers("out", 11),
    numbers("USD", 12), texts("no answers", gap=2),
)  # fmt: skip


def _tally_row(row: Document) -> Row:
    return (
        row["model"],
        row["role"],
        f"{row['calls']:,}",
        f"{row['valid']:,}",
        f"{row['prompt_tokens']:,}",
        format_number(row["cached_share"], ".0%", ""),
        f"{row['completion_tokens']:,}",
        _format_usd(row),
        ", ".join(f"{kind} {number}" for kind, number in row["invalid"].items()),
    )


def _format_usd(row: Document) -> str:
    """Return a cost; a plus sign means that there are calls without a known price."""
    if row["usd"] is None:
        return "unknown"
    return f"{format_expected_usd(row['usd'])}{'+' if row['unpriced'] else ''}"


def _payer_lines(payers: Sequence[Document]) -> Iterator[str]:
    yield from (f"paid by {_payer_line(one)}" for one in payers[:SHOWN])
    if len(payers) > SHOWN:
        yield f"paid by {len(payers) - SHOWN} more; --json lists them all"


def _payer_line(one: Document) -> str:
    usd = format_price(one["usd"], 4)
    told = (
        f"{one_line(one['payer']) or UNKNOWN_PAYER}: {format_quantity(one['calls'], 'call')}, {usd}"
    )
    open_ = one["reserved_usd"]
    return f"{told}, {open_:.4f} USD for requests with unknown outcome" if open_ else told


# -- export ---------------------------------------------------------------------------------------


def export_document(model: str, out: Path, answers: int, missing: int, damaged: int) -> Document:
    """Return what was exported."""
    return {
        "model": model,
        "file": str(out),
        "answers": answers,
        "missing": missing,
        "damaged": damaged,
    }


def export_lines(document: Document) -> Iterator[str]:
    """Yield what was exported and what is missing."""
    from coreeval.tools.stores.call_store import describe_damage

    answers = format_quantity(document["answers"], "answer")
    yield f"{answers} of {document['model']} in {document['file']}"
    if document["missing"]:
        are = plural(document["missing"], "is", "are")
        missing = format_quantity(document["missing"], "call")
        yield f"{missing} of the run {are} no longer in the call store"
    if document["damaged"]:
        yield describe_damage(document["damaged"])
    yield f'use it in place of the model: "replay:{document["file"]}"'


# -- gc -------------------------------------------------------------------------------------------


def gc_document(
    path: Path, waste: "Garbage", deleted: bool, *, before: int, after: int
) -> Document:
    """Return what was deleted or would be deleted."""
    return {
        "store": str(path),
        "deleted": deleted,
        "calls": len(waste.calls),
        "damaged": len(waste.damaged),
        "texts": len(waste.texts),
        "reservations": len(waste.sent.reservations),
        "batches": len(waste.sent.batches),
        "open_batches_kept": waste.sent.kept_open,
        "payers": waste.by_payer,
        "bytes_before": before,
        "bytes_after": after,
    }


def gc_lines(document: Document, waste: "Garbage") -> Iterator[str]:
    """Yield what was deleted or would be deleted."""
    if not waste:
        yield "nothing to delete"
    else:
        yield "deleted:" if document["deleted"] else "not deleted:"
        yield from waste_lines(waste)
        yield _size_line(document)
    if waste.sent.kept_open:
        yield (
            f"kept: {waste.sent.kept_open:,} open batches of runs that are not in the workspace: "
            "their providers may still answer and bill them; use --open-batches to delete them "
            "too"
        )


def _size_line(document: Document) -> str:
    before, after = format_size(document["bytes_before"]), format_size(document["bytes_after"])
    return f"{before} before, {after} after" if document["deleted"] else f"{before} on disk"


def waste_lines(waste: "Garbage") -> Iterator[str]:
    """Yield what is no longer needed."""
    yield f"  {len(waste.calls):>9,} calls that no run uses"
    listed = sorted(waste.by_payer.items(), key=lambda pair: (-pair[1], pair[0]))
    for payer, number in listed[:SHOWN]:
        yield f"  {number:>9,}   of them paid by {one_line(payer) or UNKNOWN_PAYER}"
    yield f"  {len(waste.damaged):>9,} damaged rows"
    yield f"  {len(waste.texts):>9,} shared texts that no call uses"
    yield f"  {len(waste.sent.reservations):>9,} reservations of deleted runs"
    if waste.sent.batches:
        yield f"  {len(waste.sent.batches):>9,} batches of deleted runs"
