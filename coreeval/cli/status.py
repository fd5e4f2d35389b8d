"""`coreeval status`: where a run is, and whether anything is stuck."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import AsJson, Document, show, utc_now
from coreeval.cli.refresh import RunArgument

if TYPE_CHECKING:
    from coreeval.tools.stores.run_rows import Beat

STUCK_AFTER_S = 300.0
"""A sample that stays in one step for longer is shown as stuck: no model call may take so long."""


def status(run: RunArgument, as_json: AsJson = False) -> None:
    """Show how far a run is, what failed, and whether a process works on it."""
    document = _status(run)
    show(document, as_json, lambda: _words(document))


def _status(run: Path) -> Document:
    from coreeval.releases.manifest import full_counts, read_manifest
    from coreeval.tools.stores.runs import RunStore
    from coreeval.tools.workspace import RunFiles

    files = RunFiles(run)
    manifest = read_manifest(files.manifest)
    store = RunStore.open(files.store, now=utc_now)
    try:
        beat, bad = store.last_beat(), store.bad_rows()
        counts = full_counts(store.total(), store.counts())
        failed = [ended.result for ended in store.ended(["failed"])]
    finally:
        store.close()
    worked_on = _held(files.lock)
    return {
        "run": str(run),
        "status": "running" if worked_on else _at_rest(manifest.status),
        "counts": counts,
        "bad_rows": [row.model_dump() for row in bad],
        "failed": [{"sample": one.sample_id, "reason": one.reason} for one in failed],
        "heartbeat": _life(beat) if beat else None,
        "stuck": _stuck(beat) if beat and worked_on else [],
    }


def _at_rest(recorded: str) -> str:
    """A manifest that says running while nobody holds the lock was left by a killed process."""
    return "killed" if recorded == "running" else recorded


def _held(lock: Path) -> bool:
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


def _life(beat: "Beat") -> Document:
    age = (utc_now() - datetime.fromisoformat(beat.at)).total_seconds()
    return {"pid": beat.pid, "host": beat.host, "at": beat.at, "age_s": round(age, 1)}


def _stuck(beat: "Beat") -> list[dict[str, str]]:
    """Return the samples that have been in one step for too long."""
    return [
        {"sample": sample, **place}
        for sample, place in beat.in_flight.items()
        if (utc_now() - datetime.fromisoformat(place["since"])).total_seconds() > STUCK_AFTER_S
    ]


def _words(document: Document) -> str:
    counts = document["counts"]
    lines = [f"{document['run']}: {document['status']}"]
    lines += [f"  {name:<20}{count:>8}" for name, count in counts.items() if count]
    if document["heartbeat"]:
        life = document["heartbeat"]
        lines.append(f"  last sign of life {life['age_s']} s ago (pid {life['pid']})")
    lines += [
        f"  stuck: {one['sample']} in {one['node']} since {one['since']}"
        for one in document["stuck"]
    ]
    lines += [f"  failed: {one['sample']}: {one['reason']}" for one in document["failed"][:10]]
    lines += [
        f"  bad row: {Path(row['file']).name} line {row['line']}: {row['reason']}"
        for row in document["bad_rows"][:10]
    ]
    return "\n".join(lines)
