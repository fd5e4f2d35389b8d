"""Checks that a composed text is a text: in the original's language, and nothing but itself."""

import re
import unicodedata
from collections.abc import Iterator

from coreeval.agents.checks.case import Case, form
from coreeval.agents.marks import latin_share, urls, without_marks
from coreeval.agents.words import normalise, words
from coreeval.schema import Defect
from coreeval.tools.gdelt.words import looks_english

FEWEST_WORDS = 4
"""Words from which a language can be told by its function words (own choice)."""
_INSTRUCTIONS = re.compile(
    r"\bas an ai\b|\blanguage model\b|\b(?:here is|here's|below is) (?:the|a|an|your) "
    r"(?:\w+ )?(?:rewritten|updated|new|revised|composed)\b|\bi (?:cannot|can't|am unable to) "
    r"(?:assist|comply|help with|fulfil)|\b(?:ignore|disregard|forget) (?:all |any )?(?:of )?"
    r"(?:the |your |these |previous |prior |above |earlier )+(?:instruction|rule|prompt|text)s?\b|"
    r"\bsystem prompt\b|\bbefore_triples?\b|\bafter_triples?\b|"
    r"\bevidence[_ ]ids?\b|\bused_replacements\b|\blocked spans?\b|\bfacts_supported\b|"
    r"\blabel_carrier\b|\bnone_fits\b|\{\"|\"\}|```|\{\{|<\|\w+\|>|\[/?INST\]|"
    r"</?(?:news|evidence|sample|text|item|plan|drafts|feedback|script|img|system)\b|<!--|"
    r"(?<!=)={3,} ?\w+ ?={3,}|^(?:system|assistant|user|human) ?:|"
    r"\[(?:name|place|date|company|number|insert [^\]]+)\]|"
    r"\$\{?(?:target|text|sentence\d|labels|item|label|task|line)\b",
    re.IGNORECASE,
)
_SAYS_LABEL = (
    r"\b(?:label|answer|class|category|verdict|emotion|stance)\b\W{0,3}(?:is|=|:|as)?\W{0,3}"
)


def same_script(case: Case) -> Iterator[Defect]:
    """A text in Latin letters stays in them."""
    limit = case.limits.latin_share
    for name, old, new in case.pairs():
        if latin_share(old) >= limit > latin_share(new):
            yield form("language", f"{name} is not in the language of the original")


def same_language(case: Case) -> Iterator[Defect]:
    """An English text stays English, as far as function words tell."""
    for name, old, new in case.pairs():
        plain = without_marks(new)
        told = len(words(plain)) >= FEWEST_WORDS and latin_share(new) >= case.limits.latin_share
        if told and looks_english(without_marks(old)) and not looks_english(plain):
            yield form("language", f"{name} is not in the language of the original")


def no_instructions(case: Case) -> Iterator[Defect]:
    """The text alone: no preamble, refusal, placeholder or piece of a prompt."""
    for name, old, new in case.pairs():
        found = _INSTRUCTIONS.search(normalise(new))
        if found and not _INSTRUCTIONS.search(normalise(old)):
            yield form("instructions", f"{name} holds {found.group()!r}; write the text alone")


def label_not_told(case: Case) -> Iterator[Defect]:
    """The label is neither announced nor the whole text."""
    names = [label.name for label in case.task.labels]
    either = "|".join(re.escape(name) for name in names)
    announced = re.compile(rf"{_SAYS_LABEL}(?:{either})\b", re.IGNORECASE)
    for name, old, new in case.pairs():
        alone = new.strip(" .!\"'#").casefold() in {label.casefold() for label in names}
        if (found := announced.search(new)) and not announced.search(old):
            yield form("label_told", f"{name} announces a label: {found.group()!r}")
        elif alone:
            yield form("label_told", f"{name} is nothing but a label")


def no_new_address(case: Case) -> Iterator[Defect]:
    """No link that the original does not have."""
    known = {url for _, old, _ in case.pairs() for url in urls(old)}
    for name, _, new in case.pairs():
        for url in sorted(set(urls(new)) - known):
            yield form("address", f"{name} has a link of its own: {url!r}")


def no_hidden_signs(case: Case) -> Iterator[Defect]:
    """No control, direction or invisible sign that the original does not have."""
    known = {sign for _, old, _ in case.pairs() for sign in old}
    for name, _, new in case.pairs():
        hidden = sorted({sign for sign in new if _hidden(sign)} - known)
        if hidden:
            codes = ", ".join(f"U+{ord(sign):04X}" for sign in hidden)
            yield form("hidden_signs", f"{name} holds signs that nobody sees: {codes}")


def _hidden(sign: str) -> bool:
    """Tell whether a sign is not seen; joiners and selectors belong to emoji."""
    joins = sign in "\u200d\ufe0f\ufe0e\n\t"
    return unicodedata.category(sign) in {"Cc", "Cf", "Co", "Cs"} and not joins
