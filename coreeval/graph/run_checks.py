"""Checks before a command on a run starts: none of them writes anything."""

from collections.abc import Sequence
from pathlib import Path

from coreeval.errors import RunStateError
from coreeval.graph.setup import Setup
from coreeval.runs.folder import refuse_used_folder
from coreeval.runs.manifest import Manifest, read_manifest, read_original_manifest
from coreeval.runs.names import list_run_folders
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.stores.places import has_store
from coreeval.tools.workspace import (
    HOME_VARIABLE,
    RunFiles,
    Workspace,
    command,
    has_paid_answers,
)

_CALLED = "SELECT 1 FROM calls LIMIT 1"
_PAID = "SELECT 1 FROM calls WHERE NOT cached AND coalesce(usd, 1.0) > 0 LIMIT 1"
_OPEN = "SELECT 1 FROM samples WHERE id NOT IN (SELECT sample_id FROM results) LIMIT 1"
FAILED_SAMPLES = "SELECT 1 FROM results WHERE outcome = 'failed' LIMIT 1"


def explain_repeated(files: RunFiles) -> RunStateError:
    """Return the error for a command that cannot continue a replayed cassette."""
    return RunStateError(
        "this run replays a cassette: it has no models or news to continue with",
        where=str(files.root),
        hint="replay it from the beginning: coreeval cassette replay FILE --out DIR",
    )


def require_answers(files: RunFiles, manifest: Manifest, *, open_if: str = _OPEN) -> None:
    """Raise an error if a run was moved away from the answers that it has paid for.

    If all its samples have ended, an existing workspace without these answers will do: they are not
    needed again, and the budget counts the costs in run.db. But run.db does not have open batches,
    or what was in flight when the process was killed.

    Args:
        files: The run's files.
        manifest: Its manifest.
        open_if: The query that finds samples that the command continues or repeats.

    Raises:
        RunStateError: the workspace does not exist or does not have these answers.
        RunCorrupt: a store is damaged.
    """
    place = Path(manifest.workspace)
    exists = place.exists()
    if exists and has_paid_answers(place, manifest.payer):
        return
    needed = (_PAID, open_if) if exists else (_CALLED,)
    if _may_miss_calls(files, manifest) or any(
        _has_rows(each.store, needed) for each in (files, files.control)
    ):
        raise RunStateError(
            "the workspace of this run does not have the answers or batches that the run has paid "
            "for",
            where=manifest.workspace,
            hint=f"restore its calls.db, or set the folder that has it: {HOME_VARIABLE}=DIR; if "
            "the answers are lost, start a new run",
        )


def _may_miss_calls(files: RunFiles, manifest: Manifest) -> bool:
    """Return whether only the call store of another workspace may have some calls of a run.

    They are open batches, and what a process that was killed has not recorded. If the run was not
    moved, a store that does not know the run means that it has sent nothing.
    """
    if manifest.status in ("waiting", "complete"):
        return manifest.status == "waiting"
    may_miss = manifest.asks_models if manifest.status == "running" else manifest.batching
    place, last = (
        Path(each.workspace) for each in (manifest, read_original_manifest(files.manifest))
    )
    return may_miss and not (place.exists() and place.resolve() == last.resolve())


def _has_rows(path: Path, queries: Sequence[str]) -> bool:
    """Return whether a run's store exists and each of the queries finds a row in it."""
    if not has_store(path):
        return False
    with open_readonly(path, what="run.db") as store:
        return all(store.execute(query).fetchone() for query in queries)


def refuse_taken_folder(files: RunFiles, workspace: Workspace) -> None:
    """Raise an error if the directory already has a run, or files that are not a run's."""
    if not files.manifest.exists():
        refuse_used_folder(files.root, workspace)
        return
    status = read_manifest(files.manifest).status
    done = status == "complete"
    raise RunStateError(
        f"this folder already has a run ({status})",
        where=str(files.root),
        hint="choose another --run-dir" if done else command("resume", files.root),
    )


def refuse_second_run(workspace: Workspace, name: str) -> None:
    """Raise an error if the newest run of a name is unfinished."""
    newest = next(iter(list_run_folders(workspace, name)), None)
    if newest and read_manifest(newest / "manifest.json").status != "complete":
        raise RunStateError(
            f"the last run of {name!r} is unfinished",
            where=str(newest),
            hint=f"{command('resume', newest)}   (or start another with --run-dir DIR)",
        )


def refuse_changed_settings(
    recorded: Manifest, manifest: Manifest, setup: Setup, files: RunFiles
) -> None:
    """Refuse to overwrite what another command has recorded since `open_run`.

    Raises:
        RunStateError: it has recorded a budget, targets or plugins.
    """
    before = setup.began or recorded
    for name in ("source", "evaluation", "plugins"):
        if getattr(recorded, name) not in (getattr(before, name), getattr(manifest, name)):
            raise RunStateError(
                "another command has changed the run's budget, targets or plugins since this one "
                "began",
                where=str(files.root),
                hint="repeat this command, which then keeps the change",
            )
