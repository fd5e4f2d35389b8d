"""`coreeval calls stats|export|gc`: the stored answers of a workspace."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.completion import complete_providers, complete_runs, unless_completing
from coreeval.cli.options import MOST_DAYS_BACK, find_optional_run
from coreeval.cli.output import AsJson, Document, brief, note, one_line, show
from coreeval.errors import UsageError
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
    pass


DAYS = 30
"""The age in days from which a call that no run refers to is deleted."""
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
    """Show the numbers of calls, failures and tokens, and the cost."""
    from coreeval.api.calls import count_calls

    document = count_calls(workspace).document
    show(document, as_json, lambda: "\n".join(stats_lines(document)))


@calls.command("export")
def export(
    model: Annotated[
        str,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="The model whose answers are exported.",
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
            help="Export only the calls that this run used.",
            callback=unless_completing(find_optional_run),
            autocompletion=complete_runs,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Write a model's answers to a file that replay:FILE can read."""
    from coreeval.api.calls import export_calls

    document = export_calls(model, out=out, run=run, workspace=workspace).document
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
            help="Delete only calls that are at least this many days old.",
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
    from coreeval.api.calls import collect_garbage

    def agrees(waste: Document) -> bool:
        return yes or _confirm(waste_lines(waste), as_json)

    asked = None if dry_run else agrees
    document = collect_garbage(workspace, older_than, keep_runs, open_batches, asked).document
    show(document, as_json, lambda: "\n".join(gc_lines(document)))


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
UNKNOWN_PAYER = "(not recorded)"


# -- stats ----------------------------------------------------------------------------------------


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
        yield f"paid by {len(payers) - SHOWN} more payers; --json lists them all"


def _payer_line(one: Document) -> str:
    usd = format_price(one["usd"], 4)
    told = (
        f"{one_line(one['payer']) or UNKNOWN_PAYER}: {format_quantity(one['calls'], 'call')}, {usd}"
    )
    if one["unpriced"] and one["usd"] is not None:
        told += f" and {format_quantity(one['unpriced'], 'call')} at an unknown price"
    open_ = one["reserved_usd"]
    return f"{told}, {open_:.4f} USD for requests with an unknown outcome" if open_ else told


# -- export ---------------------------------------------------------------------------------------


def export_lines(document: Document) -> Iterator[str]:
    """Yield what was exported, and what is missing."""
    from coreeval.tools.stores.call_store import describe_damage

    answers = format_quantity(document["answers"], "answer")
    yield f"{answers} of {document['model']} in {document['file']}"
    if document["missing"]:
        are = plural(document["missing"], "is", "are")
        missing = format_quantity(document["missing"], "call")
        yield f"{missing} of the run {are} no longer in the call store"
    if document["damaged"]:
        yield describe_damage(document["damaged"])
    yield f'use the file in place of the model: "replay:{document["file"]}"'


# -- gc -------------------------------------------------------------------------------------------


def gc_lines(document: Document) -> Iterator[str]:
    """Yield what was deleted or would be deleted."""
    if not any(document[name] for name in _WASTE):
        yield "nothing to delete"
    else:
        yield "deleted:" if document["deleted"] else "not deleted:"
        yield from waste_lines(document)
        yield _size_line(document)
    if kept := document["open_batches_kept"]:
        batches = format_quantity(kept, "open batch", "open batches")
        yield (
            f"kept: {batches} from runs outside the workspace, because the providers may still "
            "answer and bill them; to delete these too, use --open-batches"
        )


def _size_line(document: Document) -> str:
    before, after = format_size(document["bytes_before"]), format_size(document["bytes_after"])
    return f"{before} before, {after} after" if document["deleted"] else f"{before} on disk"


_WASTE = {
    "calls": "calls that no run uses",
    "damaged": "damaged rows",
    "texts": "shared texts that no call uses",
    "reservations": "reservations of deleted runs",
    "batches": "batches of deleted runs",
}
"""Descriptions of what can be deleted, by key of the document."""


def waste_lines(document: Document) -> Iterator[str]:
    """Yield the data that is no longer needed."""
    payers = sorted(document["payers"].items(), key=lambda pair: (-pair[1], pair[0]))
    for name, meaning in _WASTE.items():
        if document[name] or name != "batches":
            yield f"  {document[name]:>9,} {meaning}"
        if name == "calls":
            for payer, number in payers[:SHOWN]:
                yield f"  {number:>9,}   of them paid by {one_line(payer) or UNKNOWN_PAYER}"
