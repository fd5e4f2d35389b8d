"""d^u = f(d, T-hat): the planned spans put in by code, no model asked (CoreEval paper, §3.3)."""

import re
from collections.abc import Iterable

from coreeval.agents.words import same_text, span_pattern
from coreeval.schema import Plan, Replacement, Sample

_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|\\n)\W*$")


def substitute(sample: Sample, plan: Plan) -> dict[str, str]:
    """Return a sample's fields with old heads and tails replaced and insertions appended.

    The longest old span goes first, and what was put in is not searched again. An insertion is the
    text of the statement that it rests on, at the end of its field.
    """
    return {
        name: _inserted(_replaced(text, pairs_of(plan, name)), _insertions(plan, name))
        for name, text in sample.fields.items()
    }


def pairs_of(plan: Plan, field: str) -> list[tuple[str, str]]:
    """Return what becomes what in a field: heads and tails that the plan changes."""
    found = (
        pair for change in plan.replacements if change.field == field for pair in _ends(change)
    )
    return [(old, new) for old, new in dict(found).items() if not same_text(old, new)]


def _ends(change: Replacement) -> list[tuple[str, str]]:
    if change.before is None or change.mode == "insert":
        return []
    before, after = change.before, change.after
    return [(before.head, after.head), (before.tail, after.tail)]


def _insertions(plan: Plan, field: str) -> list[str]:
    indexes = dict.fromkeys(
        change.statement_index
        for change in plan.replacements
        if change.field == field and change.mode == "insert"
    )
    return [plan.statements[index].text for index in indexes if index < len(plan.statements)]


def _inserted(text: str, additions: Iterable[str]) -> str:
    return " ".join([text, *additions]) if text else " ".join(additions)


def _replaced(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Replace in one pass, so that a new span is never taken for an old one."""
    by_length = sorted(pairs, key=lambda pair: len(pair[0]), reverse=True)
    patterns = [(span_pattern(old), old, new) for old, new in by_length]
    usable = [(pattern, old, new) for pattern, old, new in patterns if pattern is not None]
    if not usable:
        return text
    either = re.compile("|".join(f"({pattern.pattern})" for pattern, _, _ in usable), re.I)

    def put(found: re.Match[str]) -> str:
        _, old, new = usable[(found.lastindex or 1) - 1]
        return _like(found, planned=old, new=new)

    return either.sub(put, text)


def _like(found: re.Match[str], *, planned: str, new: str) -> str:
    """Give the new span the case pattern that the text adds to the planned one."""
    actual = found.group()
    if actual.isupper() and not planned.isupper():
        return new.upper()
    if actual.islower() and not planned.islower():
        return new.lower()
    starts = actual[0].isupper() and (
        planned[:1].islower() or _SENTENCE_START.search(found.string[: found.start()])
    )
    return new[:1].upper() + new[1:] if starts else new
