"""Which new facts a text really carries, and the evidence of each."""

from collections.abc import Sequence

from coreeval.schema import Plan, ReplacedFact


def replaced_facts(sample_id: str, plan: Plan, used: Sequence[int]) -> list[ReplacedFact]:
    """Return one row per replacement that the composer says it used, or all if it names none."""
    numbers = [n for n in used if n < len(plan.replacements)] or range(len(plan.replacements))
    return [_row(sample_id, plan, number) for number in numbers]


def _row(sample_id: str, plan: Plan, number: int) -> ReplacedFact:
    replacement = plan.replacements[number]
    statement = plan.statements[replacement.statement_index]
    return ReplacedFact(
        sample_id=sample_id,
        field=replacement.field,
        before=replacement.before,
        after=replacement.after,
        evidence_id=statement.evidence_ids[0],
        quote=statement.quote,
    )
