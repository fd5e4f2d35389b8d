"""The runs of a workspace as a list, newest first."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coreeval.errors import CoreEvalError, RunStateError, UsageError
from coreeval.meanings import RUN_STATES
from coreeval.runs.names import list_run_folders, read_tags, short_id
from coreeval.runs.status import read_status
from coreeval.tools.workspace import RunFiles, Workspace, workspace_for


def list_described_runs(
    workspace: Path | None = None,
    *,
    name: str | None = None,
    status: str | None = None,
    tag: str | None = None,
) -> dict[str, Any]:
    """Return what `coreeval runs --json` prints: `workspace` and `runs`, a list of descriptions.

    Args:
        workspace: The workspace; by default that of the current folder.
        name: List only runs of this benchmark.
        status: List only runs in this state.
        tag: List only runs with this tag.

    Raises:
        RunStateError: there is no workspace.
        UsageError: there is no such state.
    """
    if status is not None and status not in RUN_STATES:
        raise UsageError(f"there is no state {status!r}", hint=f"one of {', '.join(RUN_STATES)}")
    here = Workspace(workspace) if workspace else workspace_for(Path.cwd())
    if not here.root.is_dir():
        raise RunStateError(
            "no runs found",
            where=str(here.root),
            hint="change to the folder of your config, or use --workspace DIR",
        )
    wanted = {"name": name, "status": status}
    rows = [
        row
        for row in _describe_runs(here)
        if all(value is None or row[key] == value for key, value in wanted.items())
        and (tag is None or tag in row["tags"])
    ]
    return {"workspace": str(here.root), "runs": rows}


def _describe_runs(here: Workspace) -> Iterator[dict[str, Any]]:
    for folder in list_run_folders(here):
        known = {"id": short_id(folder), "name": folder.parent.name, "run": str(folder)}
        yield known | _describe(folder)


def _describe(folder: Path) -> dict[str, Any]:
    try:
        tags, now = read_tags(RunFiles(folder)), read_status(folder)
    except CoreEvalError as error:
        return {"status": "damaged", "problem": error.message, "tags": []}
    return {
        "status": now.status,
        "task": now.task,
        "created_at": now.created_at,
        "ended_at": now.ended_at,
        "samples": now.counts["total"],
        "ended": now.ended,
        "accepted": now.counts["accepted"],
        "usd": None if now.spend.unpriced else now.spend.billed_usd,
        "tags": tags,
    }
