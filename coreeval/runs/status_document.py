"""The status of a run as a JSON document."""

from dataclasses import asdict
from typing import Any

from coreeval.runs.batches import build_batch_document
from coreeval.runs.status import RunStatus, read_bad_lines, read_failures
from coreeval.tools.workspace import RunFiles


def build_status_document(now: RunStatus) -> dict[str, Any]:
    """Return the `coreeval status --json` output for a run."""
    sign, pulse = now.sign, now.pulse
    return {
        "run": str(now.run),
        "task": now.task,
        "status": now.status,
        "created_at": now.created_at,
        "ended_at": now.ended_at,
        "counts": now.counts,
        "control": _second_pass(now),
        "bad_rows": [asdict(row) for row in read_bad_lines(now.run)],
        "failed": [asdict(one) for one in read_failures(now.run)],
        "heartbeat": asdict(sign) if sign else None,
        "pulse": asdict(pulse) if pulse else None,
        "idle_s": now.idle_s,
        "stalled": now.stalled,
        "spend": asdict(now.spend),
        "cache_use": [asdict(one) for one in now.cache_use],
        "stuck": [asdict(one) for one in now.stuck],
        "batches": build_batch_document(now.batches),
        "comparability": now.comparability,
        "offline_roles": now.ruled,
    }


def _second_pass(now: RunStatus) -> dict[str, Any] | None:
    """Return the state of the pass that writes the control arm; None without one."""
    if now.control is None:
        return None
    failed = read_failures(RunFiles(now.run).control.root)
    return {"counts": now.control, "failed": [asdict(one) for one in failed]}
