"""report.json: all that the page says, for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coreeval.config import Config
from coreeval.evaluation.report.definitions import DEFINITIONS
from coreeval.evaluation.report.evidence import EvidenceUsed
from coreeval.evaluation.report.limits import limits_of
from coreeval.evaluation.report.making import (
    benchmark_told,
    notes_told,
    roles_told,
    settings_told,
    targets_told,
)
from coreeval.evaluation.report.worth import Pick
from coreeval.schema import Task
from coreeval.tools.stores.run_overview import Overview

if TYPE_CHECKING:
    from coreeval.evaluation.arm_scores import ArmTable
    from coreeval.evaluation.levels import Levels

Json = Mapping[str, Any]
_OF_MANIFEST = (
    "run", "name", "task", "created_at", "now", "window", "window_start", "after_cutoff", "counts",
    "kept", "parent", "bad_rows", "cost", "knowledge", "fingerprints", "pipeline",
)  # fmt: skip
"""What stands in both: a report is read without its run."""


@dataclass(frozen=True, kw_only=True)
class Findings:
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
    worth: Sequence[Pick]
    arms: "ArmTable"
    pcr: Json | None
    """The splits compared; None where the run was not to."""
    numleak: Json | None
    """The audits of series; likewise."""
    levels: "Levels"
    """What all that says of memory."""


def report_document(found: Findings) -> Json:
    """Return the report as JSON has it."""
    manifest, config = found.manifest, found.config
    document = {
        **{key: manifest[key] for key in _OF_MANIFEST},
        "notes": notes_told(config, manifest),
        "arm_rows": manifest["arms"],
        "offline_roles": list(config.models.rule_based_roles),
        "benchmark": benchmark_told(config, found.task, manifest),
        "settings": settings_told(config),
        "roles": roles_told(config, manifest["prompts"]),
        "targets": targets_told(config, manifest),
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
        "limits": limits_of(document),
        "definitions": {key: f"{name}: {told}" for key, (name, told) in DEFINITIONS.items()},
    }
