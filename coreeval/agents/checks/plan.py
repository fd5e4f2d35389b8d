"""A replacer's plan against the evidence it was shown (pilot §7): most bad facts end here."""

from collections.abc import Callable, Iterator, Sequence

from coreeval.agents.checks import plan_facts, plan_form
from coreeval.agents.checks.plan_case import PlanCase
from coreeval.agents.checks.restraint import UNRESTRAINED, Restraint
from coreeval.schema import Defect, Evidence, Extraction, Plan, Sample, Task, Window

CHECKS: tuple[Callable[[PlanCase], Iterator[Defect]], ...] = (
    plan_form.has_content,
    plan_form.points_at_statements,
    plan_form.before_occurs,
    plan_form.locks_untouched,
    plan_facts.ids_offered,
    plan_facts.inside_window,
    plan_facts.quotes_occur,
    plan_facts.statements_supported,
    plan_facts.triples_supported,
    plan_facts.conduct_supported,
    plan_facts.modality_kept,
    plan_facts.persons_unharmed,
    plan_facts.nobody_listed,
)


def check_plan(
    task: Task,
    sample: Sample,
    extraction: Extraction,
    plan: Plan,
    evidence: Sequence[Evidence],
    window: Window,
    restraint: Restraint = UNRESTRAINED,
) -> list[Defect]:
    """Return what is wrong with a plan; nothing, when it decided to use no news."""
    if plan.decision != "use":
        return []
    by_id = {item.id: item for item in evidence}
    case = PlanCase(
        task=task,
        sample=sample,
        extraction=extraction,
        plan=plan,
        evidence=by_id,
        window=window,
        restraint=restraint,
    )
    return [defect for check in CHECKS for defect in check(case)]
