"""Checks of a plan's form: what it points at exists, and may be changed."""

from collections.abc import Iterator

from coreeval.agents.checks.plan_case import PlanCase, form
from coreeval.agents.locks import firm_locks
from coreeval.agents.words import holds, mask
from coreeval.schema import Defect, Plan


def has_content(case: PlanCase) -> Iterator[Defect]:
    """News that is used has a statement and a replacement."""
    if not case.plan.statements or not case.plan.replacements:
        yield form("plan_content", "the plan uses news but has no statement or no replacement")


def points_at_statements(case: PlanCase) -> Iterator[Defect]:
    """Every replacement rests on a statement that exists."""
    count = len(case.plan.statements)
    for change in case.plan.replacements:
        if change.statement_index >= count:
            yield form(
                "statement_index",
                f"{change.after.head!r} rests on statement {change.statement_index}; "
                f"there are {count}, counted from 0",
            )


def before_occurs(case: PlanCase) -> Iterator[Defect]:
    """Old heads and spans to delete occur in the field that they name."""
    for change in case.plan.replacements:
        text = case.sample.fields.get(change.field, "")
        if change.field not in case.task.fields:
            yield form("field", f"there is no field {change.field!r}")
        elif change.mode == "replace" and change.before is None:
            yield form("before", f"{change.after.head!r} replaces nothing: name the old triple")
        elif change.before is not None and not holds(text, change.before.head):
            yield form("before", f"{change.before.head!r} does not occur in {change.field}")
    for gone in case.plan.delete:
        if not holds(case.sample.fields.get(gone.field, ""), gone.span):
            yield form("delete", f"{gone.span!r} does not occur in {gone.field}")


def locks_untouched(case: PlanCase) -> Iterator[Defect]:
    """What is locked can neither be replaced nor deleted: no text could obey both."""
    locks = firm_locks(case.task, case.extraction)
    for span, field in _going(case.plan):
        text = case.sample.fields.get(field, "")
        locked = [lock.span for lock in locks if lock.field == field]
        if holds(text, span) and not holds(mask(text, locked), span):
            yield form("lock", f"{span!r} is locked in {field} and must stay")


def _going(plan: Plan) -> Iterator[tuple[str, str]]:
    for change in plan.replacements:
        if change.before is not None and not holds(change.after.head, change.before.head):
            yield change.before.head, change.field
    yield from ((gone.span, gone.field) for gone in plan.delete)
