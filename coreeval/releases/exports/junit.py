"""JUnit: a test case for each sample, for the CI servers that show such reports.

A sample that failed is a failure. One that ended without a new text for any other reason is skipped
with that reason: a verdict is no error.
"""

from collections.abc import Iterator
from pathlib import Path

from coreeval.releases.exports.material import ExportedSample, Material
from coreeval.releases.junit import Case, Ending, write_suite


def write_junit(material: Material, out: Path) -> dict[str, int]:
    """Write junit.xml; return its number of test cases."""

    def cases() -> Iterator[Case]:
        return (_case(material, sample) for sample in material.samples())

    path = out / "junit.xml"
    number = write_suite(path, name=material.name, moment=material.moment, cases=cases)
    return {"testcases": number}


def _case(material: Material, sample: ExportedSample) -> Case:
    ending, reason = _ending(sample)
    return Case(
        group=f"{material.name}.{material.split}",
        name=sample.id,
        ending=ending,
        kind=sample.outcome,
        message=reason,
    )


def _ending(sample: ExportedSample) -> tuple[Ending, str]:
    """Return what a sample is to JUnit, and why."""
    reason = f"{sample.outcome}: {sample.reason}" if sample.reason else sample.outcome
    if sample.outcome == "failed":
        return "failure", reason
    if sample.outcome != "accepted":
        return "skipped", reason
    return ("passed", "") if sample.updated else ("skipped", "accepted, but withheld")
