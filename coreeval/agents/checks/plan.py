"""Checks of a replacer's plan against the evidence that it was shown (pilot §7).

These checks find most bad facts. The checks of form come first: the spans and statements of the
plan exist and may be changed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from coreeval.agents.checks.context import UNRESTRAINED, Restraint
from coreeval.agents.kinds import item_kind
from coreeval.agents.roles import PlanWithText
from coreeval.agents.text.language_checks import CONDUCT
from coreeval.agents.text.language_checks import HEDGES as HEDGES_CHECK
from coreeval.agents.text.lexicon import CONDUCT_WORDS, HEDGES
from coreeval.agents.text.support import Support, evidence_text, is_quoted_in
from coreeval.agents.text.vocabulary import vocabulary_of
from coreeval.agents.text.words import (
    find_content_words,
    find_mentions,
    has_span,
    mask_spans,
    normalise,
    split_words,
    stem,
)
from coreeval.schema import (
    Defect,
    Evidence,
    Extraction,
    Plan,
    Replacement,
    Sample,
    Statement,
    Task,
    Window,
)


@dataclass(frozen=True, kw_only=True)
class PlanCheckContext:
    """One plan, its sample, and the evidence that was offered."""

    task: Task
    sample: Sample
    extraction: Extraction
    plan: Plan
    evidence: dict[str, Evidence]
    window: Window
    restraint: Restraint = UNRESTRAINED

    def list_cited(self, statement: Statement) -> list[Evidence]:
        """Return the offered items that a statement cites."""
        return [self.evidence[key] for key in statement.evidence_ids if key in self.evidence]


def plan_form_defect(check: str, message: str) -> Defect:
    """Return a defect of form, for the replacer to fix."""
    return Defect(check=check, kind="form", message=message, route="replace")


def plan_fact_defect(check: str, message: str) -> Defect:
    """Return a defect for a new fact without support, for the replacer to fix."""
    return Defect(check=check, kind="facts", message=message, route="replace")


def check_content(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect if the news is used without a statement or without a replacement."""
    if not case.plan.statements or not case.plan.replacements:
        yield plan_form_defect(
            "plan_content", "the plan uses news but has no statement or no replacement"
        )


def check_statement_indexes(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each replacement whose statement does not exist."""
    count = len(case.plan.statements)
    for change in case.plan.replacements:
        if change.statement_index >= count:
            yield plan_form_defect(
                "statement_index",
                f"{change.after.head!r} rests on statement {change.statement_index}; "
                f"there are {count}, counted from 0",
            )


def check_old_spans(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each old head or span to delete that is not in its field.

    The head of a fact of an item, such as the answer to its question, may be in another field.
    """
    is_one = item_kind(case.task).is_one
    for change in case.plan.replacements:
        others = case.sample.fields.values() if is_one else ()
        texts = [case.sample.fields.get(change.field, ""), *others]
        if change.field not in case.task.fields:
            yield plan_form_defect("field", f"there is no field {change.field!r}")
        elif change.mode == "replace" and change.before is None:
            yield plan_form_defect(
                "before", f"{change.after.head!r} replaces nothing: name the old triple"
            )
        elif change.before is not None and not any(
            has_span(text, change.before.head) for text in texts
        ):
            yield plan_form_defect(
                "before", f"{change.before.head!r} does not occur in {change.field}"
            )
    for gone in case.plan.delete:
        if not has_span(case.sample.fields.get(gone.field, ""), gone.span):
            yield plan_form_defect("delete", f"{gone.span!r} does not occur in {gone.field}")


def check_locks(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each locked span that the plan replaces or deletes.

    No text could satisfy both the lock and the plan. The addressee may be the head of an old
    triple: "@user wants a coat" becomes another fact, and the text still begins with "@user". Heads
    may be locked if the plan includes its text, which shows whether they stayed.
    """
    for span, field in _removed_spans(case.plan):
        text = case.sample.fields.get(field, "")
        locked = [lock.span for lock in case.extraction.locked if lock.field == field]
        if has_span(text, span) and not has_span(mask_spans(text, locked), span):
            yield plan_form_defect("lock", f"{span!r} is locked in {field} and must stay")


def _removed_spans(plan: Plan) -> Iterator[tuple[str, str]]:
    for change in () if isinstance(plan, PlanWithText) else plan.replacements:
        old = change.before.head if change.before else ""
        if old and find_mentions(old) != [old] and not has_span(change.after.head, old):
            yield old, change.field
    yield from ((gone.span, gone.field) for gone in plan.delete)


_NO_WORDS = frozenset[str]()


def check_evidence_ids(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each cited item of evidence that was not offered."""
    for statement in case.plan.statements:
        for key in statement.evidence_ids:
            if key not in case.evidence:
                yield plan_fact_defect("evidence_id", f"{key!r} was not among the items offered")


def check_window(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each cited item that was published outside the window."""
    start, end = case.window.start, case.window.end
    for statement in case.plan.statements:
        for item in case.list_cited(statement):
            if not start <= item.published_at < end:
                date = item.published_at.date().isoformat()
                yield plan_fact_defect(
                    "window", f"{item.id} was published on {date}, outside the window"
                )


def check_quotes(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each quotation that is not in an item cited by its statement."""
    for statement in case.plan.statements:
        texts = [evidence_text(item) for item in case.list_cited(statement)]
        if texts and not any(is_quoted_in(statement.quote, text) for text in texts):
            yield plan_fact_defect(
                "quote", f"no cited item says {statement.quote!r} in these words"
            )


def check_statements(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each statement with content that its evidence lacks."""
    for statement in case.plan.statements:
        told = statement.modality in ("attributed", "hedged")
        allowed = vocabulary_of(case.task.language).reporting_words if told else _NO_WORDS
        if case.list_cited(statement):
            yield from _check_support(case, statement, statement.text, "statement", allowed)


def check_triples(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each new head or tail whose words are not in the statement's evidence."""
    personal = vocabulary_of(case.task.language).personal_words
    for change in case.plan.replacements:
        statement = _find_statement(case, change)
        if statement is None:
            continue
        for part in (change.after.head, change.after.tail):
            yield from _check_support(case, statement, part, "triple", personal)


def _check_support(
    case: PlanCheckContext, statement: Statement, text: str, what: str, allowed: frozenset[str]
) -> Iterator[Defect]:
    support = Support.from_evidence(
        case.list_cited(statement), and_also=statement.translation, language=case.task.language
    )
    if missing := support.missing_words(text, allowed=allowed):
        yield plan_fact_defect(
            f"{what}_words", f"{text!r}: not in its evidence: {', '.join(missing)}"
        )
    if missing := support.missing_numbers(text):
        yield plan_fact_defect(
            f"{what}_numbers", f"{text!r}: not in its evidence: {', '.join(missing)}"
        )


def _find_statement(case: PlanCheckContext, change: Replacement) -> Statement | None:
    """Return the statement that supports a replacement, if it cites offered evidence."""
    if change.statement_index >= len(case.plan.statements):
        return None
    statement = case.plan.statements[change.statement_index]
    return statement if case.list_cited(statement) else None


def check_conduct(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for a relation of conduct whose verb is not in the evidence (pilot §4.5)."""
    if not CONDUCT.knows(case.task.language):
        return
    for change in case.plan.replacements:
        statement = _find_statement(case, change)
        if statement is None:
            continue
        said = split_words(change.after.relation.replace("_", " "))
        conduct = [word for word in said if stem(word) in _CONDUCT_STEMS]
        support = Support.from_evidence(case.list_cited(statement), and_also=statement.translation)
        missing = support.missing_conduct(conduct)
        if missing:
            yield plan_fact_defect("relation", f"the evidence does not say {', '.join(missing)!r}")


_CONDUCT_STEMS = frozenset(map(stem, CONDUCT_WORDS))


def check_modality(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each question or possibility that is turned into a fact (pilot §3)."""
    for statement in case.plan.statements:
        if statement.modality != "asserted":
            continue
        if _is_only_asked(statement, case.list_cited(statement)):
            yield plan_fact_defect("modality", f"{statement.quote!r} is only asked by its source")
        quote_only = (
            hedge
            for hedge in (HEDGES if HEDGES_CHECK.knows(case.task.language) else ())
            if _hedges_statement(hedge, statement)
            and not any(has_span(statement.text, h) for h in HEDGES)
        )
        for hedge in quote_only:
            yield plan_fact_defect("modality", f"{statement.text!r} drops {hedge!r} of its source")


def _hedges_statement(hedge: str, statement: Statement) -> bool:
    """Return whether a quotation hedges words that its statement repeats."""
    _, found, rest = normalise(statement.quote).casefold().partition(hedge)
    if not found or not has_span(statement.quote, hedge):
        return False
    told = set(map(stem, split_words(statement.text)))
    return not (hedged := find_content_words(rest)) or stem(hedged[0]) in told


def _is_only_asked(statement: Statement, cited: Sequence[Evidence]) -> bool:
    """Return whether every sentence that contains the quoted words is a question."""
    texts = [part for item in cited for part in (item.title, item.snippet)]
    sentences = [sentence for text in texts for sentence in _SENTENCES.findall(normalise(text))]
    sources = [sentence for sentence in sentences if is_quoted_in(statement.quote, sentence)]
    return bool(sources) and all(sentence.rstrip(" \"')").endswith("?") for sentence in sources)


_SENTENCES = re.compile(r"[^?!:]*?[.](?=\s+[A-Z\"'])|[^?!:]+[?!:]*")


def check_persons(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for negative news about people whom the original does not name (pilot §4.2).

    In a sensitive sample, any negative news about people is a defect.
    """
    for person in case.plan.persons:
        known = _is_named_by_original(case, person.name) and not case.restraint.neutral_only
        if person.polarity == "negative" and not known:
            yield _person_defect("person", f"nothing negative may be written about {person.name!r}")


def check_takedown(case: PlanCheckContext) -> Iterator[Defect]:
    """Yield a defect for each person on the takedown list (pilot §4.8).

    Provenance publishes the triples, which may name only listed persons whom the original names.
    """
    listed = case.restraint.takedown
    told = [part for one in case.plan.statements for part in (one.text, one.translation)]
    for name in listed.names_in(" | ".join(told)):
        yield _person_defect("takedown", f"{name!r} may not be named")
    ends = [end for change in case.plan.replacements for end in (change.before, change.after)]
    parts = [part for end in ends if end for part in (end.head, end.relation, end.tail)]
    for name in listed.find_new_names(case.sample.fields.values(), parts):
        yield plan_fact_defect("takedown", f"{name!r} may not be named in a triple")


def _person_defect(check: str, message: str) -> Defect:
    return Defect(check=check, kind="facts", message=f"{message}: use other news", route="evidence")


def _is_named_by_original(case: PlanCheckContext, name: str) -> bool:
    """Return whether the original names a person, in full or by a distinctive part of the name."""
    parts = [part for part in name.split() if len(part) > 3]
    texts = case.sample.fields.values()
    return any(has_span(text, spelling) for text in texts for spelling in (name, *parts))


PLAN_CHECKS: tuple[Callable[[PlanCheckContext], Iterator[Defect]], ...] = (
    check_content,
    check_statement_indexes,
    check_old_spans,
    check_locks,
    check_evidence_ids,
    check_window,
    check_quotes,
    check_statements,
    check_triples,
    check_conduct,
    check_modality,
    check_persons,
    check_takedown,
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
    """Return the defects of a plan; none if it decided to use no news."""
    if plan.decision != "use":
        return []
    by_id = {item.id: item for item in evidence}
    case = PlanCheckContext(
        task=task,
        sample=sample,
        extraction=extraction,
        plan=plan,
        evidence=by_id,
        window=window,
        restraint=restraint,
    )
    return [defect for check in PLAN_CHECKS for defect in check(case)]
