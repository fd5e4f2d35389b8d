"""The word lists of the offline team, read once from the files in `data/`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from coreeval.schema import EntityType

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class HeadlineVerb:
    """A headline verb and its forms."""

    base: str
    third: str
    past: str
    participle: str
    noun: bool
    """Its -s form is a plural noun too, as in `cuts`."""
    state: bool
    """It tells of a state, so the perfect tense would be odd."""
    transitive: bool
    """It may have an object, so that there is a passive."""


@dataclass(frozen=True, kw_only=True)
class TopicWords:
    """Something a text may be about without naming anybody."""

    name: str
    type: EntityType
    words: tuple[str, ...]
    queries: tuple[str, ...]


@cache
def load_words(name: str) -> frozenset[str]:
    """Return one list of `words.yaml`."""
    return frozenset(_load("words.yaml")[name])


@cache
def load_care_words(name: str) -> frozenset[str]:
    """Return one flat list of `care.yaml`."""
    return frozenset(_load("care.yaml")[name])


@cache
def load_flag_words() -> Mapping[str, tuple[str, ...]]:
    """Return the words that raise each flag of the extractor (pilot §4)."""
    return {flag: tuple(found) for flag, found in _load("care.yaml")["sensitive"].items()}


@cache
def load_exclusions(name: str) -> tuple[str, ...]:
    """Return the words that exclude a title: `skip`, or `conduct` of a person."""
    return tuple(_load("care.yaml")["evidence"][name])


@cache
def load_topics() -> tuple[TopicWords, ...]:
    """Return the topics in the order of the file."""
    rows = _load("topics.yaml")["topics"]
    return tuple(
        TopicWords(
            name=row["name"],
            type=row["type"],
            words=tuple(row["words"]),
            queries=tuple(row["queries"]),
        )
        for row in rows
    )


def find_label_words(
    task: str, target: str | None, terms: Sequence[str] = ()
) -> Mapping[str, Sequence[str]]:
    """Return the words that carry each label of a task; empty for a task without a list."""
    if target is None:
        return _load_label_words().get(task, {})
    wanted = " ".join([target, *terms]).casefold()
    named = next((name for name in _load_label_words() if f" {name} " in f" {wanted} "), None)
    return _load_label_words()[named] if named else {}


@cache
def _load_label_words() -> dict[str, dict[str, list[str]]]:
    """Return the label words by task, or for stances by target."""
    found: dict[str, dict[str, list[str]]] = _load("labels.yaml")
    return found


@cache
def load_synonyms() -> Mapping[str, str]:
    """Return each word or phrase with its synonym, in both directions."""
    forth = {first: second for first, second in _load_pairs("pairs")}
    return {second: first for first, second in forth.items()} | forth


@cache
def load_loose_synonyms() -> Mapping[str, str]:
    """Return synonyms for rewording only, which fit in most sentences."""
    return {first: second for first, second in _load_pairs("loose")}


@cache
def load_canonical_words() -> Mapping[str, str]:
    """Return the word that represents the synonym group of each single word."""
    groups: dict[str, str] = {}
    for first, second in _load_pairs("pairs"):
        head = groups.get(first, groups.get(second, first))
        groups |= {first: head, second: head}
    return {word: head for word, head in groups.items() if " " not in word}


@cache
def load_contractions() -> Mapping[str, str]:
    """Return contractions and their full forms."""
    found: dict[str, str] = _load("synonyms.yaml")["contractions"]
    return found


@cache
def load_verbs() -> tuple[HeadlineVerb, ...]:
    """Return the headline verbs."""
    lines = (DATA / "verbs.txt").read_text(encoding="utf-8").splitlines()
    return tuple(_read_verb(line.split()) for line in lines if line and not line.startswith("#"))


@cache
def load_verb_forms() -> Mapping[str, HeadlineVerb]:
    """Return every form of every headline verb with its verb."""
    return {
        form: verb
        for verb in load_verbs()
        for form in (verb.base, verb.third, verb.past, verb.participle)
    }


def load_all() -> None:
    """Read every word list now, so that no sample waits for the disk later."""
    for path in sorted(DATA.glob("*.yaml")):
        _load(path.name)
    load_verbs()


def _load_pairs(name: str) -> list[tuple[str, str]]:
    return [(first, second) for first, second in _load("synonyms.yaml")[name]]


@cache
def _load(name: str) -> dict[str, Any]:
    """Return the content of a data file; libyaml, if installed, reads it ten times as fast."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load((DATA / name).read_text(encoding="utf-8"), Loader=loader)
    return loaded


def _read_verb(parts: Sequence[str]) -> HeadlineVerb:
    flags = {"noun", "state", "object"}
    base, rest = parts[0], [part for part in parts[1:] if part not in flags]
    given = [part.removeprefix("past=") for part in rest]
    past = given[0] if given else _regular_past(base)
    return HeadlineVerb(
        base=base,
        third=_third_person(base),
        past=past,
        participle=given[1] if len(given) > 1 else past,
        noun="noun" in parts,
        state="state" in parts,
        transitive="object" in parts,
    )


def _third_person(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{base}es"
    return f"{base[:-1]}ies" if _ends_in_consonant_y(base) else f"{base}s"


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if _ends_in_consonant_y(base) else f"{base}ed"


def _ends_in_consonant_y(base: str) -> bool:
    return base.endswith("y") and base[-2] not in "aeiou"


def build_phrase_pattern(phrases: Iterable[str]) -> str:
    """Return a regular expression for any of the phrases, longest first, at word boundaries.

    `*` stands for any ending at the end of a phrase, and for one word inside it.
    """
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return "|".join(map(_single_phrase_pattern, ordered)) or r"(?!)"


def _single_phrase_pattern(phrase: str) -> str:
    stem = phrase.removesuffix("*")
    inner = r"\s+".join(
        r"[\w'\u2019]+" if part == "*" else re.escape(part).replace("'", "['\u2019]?")
        for part in stem.split()
    )
    ending = r"[\w'\u2019]*" if phrase.endswith("*") else ""
    left = r"(?<![\w#@])" if stem[0].isalnum() else ""
    right = r"(?!\w)" if stem[-1].isalnum() or ending else ""
    return f"{left}{inner}{ending}{right}"
