"""Finds the persons that a new text names, and a run's notes that concern real people."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coreeval.agents.text.words import has_span, split_words
from coreeval.releases.review.decisions import NameSource, PersonMention
from coreeval.schema import Evidence, Person, Verdict
from coreeval.tasks.task_file import UNDECIDED
from coreeval.tools.stores.run_store import RunStore

_HARM = re.compile(r"(?:^|; )(?:facts_person|harm|persons|takedown|conduct): [^;]*")
"""Objections of checks and judges that concern a real person, as worded in their verdicts."""
_UNSURE = "(low confidence"
_ORIGINAL, _LABEL = "original_label", "label_preserved"
_CHECKED = ("plan", "checks", "facts_supported")
NoteJson = dict[str, Any]


@dataclass
class SampleNotes:
    """Notes about one sample."""

    policy: str = "allow"
    sensitive: list[str] = field(default_factory=list)
    """Flags of the screen, as `flag: 'span'`."""
    mentioned: list[str] = field(default_factory=list)
    """Spellings of the persons named in the original."""
    persons: list[Person] = field(default_factory=list)
    """Persons in the last plan."""
    translated: bool = False
    """Whether the last plan uses evidence in another language."""
    harm: str = ""
    """A defect of an earlier attempt that concerns a real person."""
    unsure: str = ""
    """The blind judge's comment on the new text, if it was less sure than about the original."""
    original_unsure: bool = False


def read_notes(store: RunStore) -> Mapping[str, SampleNotes]:
    """Return a run's notes by sample id."""
    known: dict[str, SampleNotes] = {}
    for sample_id, node, detail in store.history.notes(("extract", "replace")):
        about = known.setdefault(sample_id, SampleNotes())
        (_read_extraction if node == "extract" else _read_plan)(about, detail)
    for sample_id, verdict in store.history.verdicts((*_CHECKED, _ORIGINAL, _LABEL)):
        if sample_id in known:
            _read_verdict(known[sample_id], verdict)
    return known


def _read_extraction(about: SampleNotes, detail: NoteJson) -> None:
    found = detail.get("extraction") or {}
    about.policy = detail.get("policy", "allow")
    about.sensitive = [
        f"{each['flag']}: {each['span']!r}" if each["span"] else each["flag"]
        for each in found.get("sensitive", ())
    ]
    about.mentioned = [
        spelling
        for entity in found.get("entities", ())
        if entity["type"] == "person" and entity["kind"] == "named"
        for spelling in (entity["span"], entity["query_name"], *entity["aliases"])
    ]


def _read_plan(about: SampleNotes, detail: NoteJson) -> None:
    """Take the persons and translations from a plan; a failed step has no plan."""
    if plan := detail.get("plan"):
        about.persons = [Person.model_validate(each) for each in plan.get("persons", ())]
        about.translated = any(each["translation"] for each in plan.get("statements", ()))


def _read_verdict(about: SampleNotes, verdict: Verdict) -> None:
    """Take the doubts from a verdict; a later attempt overrides an earlier one."""
    unsure = _UNSURE in verdict.reason or verdict.reason.startswith(UNDECIDED)
    if verdict.name == _ORIGINAL:
        about.original_unsure = unsure
    elif verdict.name == _LABEL:
        about.unsure = verdict.reason if unsure and not about.original_unsure else ""
    elif not verdict.passed and (found := _HARM.search(verdict.reason)):
        about.harm = f"attempt {verdict.attempt}: {found.group().removeprefix('; ')}"


_MENTION = re.compile(r"(?<![\w@])@(?!user\b)\w{2,}")
"""An account by its name; `@user` stands for an anonymised account."""
SHORTEST_NAME = 3
"""The fewest letters of a last name that identifies a person by itself."""
_SUFFIXES = frozenset({"jr", "jr.", "sr", "sr.", "ii", "iii", "iv"})


def find_persons(
    new: Mapping[str, str],
    original: Mapping[str, str],
    noted: SampleNotes,
    evidence: Iterable[Evidence],
) -> list[PersonMention]:
    """Return the persons named in a text, without duplicates, by the longest known name.

    A name counts if the text has all of it or its last word. GDELT only guesses persons' names, so
    its names count only if upper and lower case match too.
    """
    after, before = " | ".join(new.values()), " | ".join(original.values())
    written = frozenset(split_words(after))
    found: list[PersonMention] = []
    for name, known in _names_to_find(after, noted, evidence):
        sure = known != "news"
        if not written.issuperset(split_words(_last_name(name))) or not _stands_alone(
            name, after, sure
        ):
            continue
        if any(_same_person(name, each.name) for each in found):
            continue
        found.append(
            PersonMention(name=name, new=not _stands_alone(name, before, sure), known=known)
        )
    return found


def find_unnamed(names: Iterable[str], found: Sequence[PersonMention]) -> list[str]:
    """Return the names that are not among the persons found, without duplicates."""
    rest = [name for name in names if not any(_same_person(name, each.name) for each in found)]
    return list(dict.fromkeys(rest))


def gdelt_persons(evidence: Iterable[Evidence]) -> Iterator[str]:
    """Yield the persons that GDELT lists for an article, by first and last name."""
    for item in evidence:
        for entity in item.entities:
            if entity.type == "person" and len(split_words(entity.name)) > 1:
                yield entity.name


def _names_to_find(
    text: str, noted: SampleNotes, evidence: Iterable[Evidence]
) -> Iterator[tuple[str, NameSource]]:
    """Yield the names to look for, surest source first, longest names first within a source."""
    yield from ((name, "plan") for name in _longest(person.name for person in noted.persons))
    yield from ((name, "original") for name in _longest(noted.mentioned))
    yield from ((name, "news") for name in _longest(gdelt_persons(evidence)))
    yield from ((found.group(), "mention") for found in _MENTION.finditer(text))


def _longest(names: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(filter(split_words, names)), key=len, reverse=True)


def _stands_alone(name: str, text: str, any_case: bool) -> bool:
    last = _last_name(name)
    telling = [name, last] if len(last) >= SHORTEST_NAME else [name]
    return any(has_span(text, each, any_case=any_case) for each in telling)


def _last_name(name: str) -> str:
    parts = [part for part in name.split() if part.casefold() not in _SUFFIXES]
    return (parts or [name])[-1].strip(",")


def _same_person(one: str, other: str) -> bool:
    """Return whether one name ends with all the words of the other."""
    short, long = sorted((split_words(one), split_words(other)), key=len)
    return short == long[len(long) - len(short) :]
