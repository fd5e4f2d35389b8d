"""The stored answers of a workspace: counting, exporting and deleting them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from coreeval.api.arguments import MOST_DAYS_BACK, require_integer
from coreeval.api.places import RunLike, find_run, find_workspace
from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.errors import UsageError
from coreeval.runs.copying import refuse_unfinished_takedown
from coreeval.runs.manifest import read_manifest
from coreeval.runs.open import (
    CallReferences,
    collect_references,
    is_run_name,
    list_runs,
    lock_runs,
    open_run_reader,
)
from coreeval.tools.clock import utc_now
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores import call_admin
from coreeval.tools.stores.call_admin import CallTally, Garbage, RetentionRule, size_on_disk
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.places import has_store
from coreeval.tools.workspace import RunFiles, Workspace

DAYS: Final = 30
"""The age in days from which a call that no run refers to is deleted."""
_COUNT_COLUMNS: Final = parse_columns(
    "model role calls:integer valid:integer prompt_tokens:integer cached_tokens:integer "
    "completion_tokens:integer usd:number unpriced:integer"
)


def count_calls(workspace: Path | str | None = None) -> CommandResult:
    """Count the calls, failures and tokens of a workspace, and their cost.

    Args:
        workspace: The workspace, or the folder that has a `.coreeval`; by default the current one.

    Returns:
        A result whose table has a row for each model and role.

    Raises:
        UsageError: there is no call store.
    """
    path = _find_store(find_workspace(workspace))
    with _open_store(path) as store:
        counted = call_admin.count_calls(store.records())
        reserved, damaged = store.ledger.open_usd_by_payer(), store.corrupt_rows
    idle = {one: CallTally() for one in reserved if one not in counted.by_payer}
    models = [
        {"model": model, "role": role, **_tally_document(tally)}
        for (model, role), tally in sorted(counted.by_player.items())
    ]
    document = {
        "store": str(path),
        "bytes": size_on_disk(path),
        "damaged": damaged,
        **_tally_document(counted.total),
        "models": models,
        "payers": [
            {
                "payer": payer,
                "calls": tally.calls,
                "usd": tally.total_usd,
                "unpriced": tally.unpriced,
                "reserved_usd": reserved.get(payer, 0.0),
            }
            for payer, tally in sorted({**counted.by_payer, **idle}.items())
        ],
    }
    said = f"{path}: {format_quantity(counted.total.calls, 'call')}"
    return CommandResult(document, said, Table.from_dicts("calls", _COUNT_COLUMNS, models))


def _tally_document(tally: CallTally) -> dict[str, object]:
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


def export_calls(
    model: str,
    *,
    out: Path | str,
    run: RunLike | None = None,
    workspace: Path | str | None = None,
) -> CommandResult:
    """Write a model's answers to a file that the model `replay:FILE` can read.

    Args:
        model: The model that gave the answers, as `provider:name`.
        out: The file to write.
        run: Export only the calls that this run used.
        workspace: The workspace; by default that of the run, or of the current folder.

    Raises:
        UsageError: there is no call store, or it has no answers from the model.
        RunStateError: there is no such run, or a takedown has not finished.
    """
    from coreeval.models.replay import write_answers

    keys, here = None, find_workspace(workspace)
    if run is not None:
        folder = find_run(run)
        with open_run_reader(folder) as (_, _, reader):
            keys = reader.history.call_keys()
        if workspace is None:
            here = Workspace(Path(read_manifest(RunFiles(folder).manifest).workspace))
    with _open_store(_find_store(here)) as store:
        for files in [RunFiles(folder)] if run is not None else list_runs(here):
            refuse_unfinished_takedown(files)
        records = store.records() if keys is None else store.records_of(keys)
        counts = {
            "answers": write_answers(records, Path(out), model=model),
            "missing": store.count_missing(keys or ()),
            "damaged": store.corrupt_rows,
        }
    said = f"{format_quantity(counts['answers'], 'answer')} of {model} in {out}"
    table = Table("calls", parse_columns("what calls:integer"), counts.items())
    return CommandResult({"model": model, "file": str(out), **counts}, said, table)


def delete_calls(
    *,
    older_than: int = DAYS,
    keep_runs: bool = False,
    open_batches: bool = False,
    dry_run: bool = True,
    workspace: Path | str | None = None,
) -> CommandResult:
    """Delete the calls that no run in a workspace uses; without `dry_run=False`, only count them.

    Args:
        older_than: Delete only calls that are at least this old, in days (0 to 36500).
        keep_runs: Keep calls that any run paid for, even a run outside the workspace.
        open_batches: Also delete open batches; their answers are lost.
        dry_run: Whether to count the calls without deleting them.
        workspace: The workspace, or the folder that has a `.coreeval`; by default the current one.

    Returns:
        A result whose table has the number of these calls for each payer.

    Raises:
        UsageError: there is no call store, or `older_than` is not a number of days.
        RunLocked: another process is using a run of the workspace.
    """
    days = require_integer("older_than", older_than, 0, MOST_DAYS_BACK)
    ages = (days, keep_runs, open_batches)
    return collect_garbage(workspace, *ages, None if dry_run else lambda _: True)


def collect_garbage(
    workspace: Path | str | None,
    older_than: int,
    keep_runs: bool,
    open_batches: bool,
    agrees: Callable[[Mapping[str, object]], bool] | None,
) -> CommandResult:
    """Do the same as `delete_calls`, after confirmation.

    Args:
        workspace: As for `delete_calls`, like the other arguments.
        older_than: The age in days.
        keep_runs: Whether to keep calls that any run paid for.
        open_batches: Whether to delete open batches too.
        agrees: Returns whether to delete the calls in a document; None to delete nothing.
    """
    here = find_workspace(workspace)
    path, runs = _find_store(here), list_runs(here)
    before = size_on_disk(path)
    with ExitStack() as stack:
        if agrees:
            stack.enter_context(lock_runs(runs))
        opened = call_admin.open_exclusively if agrees else call_admin.open_store
        connection = stack.enter_context(opened(path))
        ages = timedelta(days=older_than), call_admin.LONGEST_BATCH * (not open_batches)
        keep = _keep(here, collect_references(runs), *ages, every_run=keep_runs)
        waste = call_admin.find_garbage(connection, keep)
        document = _garbage_document(path, waste, before)
        if waste and agrees and agrees(document):
            call_admin.delete_garbage(connection, waste)
            document["deleted"] = True
    document["bytes_after"] = size_on_disk(path)
    said = f"{'deleted' if document['deleted'] else 'not deleted'}: "
    table = Table("calls", parse_columns("payer calls:integer"), waste.by_payer.items())
    return CommandResult(document, said + format_quantity(len(waste.calls), "call"), table)


def _garbage_document(path: Path, waste: Garbage, size: int) -> dict[str, object]:
    return {
        "store": str(path),
        "deleted": False,
        "calls": len(waste.calls),
        "damaged": len(waste.damaged),
        "texts": len(waste.texts),
        "reservations": len(waste.sent.reservations),
        "batches": len(waste.sent.batches),
        "open_batches_kept": waste.sent.kept_open,
        "payers": dict(waste.by_payer),
        "bytes_before": size,
        "bytes_after": size,
    }


def _find_store(workspace: Workspace) -> Path:
    if not has_store(workspace.calls):
        raise UsageError(
            "no call store found",
            where=str(workspace.calls),
            hint="name the workspace with --workspace DIR (usually .coreeval next to the config)",
        )
    return workspace.calls


@contextmanager
def _open_store(path: Path) -> Iterator[CallStore]:
    store = open_calls(path)
    try:
        yield store
    finally:
        store.close()


def _keep(
    here: Workspace,
    references: CallReferences,
    age: timedelta,
    open_age: timedelta,
    *,
    every_run: bool,
) -> RetentionRule:
    def stays(payer: str) -> bool:
        paying = payer in references.payers or payer in here.asking_payers
        return paying or (every_run and is_run_name(payer))

    since, open_since = (
        (utc_now() - each).isoformat(timespec="milliseconds") for each in (age, max(age, open_age))
    )
    return RetentionRule(keys=references.keys, payer=stays, since=since, open_since=open_since)
