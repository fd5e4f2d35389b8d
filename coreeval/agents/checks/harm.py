"""Checks of what a composed text says about real people (pilot §4)."""

from collections.abc import Iterator

from coreeval.agents.checks.case import Case, fact
from coreeval.agents.lexicon import CONDUCT_WORDS, HARM_WORDS
from coreeval.agents.names import names
from coreeval.agents.support import Support
from coreeval.agents.voice import sentences
from coreeval.agents.words import holds, stem, words
from coreeval.schema import Defect

_CONDUCT = frozenset(map(stem, CONDUCT_WORDS))
_HARM = frozenset(map(stem, HARM_WORDS))


def conduct_supported(case: Case) -> Iterator[Defect]:
    """What a named person or body is said to have done stands in the news or in the original."""
    told = Support([*case.news, *(old for _, old, _ in case.pairs())])
    for name, _, new in case.pairs():
        said = (
            word
            for sentence in sentences(new)
            if names(sentence)
            for word in words(sentence)
            if stem(word) in _CONDUCT
        )
        for word in told.missing_conduct(said):
            yield fact("conduct", f"{name}: no evidence says that anybody did so: {word!r}")


def harm_not_moved(case: Case) -> Iterator[Defect]:
    """No accusation, illness, death or insult of the original passes to somebody new."""
    told = {stem(word) for text in case.news for word in words(text)}
    before = {stem(word) for _, old, _ in case.pairs() for word in words(old)}
    for name, _, new in case.pairs():
        kept = [
            word for word in words(new) if stem(word) in _HARM & before and stem(word) not in told
        ]
        people = sorted(_new_people(case, new))
        if kept and people:
            yield _elsewhere("harm", f"{name} says {kept[0]!r} beside {people[0]!r}, who is new")


def nobody_listed(case: Case) -> Iterator[Defect]:
    """Nobody on the takedown list, unless the original names them."""
    for name, old, new in case.pairs():
        for listed in case.restraint.takedown.names_in(new):
            if listed not in set(case.restraint.takedown.names_in(old)):
                yield _elsewhere("takedown", f"{name} names {listed!r}, who may not be named")


def _new_people(case: Case, text: str) -> set[str]:
    """Return the people of the plan and the news whom a text names and the original does not."""
    listed = {person.name for person in case.brief.plan.persons}
    known = {
        entity.name
        for item in case.brief.evidence
        for entity in item.entities
        if entity.type == "person" and len(words(entity.name)) > 1
    }
    return {person for person in listed | known if _named(person, text, case)}


def _named(person: str, text: str, case: Case) -> bool:
    last = person.split()[-1]
    originals = [old for _, old, _ in case.pairs()]
    return holds(text, last, any_case=False) and not any(holds(old, last) for old in originals)


def _elsewhere(check: str, message: str) -> Defect:
    """Return harm to somebody, which only other news can avoid (pilot §8)."""
    return Defect(check=check, kind="facts", message=message, route="evidence")
