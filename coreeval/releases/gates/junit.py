"""What gates found as JUnit: a test case for each gate."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from coreeval.releases.gates.checking import Finding, Status
from coreeval.releases.gates.gating import Gated
from coreeval.releases.gates.words import found_words
from coreeval.releases.junit import Case, Ending, write_suite
from coreeval.tools.files import replacing

_ENDINGS: Final[Mapping[Status, Ending]] = {
    "met": "passed",
    "not_met": "failure",
    "not_measured": "failure",
    "skipped": "skipped",
}


def write_junit(path: Path, gated: Gated, moment: datetime) -> None:
    """Write the file; a gate that is not met, or not measured, is a failure."""
    name = f"gates of {gated.name} {gated.version}"
    with replacing(path) as draft:
        write_suite(
            draft, name=name, moment=moment, cases=lambda: (_case(name, g) for g in gated.gates)
        )


def _case(group: str, found: Finding) -> Case:
    return Case(
        group=group,
        name=found.gate,
        ending=_ENDINGS[found.status],
        kind=found.status,
        message=f"{found_words(found)}; wanted {found.limit}",
    )
