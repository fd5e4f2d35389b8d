"""Checks of a plan's facts against the evidence that it cites."""

import re
from collections.abc import Iterator, Sequence

from coreeval.agents.checks.plan_case import PlanCase, fact
from coreeval.agents.lexicon import CONDUCT_WORDS, HEDGES, PERSONAL_WORDS, REPORTING_WORDS
from coreeval.agents.support import Support, evidence_text, quoted_in
from coreeval.agents.words import content_words, holds, normalise, stem, words
from coreeval.schema import Defect, Evidence, Replacement, Statement

_NOTHING = frozenset[str]()


def ids_offered(case: PlanCase) -> Iterator[Defect]:
    """Only evidence that was offered is cited."""
    for statement in case.plan.statements:
        for key in statement.evidence_ids:
            if key not in case.evidence:
                yield fact("evidence_id", f"{key!r} was not among the items offered")


def inside_window(case: PlanCase) -> Iterator[Defect]:
    """Cited evidence was published inside the window."""
    start, end = case.window.start, case.window.end
    for statement in case.plan.statements:
        for item in case.cited(statement):
            if not start <= item.published_at < end:
                date = item.published_at.date().isoformat()
                yield fact("window", f"{item.id} was published on {date}, outside the window")


def quotes_occur(case: PlanCase) -> Iterator[Defect]:
    """Every quotation is in an item that its statement cites."""
    for statement in case.plan.statements:
        texts = [evidence_text(item) for item in case.cited(statement)]
        if texts and not any(quoted_in(statement.quote, text) for text in texts):
            yield fact("quote", f"no cited item says {statement.quote!r} in these words")


def statements_supported(case: PlanCase) -> Iterator[Defect]:
    """A statement says nothing that its evidence does not."""
    for statement in case.plan.statements:
        told = statement.modality in ("attributed", "hedged")
        allowed = REPORTING_WORDS if told else _NOTHING
        if case.cited(statement):
            yield from _unsupported(case, statement, statement.text, "statement", allowed)


def triples_supported(case: PlanCase) -> Iterator[Defect]:
    """New heads and tails are words of their statement's evidence."""
    for change in case.plan.replacements:
        statement = _statement_of(case, change)
        if statement is None:
            continue
        for part in (change.after.head, change.after.tail):
            yield from _unsupported(case, statement, part, "triple", PERSONAL_WORDS)


def _unsupported(
    case: PlanCase, statement: Statement, text: str, what: str, allowed: frozenset[str]
) -> Iterator[Defect]:
    support = Support.of(case.cited(statement), and_also=statement.translation)
    if missing := support.missing_words(text, allowed=allowed):
        yield fact(f"{what}_words", f"{text!r}: not in its evidence: {', '.join(missing)}")
    if missing := support.missing_numbers(text):
        yield fact(f"{what}_numbers", f"{text!r}: not in its evidence: {', '.join(missing)}")


def _statement_of(case: PlanCase, change: Replacement) -> Statement | None:
    """Return the statement that a replacement rests on, if it names offered evidence."""
    if change.statement_index >= len(case.plan.statements):
        return None
    statement = case.plan.statements[change.statement_index]
    return statement if case.cited(statement) else None


def conduct_supported(case: PlanCase) -> Iterator[Defect]:
    """A relation that says what somebody did needs its verb in the evidence (pilot §4.5)."""
    for change in case.plan.replacements:
        statement = _statement_of(case, change)
        if statement is None:
            continue
        said = words(change.after.relation.replace("_", " "))
        conduct = [word for word in said if stem(word) in _CONDUCT_STEMS]
        support = Support.of(case.cited(statement), and_also=statement.translation)
        missing = support.missing_conduct(conduct)
        if missing:
            yield fact("relation", f"the evidence does not say {', '.join(missing)!r}")


_CONDUCT_STEMS = frozenset(map(stem, CONDUCT_WORDS))


def modality_kept(case: PlanCase) -> Iterator[Defect]:
    """A question or a possibility must not become a fact (pilot §3)."""
    for statement in case.plan.statements:
        if statement.modality != "asserted":
            continue
        if _only_asked(statement, case.cited(statement)):
            yield fact("modality", f"{statement.quote!r} is only asked by its source")
        quote_only = (
            hedge
            for hedge in HEDGES
            if _hedges(hedge, statement) and not any(holds(statement.text, h) for h in HEDGES)
        )
        for hedge in quote_only:
            yield fact("modality", f"{statement.text!r} drops {hedge!r} of its source")


def _hedges(hedge: str, statement: Statement) -> bool:
    """Tell whether a quotation hedges something that its statement takes up."""
    _, found, rest = normalise(statement.quote).casefold().partition(hedge)
    if not found or not holds(statement.quote, hedge):
        return False
    told = set(map(stem, words(statement.text)))
    return not (hedged := content_words(rest)) or stem(hedged[0]) in told


def _only_asked(statement: Statement, cited: Sequence[Evidence]) -> bool:
    """Tell whether every sentence that has the quoted words is a question."""
    texts = [part for item in cited for part in (item.title, item.snippet)]
    sentences = [sentence for text in texts for sentence in _SENTENCES.findall(normalise(text))]
    sources = [sentence for sentence in sentences if quoted_in(statement.quote, sentence)]
    return bool(sources) and all(sentence.rstrip(" \"')").endswith("?") for sentence in sources)


_SENTENCES = re.compile(r"[^?!:]*?[.](?=\s+[A-Z\"'])|[^?!:]+[?!:]*")


def persons_unharmed(case: PlanCase) -> Iterator[Defect]:
    """Nothing negative about anybody whom the original does not name (pilot §4.2).

    In a sensitive sample, nothing negative about anybody at all.
    """
    for person in case.plan.persons:
        known = _named(case, person.name) and not case.restraint.neutral_only
        if person.polarity == "negative" and not known:
            yield _elsewhere("person", f"nothing negative may be written about {person.name!r}")


def nobody_listed(case: PlanCase) -> Iterator[Defect]:
    """Nobody on the takedown list (pilot §4.8)."""
    told = [part for one in case.plan.statements for part in (one.text, one.translation)]
    for name in case.restraint.takedown.names_in(" | ".join(told)):
        yield _elsewhere("takedown", f"{name!r} may not be named")


def _elsewhere(check: str, message: str) -> Defect:
    return Defect(check=check, kind="facts", message=f"{message}: use other news", route="evidence")


def _named(case: PlanCase, name: str) -> bool:
    """Tell whether the original names somebody, by the full name or a distinctive part of it."""
    parts = [part for part in name.split() if len(part) > 3]
    texts = case.sample.fields.values()
    return any(holds(text, spelling) for text in texts for spelling in (name, *parts))
