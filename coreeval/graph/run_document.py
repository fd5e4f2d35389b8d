"""The result of a run as a JSON document, and its parts that commands display."""

from pathlib import Path
from typing import Any

from coreeval.graph.estimate.model import find_estimate, measure_error
from coreeval.runs.batches import BatchSummary, build_batch_document, read_batches
from coreeval.runs.manifest import Manifest, RunSummary
from coreeval.runs.no_result import explain_no_result
from coreeval.runs.status import read_comparability
from coreeval.runs.target_scores import read_scores
from coreeval.tools.workspace import RunFiles, Workspace


def build_run_document(done: RunSummary) -> dict[str, Any]:
    """Return what `coreeval refresh --json` prints of a run."""
    manifest = done.manifest
    return {
        "run": str(done.run_dir),
        "status": manifest.status,
        "counts": manifest.counts,
        "control": manifest.control and {"counts": manifest.control.counts},
        "parent": manifest.parent and manifest.parent.model_dump(mode="json"),
        "kept": manifest.kept,
        "bad_rows": manifest.bad_rows,
        "cost": manifest.cost.model_dump(mode="json"),
        "estimate": describe_estimate_error(manifest),
        "comparability": read_run_comparability(done),
        "scores": read_run_scores(done),
        "offline_roles": manifest.offline_roles,
        "remark": explain_no_result(done.run_dir, manifest),
        "batches": build_batch_document(read_run_batches(done)),
        "dataset": str(done.run_dir / "dataset"),
        "report": str(RunFiles(done.run_dir).report_html),
    }


def read_run_comparability(done: RunSummary) -> dict[str, Any] | None:
    """Return whether the arms are comparable; None before the run is complete."""
    found = read_comparability(done.run_dir) if done.manifest.status == "complete" else None
    return None if found is None else dict(found)


def read_run_scores(done: RunSummary) -> dict[str, Any] | None:
    """Return the targets' scores, as `read_scores` does; None before the run is complete."""
    return read_scores(done.run_dir) if done.manifest.status == "complete" else None


def read_run_batches(done: RunSummary) -> BatchSummary | None:
    """Return the batches of a run; None if its calls were sent at once."""
    if not done.manifest.batching:
        return None
    return read_batches(Workspace(Path(done.manifest.workspace)).calls, done.manifest.payer)


def describe_estimate_error(manifest: Manifest) -> list[dict[str, Any]] | None:
    """Return the error of the preceding estimate; None without one or before the end."""
    if manifest.status != "complete" or (found := find_estimate(manifest)) is None:
        return None
    return [miss.model_dump(mode="json") for miss in measure_error(found, manifest.cost).misses]
