"""Loads the word lists of the offline team from the files in `data/`, each file once."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from coreeval.config.user_files import parse_yaml
from coreeval.schema import EntityType, Flag, Task

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class HeadlineVerb:
    """The forms of a verb that headlines use."""

    base: str
    third: str
    past: str
    participle: str
    noun: bool
    """Whether its -s form is also a plural noun, like `cuts`."""
    state: bool
    """Whether it describes a state, so that the perfect tense would sound wrong."""
    transitive: bool
    """Whether it takes an object, so that it has a passive."""


@dataclass(frozen=True, kw_only=True)
class TopicWords:
    """A topic that a text may have without naming anybody."""

    name: str
    type: EntityType
    words: Sequence[str]
    queries: Sequence[str]


@cache
def load_words(name: str) -> frozenset[str]:
    """Return one list of `words.yaml`."""
    return frozenset(_load("words.yaml")[name])


@cache
def load_care_words(name: str) -> frozenset[str]:
    """Return one list of `care.yaml`."""
    return frozenset(_load("care.yaml")[name])


@cache
def load_care_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern for the phrases of one list of `care.yaml`."""
    return compile_phrases(load_care_words(name))


@cache
def load_flag_patterns() -> Mapping[Flag, re.Pattern[str]]:
    """Return a pattern for each flag of the extractor (pilot §4)."""
    return {flag: compile_phrases(words) for flag, words in _load("care.yaml")["sensitive"].items()}


@cache
def load_topics() -> Mapping[str, TopicWords]:
    """Return the topics by name, in the order of the file."""
    return {row["name"]: TopicWords(**row) for row in _load("topics.yaml")["topics"]}


def load_label_patterns(task: Task) -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for the words of each label, if it has any; empty for a task without a list.

    The words of a stance are listed under one word of its target, such as `climate`.
    """
    if task.target is None:
        return compile_label_words(task.name)
    wanted = " ".join([task.target, *task.target_terms]).casefold()
    named = (name for name in _load("labels.yaml") if f" {name} " in f" {wanted} ")
    return compile_label_words(next(named, ""))


@cache
def compile_label_words(name: str) -> Mapping[str, re.Pattern[str]]:
    """Return the patterns of one section of `labels.yaml`; empty if there is no such section."""
    section: Mapping[str, Sequence[str]] = _load("labels.yaml").get(name, {})
    return {label: compile_phrases(words) for label, words in section.items() if words}


@cache
def load_synonyms(*, loose: bool = False) -> Mapping[str, str]:
    """Return words with their synonyms: pairs in both directions, and loose ones if requested."""
    lists = _load("synonyms.yaml")
    forth = dict(lists["pairs"])
    both = {second: first for first, second in forth.items()} | forth
    clear = {word: other for word, other in both.items() if word not in lists["ambiguous"]}
    return clear | dict(lists["loose"]) if loose else clear


@cache
def load_canonical_words() -> Mapping[str, str]:
    """Return the word that represents the synonym group of each single word."""
    groups: dict[str, str] = {}
    for first, second in _load("synonyms.yaml")["pairs"]:
        head = groups.get(first, groups.get(second, first))
        groups |= {first: head, second: head}
    return {word: head for word, head in groups.items() if " " not in word}


def load_contractions() -> Mapping[str, str]:
    """Return contractions with their full forms."""
    found: Mapping[str, str] = _load("synonyms.yaml")["contractions"]
    return found


@cache
def load_verb_forms() -> Mapping[str, HeadlineVerb]:
    """Return the headline verbs by each of their forms."""
    lines = (DATA / "verbs.txt").read_text(encoding="utf-8").splitlines()
    verbs = [_read_verb(line.split()) for line in lines if not line.startswith("#")]
    return {
        form: verb for verb in verbs for form in (verb.base, verb.third, verb.past, verb.participle)
    }


def load_all() -> None:
    """Read all word lists now, so that no sample waits for the disk later."""
    for path in sorted(DATA.glob("*.yaml")):
        _load(path.name)
    load_verb_forms()


@cache
def _load(name: str) -> Mapping[str, Any]:
    """Return the content of a data file."""
    loaded: dict[str, Any] = parse_yaml((DATA / name).read_text(encoding="utf-8"))
    return loaded


def _read_verb(parts: Sequence[str]) -> HeadlineVerb:
    """Return the verb of one line; forms that the line omits are regular."""
    base, flags = parts[0], {"noun", "state", "object"}
    given = [part.removeprefix("past=") for part in parts[1:] if part not in flags]
    past = given[0] if given else _add_ending(base, "ed")
    return HeadlineVerb(
        base=base,
        third=_add_ending(base, "s"),
        past=past,
        participle=given[1] if len(given) > 1 else past,
        noun="noun" in parts,
        state="state" in parts,
        transitive="object" in parts,
    )


def _add_ending(base: str, ending: str) -> str:
    """Return the regular form of a verb with the ending `s` or `ed`."""
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ie{ending[-1]}"
    if ending == "s":
        return f"{base}es" if base.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{base}s"
    return f"{base}d" if base.endswith("e") else f"{base}ed"


def compile_phrases(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of the phrases, longest first, in any case, at word boundaries.

    `*` stands for any ending at the end of a phrase, and for one word inside it.
    """
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile("|".join(map(_phrase_pattern, ordered)), re.IGNORECASE)


def _phrase_pattern(phrase: str) -> str:
    stem = phrase.removesuffix("*")
    inner = r"\s+".join(
        r"[\w'\u2019]+" if part == "*" else re.escape(part).replace("'", "['\u2019]?")
        for part in stem.split()
    )
    ending = r"[\w'\u2019]*" if phrase.endswith("*") else ""
    left = r"(?<![\w#@])" if stem[0].isalnum() else ""
    right = r"(?!\w)" if stem[-1].isalnum() or ending else ""
    return f"{left}{inner}{ending}{right}"
