"""A plan and all that its checks compare it with."""

from dataclasses import dataclass

from coreeval.agents.checks.restraint import UNRESTRAINED, Restraint
from coreeval.schema import Defect, Evidence, Extraction, Plan, Sample, Statement, Task, Window


@dataclass(frozen=True, kw_only=True)
class PlanCase:
    """One plan, the sample it is for, and the evidence that was offered."""

    task: Task
    sample: Sample
    extraction: Extraction
    plan: Plan
    evidence: dict[str, Evidence]
    window: Window
    restraint: Restraint = UNRESTRAINED

    def cited(self, statement: Statement) -> list[Evidence]:
        """Return the offered items that a statement names."""
        return [self.evidence[key] for key in statement.evidence_ids if key in self.evidence]


def form(check: str, message: str) -> Defect:
    """Return a defect of form, for the replacer to mend."""
    return Defect(check=check, kind="form", message=message, route="replace")


def fact(check: str, message: str) -> Defect:
    """Return a new fact without support, for the replacer to mend."""
    return Defect(check=check, kind="facts", message=message, route="replace")
