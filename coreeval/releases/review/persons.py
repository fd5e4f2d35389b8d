"""Which persons a new text names, by what the run knows of names."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from coreeval.agents.text.words import has_span, split_words
from coreeval.releases.review.listed import Known, Named
from coreeval.releases.review.noted import Noted
from coreeval.schema import Evidence

_MENTION = re.compile(r"(?<![\w@])@(?!user\b)\w{2,}")
"""An account by its name; `@user` stands for one that was made unknown."""
SHORTEST = 3
"""Letters of a last name that tells somebody by itself."""
_SUFFIXES = frozenset({"jr", "jr.", "sr", "sr.", "ii", "iii", "iv"})


def named(
    new: Mapping[str, str],
    original: Mapping[str, str],
    noted: Noted,
    evidence: Iterable[Evidence],
) -> list[Named]:
    """Return whom a text names, each once, by the longest name that is known.

    A name counts if it stands there in full or by its last word. GDELT's names of persons are
    guesses, so theirs count only in the spelling of a name.
    """
    after, before = " | ".join(new.values()), " | ".join(original.values())
    written = frozenset(split_words(after))
    found: list[Named] = []
    for name, known in _names(after, noted, evidence):
        sure = known != "news"
        if not written.issuperset(split_words(_last(name))) or not _stands(name, after, sure):
            continue
        if any(_same(name, each.name) for each in found):
            continue
        found.append(Named(name=name, new=not _stands(name, before, sure), known=known))
    return found


def unnamed(names: Iterable[str], found: Sequence[Named]) -> list[str]:
    """Return those of some names that are not among the persons found, each once."""
    rest = [name for name in names if not any(_same(name, each.name) for each in found)]
    return list(dict.fromkeys(rest))


def gdelt_persons(evidence: Iterable[Evidence]) -> Iterator[str]:
    """Yield whom GDELT lists as persons of an article, by first and last name."""
    for item in evidence:
        for entity in item.entities:
            if entity.type == "person" and len(split_words(entity.name)) > 1:
                yield entity.name


def _names(text: str, noted: Noted, evidence: Iterable[Evidence]) -> Iterator[tuple[str, Known]]:
    """Yield the names to look for: the surest first, and of one source the longest."""
    yield from ((name, "plan") for name in _longest(person.name for person in noted.persons))
    yield from ((name, "original") for name in _longest(noted.mentioned))
    yield from ((name, "news") for name in _longest(gdelt_persons(evidence)))
    yield from ((found.group(), "mention") for found in _MENTION.finditer(text))


def _longest(names: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(filter(split_words, names)), key=len, reverse=True)


def _stands(name: str, text: str, any_case: bool) -> bool:
    last = _last(name)
    telling = [name, last] if len(last) >= SHORTEST else [name]
    return any(has_span(text, each, any_case=any_case) for each in telling)


def _last(name: str) -> str:
    parts = [part for part in name.split() if part.casefold() not in _SUFFIXES]
    return (parts or [name])[-1].strip(",")


def _same(one: str, other: str) -> bool:
    """Tell whether two spellings are one person's: the words of one are the last of the other's."""
    short, long = sorted((split_words(one), split_words(other)), key=len)
    return short == long[len(long) - len(short) :]
