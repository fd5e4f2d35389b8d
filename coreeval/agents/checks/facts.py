"""Checks of what a composed text states: numbers, dates, names, quotations, what was to go."""

from collections.abc import Iterator

from coreeval.agents.checks.case import Case, fact
from coreeval.agents.marks import quotations
from coreeval.agents.names import calendar, unknown_names
from coreeval.agents.numbers import missing_numbers
from coreeval.agents.words import GAP, holds, mask, normalise, words
from coreeval.schema import Defect


def evidence_in_window(case: Case) -> Iterator[Defect]:
    """What the text rests on was published inside the window."""
    for item in case.brief.evidence:
        if not case.window.start <= item.published_at < case.window.end:
            date = item.published_at.date().isoformat()
            yield fact("window", f"{item.id} was published on {date}, outside the window")


def numbers_supported(case: Case) -> Iterator[Defect]:
    """Every number is in the evidence, or in what the plan leaves of the same field."""
    for name, _, new in case.pairs():
        if name not in case.factual:
            continue
        known = [*case.news_numbers, *case.remaining_numbers(name)]
        for number in missing_numbers(new, known):
            yield fact("numbers", f"{name}: {number.text!r} is in no evidence")


def dates_supported(case: Case) -> Iterator[Defect]:
    """Every weekday and month is in the evidence, or in what the plan leaves of the field."""
    told = {day for text in case.news for day in calendar(text)}
    for name, _, new in case.pairs():
        if name not in case.factual:
            continue
        for day in sorted(calendar(new) - told - calendar(case.remaining(name))):
            yield fact("dates", f"{name}: {day.title()!r} is in no evidence")


def names_supported(case: Case) -> Iterator[Defect]:
    """Every name is in the evidence or the original."""
    for name, old, new in case.pairs():
        for unknown in unknown_names(new, like=old, known=case.known):
            yield fact("names", f"{name}: {unknown!r} is in no evidence")


def persons_planned(case: Case) -> Iterator[Defect]:
    """A person whom only the news names is written about only if the plan lists them."""
    planned = [person.name for person in case.brief.plan.persons]
    people = {
        entity.name
        for item in case.brief.evidence
        for entity in item.entities
        if entity.type == "person" and len(words(entity.name)) > 1
    }
    for name, _, new in case.pairs():
        for person in sorted(people):
            listed = any(set(words(person)) & set(words(other)) for other in planned)
            known = any(holds(old, person) for _, old, _ in case.pairs())
            if holds(new, person) and not listed and not known:
                yield fact("persons", f"{name}: {person!r} is not among the plan's persons")


def quotations_occur(case: Case) -> Iterator[Defect]:
    """Quotation marks only around words of the evidence or the original."""
    sources = [*case.news, *(normalise(old) for _, old, _ in case.pairs())]
    for name, _, new in case.pairs():
        for quoted in quotations(new):
            if not any(holds(source, quoted.strip(" .,;:!?")) for source in sources):
                yield fact("quotation", f"{name}: nobody is on record with {quoted!r}")


def nothing_left(case: Case) -> Iterator[Defect]:
    """Nothing is left of what was to be deleted or replaced."""
    for name, _, new in case.pairs():
        text = mask(new, case.locks(name), by=f" {GAP} ")
        for span in case.must_not_remain(name):
            if holds(text, span):
                yield fact("leftover", f"{name} still says {span!r}")
