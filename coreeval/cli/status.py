"""`coreeval status`: where a run is, and whether anything is stuck."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.arguments import RunArgument
from coreeval.cli.meanings import offline_note, offline_roles, outcome_lines
from coreeval.cli.opened import opened_run
from coreeval.cli.output import AsJson, Document, command, one_line, show
from coreeval.meanings import STATES
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from coreeval.tools.stores.run_rows import Beat

STUCK_AFTER_S = 660.0
"""A sample that stays in one step for longer is shown as stuck: the retries of a model call end
after ten minutes."""
SHOWN = 10
"""Failed samples and bad rows that are listed; `--json` has them all."""


def status(run: RunArgument, as_json: AsJson = False) -> None:
    """Show how far a run is, what failed, what is stuck."""
    document = _status(run)
    show(document, as_json, lambda: "\n".join(_words(document, run)))


def _status(run: Path) -> Document:
    from coreeval.releases.manifest import full_counts

    with opened_run(run) as (files, manifest, store):
        beat, bad = store.last_beat(), store.bad_rows()
        counts = full_counts(store.total(), store.counts())
        failed = [ended.result for ended in store.ended(["failed"])]
    worked_on = _held(files.lock)
    return {
        "run": str(run),
        "task": manifest.task,
        "status": "running" if worked_on else _at_rest(manifest.status),
        "created_at": manifest.created_at,
        "ended_at": "" if worked_on else manifest.ended_at,
        "counts": counts,
        "bad_rows": [row.model_dump() for row in bad],
        "failed": [{"sample": one.sample_id, "reason": one.reason} for one in failed],
        "heartbeat": _life(beat) if beat else None,
        "stuck": _stuck(beat) if beat and worked_on else [],
        "offline_roles": offline_roles(manifest),
    }


def _at_rest(recorded: str) -> str:
    """A manifest that says running while nobody holds the lock was left by a killed process."""
    return "killed" if recorded == "running" else recorded


def _held(lock: Path) -> bool:
    from filelock import FileLock, Timeout

    if not lock.exists():
        return False
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


def _words(document: Document, run: Path) -> Iterator[str]:
    counts, state = document["counts"], document["status"]
    ended = counts["total"] - counts["pending"]
    yield f"{document['run']}   task {document['task']}"
    yield f"{STATES[state]}: {ended} of {counts['total']} samples have ended"
    yield from outcome_lines(counts)
    yield from _life_words(document)
    yield from _listed("stuck", [_stuck_words(one) for one in document["stuck"]])
    yield from _listed(
        "failed", [f"{one['sample']}: {one['reason']}" for one in document["failed"]]
    )
    yield from _listed("bad row", [_bad_words(row) for row in document["bad_rows"]])
    if state in {"interrupted", "stopped", "killed"}:
        yield f"go on:   {command('resume', run)}"
    elif state == "complete" and counts["failed"]:
        yield f"again:   {command('retry', run)}"
    yield from offline_note(document["offline_roles"])


def _life_words(document: Document) -> Iterator[str]:
    life = document["heartbeat"]
    if document["ended_at"]:
        yield f"started {document['created_at']}, ended {document['ended_at']}"
    elif life:
        who = f"process {life['pid']} on {life['host']}"
        yield f"last sign of life {_ago(life['age_s'])} ago, from {who}"


def _ago(seconds: float) -> str:
    """Return a time span in the largest unit that fits it."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _stuck_words(one: Document) -> str:
    return f"{one['sample']} in the step {one['node']} since {one['since']}"


def _bad_words(row: Document) -> str:
    return f"{Path(row['file']).name} line {row['line']}: {row['reason']}"


def _listed(title: str, lines: list[str]) -> Iterator[str]:
    """Yield the first lines under a title, and how many there are besides."""
    yield from (f"  {title}: {one_line(line)}" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        yield f"  {title}: and {len(lines) - SHOWN} more; --json lists them all"
