"""report.json, with everything that the page says; writes it, the page and items.csv."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreeval.config import Config
from coreeval.evaluation.report.definitions import DEFINITIONS
from coreeval.evaluation.report.highlights import Highlight
from coreeval.evaluation.report.limits import list_limits
from coreeval.evaluation.report.provenance import (
    EvidenceUsed,
    describe_benchmark,
    describe_notes,
    describe_roles,
    describe_settings,
    describe_targets,
)
from coreeval.evaluation.report.report_page import report_page
from coreeval.schema import Task
from coreeval.tools.files import replacing, write_json, write_text
from coreeval.tools.stores.run_overview import Overview
from coreeval.tools.text import escape_formula, visible
from coreeval.tools.workspace import RunFiles

if TYPE_CHECKING:
    from coreeval.evaluation.memory_evidence import MemoryEvidence
    from coreeval.evaluation.scores import ArmTable


Json = Mapping[str, Any]
_OF_MANIFEST = (
    "run", "name", "task", "created_at", "now", "window", "window_start", "after_cutoff", "counts",
    "kept", "parent", "bad_rows", "cost", "knowledge", "fingerprints", "pipeline",
)  # fmt: skip
"""What stands in both: a report is read without its run."""


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """What a run found, as its report takes it."""

    manifest: Json
    config: Config
    task: Task
    quality: Json
    """As a release has it."""
    overview: Overview
    attempts: Mapping[int, int]
    """Accepted samples by the attempts that they took."""
    evidence: EvidenceUsed
    worth: Sequence[Highlight]
    arms: "ArmTable"
    pcr: Json | None
    """The splits compared; None where the run was not to."""
    numleak: Json | None
    """The audits of series; likewise."""
    levels: "MemoryEvidence"
    """What all that says of memory."""


def report_document(found: ReportInput) -> Json:
    """Return the report as JSON has it."""
    manifest, config = found.manifest, found.config
    document = {
        **{key: manifest[key] for key in _OF_MANIFEST},
        "notes": describe_notes(config, manifest),
        "arm_rows": manifest["arms"],
        "offline_roles": list(config.models.rule_based_roles),
        "benchmark": describe_benchmark(config, found.task, manifest),
        "settings": describe_settings(config),
        "roles": describe_roles(config, manifest["prompts"]),
        "targets": describe_targets(config, manifest),
        "quality": found.quality,
        "attempts": {str(number): samples for number, samples in found.attempts.items()},
        "causes": [each.model_dump() for each in found.overview.causes],
        "verdicts": [each.model_dump() for each in found.overview.verdicts],
        "evidence": found.evidence.model_dump(mode="json"),
        "calls": [each.model_dump() for each in found.overview.calls],
        "worth_a_look": [each.model_dump() for each in found.worth],
        "arms": found.arms.model_dump(mode="json"),
        "pcr": found.pcr,
        "numleak": found.numleak,
        "decomposition": {**found.levels.document, "control": manifest["control"]},
    }
    return document | {
        "limits": list_limits(document),
        "definitions": {key: f"{name}: {told}" for key, (name, told) in DEFINITIONS.items()},
    }


Row = Mapping[str, str | int | float | None]


def write_items(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write the table as CSV, as one replacement; what is not known is empty.

    People open it with a spreadsheet: no text is a formula (see `harmless`) or hides characters.
    """
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows({name: _safe_cell(row[name]) for name in row} for row in rows)


def _safe_cell(value: str | int | float | None) -> str | int | float | None:
    return escape_formula(visible(value)) if isinstance(value, str) else value


def write_report(found: ReportInput, files: RunFiles) -> None:
    """Write report.json, report.html and, where a target labelled texts, items.csv."""
    document = report_document(found)
    write_json(files.report_json, document)
    write_text(files.report_html, report_page(document))
    if found.levels.items:
        write_items(files.items, found.levels.columns, found.levels.rows())
