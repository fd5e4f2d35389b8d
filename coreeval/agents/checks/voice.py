"""Checks of a composed text's voice: what gives a text away as made from a headline (pilot §9)."""

import re
from collections.abc import Iterator

from coreeval.agents import voice
from coreeval.agents.checks.case import Case, form
from coreeval.agents.marks import quotations
from coreeval.agents.words import content_words, mask, words
from coreeval.schema import Defect


def headline_not_quoted(case: Case) -> Iterator[Defect]:
    """No long run of words in the order of a headline; names, figures, quotations aside."""
    for name, _, new in case.pairs():
        kept = [*case.locks(name), *quotations(new)]
        names = set(words(" ".join(re.findall(r"\b[A-Z][\w'-]*", new))))
        for item in case.brief.evidence:
            run = voice.longest_shared_run(mask(new, kept), item.title)
            fixed = [word for word in run if word in names or word[0].isdigit()]
            if len(run) - len(fixed) > case.limits.headline_run:
                said = " ".join(run)
                yield form("headline_run", f"{name} repeats a headline: {said!r}; say it otherwise")


def figures_few(case: Case) -> Iterator[Defect]:
    """A personal text without figures gains one at most."""
    if case.task.text_kind != "tweet":
        return
    for name, old, new in case.pairs():
        gained = voice.figures(new)
        if not voice.figures(old) and len(gained) > case.limits.figures:
            told = ", ".join(gained)
            yield form("figures", f"{name} has {told}; its author would not write so many figures")


def no_machine_marks(case: Case) -> Iterator[Defect]:
    """No dash, semicolon or typographic sign of a kind that the original does not have."""
    for name, old, new in case.pairs():
        gained = sorted(set(voice.machine_marks(new)) - set(voice.machine_marks(old)))
        if gained:
            yield form("marks", f"{name} has {' '.join(gained)}, which its author does not use")


def habits_kept(case: Case) -> Iterator[Defect]:
    """An author who leaves out capitals or the final stop does so again."""
    if case.task.text_kind != "tweet":
        return
    for name, old, new in case.pairs():
        if voice.lower_starts(old) and not voice.lower_starts(new):
            yield form("habits", f"{name} starts with a capital; its author does not")
        if voice.ends_open(old) and voice.ends_in_stop(new):
            yield form("habits", f"{name} ends in a full stop; its author leaves it out")


def line_breaks_kept(case: Case) -> Iterator[Defect]:
    """Line breaks are written as the original writes them, and about as many."""
    for name, old, new in case.pairs():
        wanted, found = voice.line_breaks(old), voice.line_breaks(new)
        if abs(wanted - found) > case.limits.line_breaks or (not wanted and found):
            yield form("line_breaks", f"{name} has {found} written line breaks; {wanted} before")


def no_headline_style(case: Case) -> Iterator[Defect]:
    """Not a string of nouns where the original speaks in sentences."""
    for name, old, new in case.pairs():
        share, before = voice.function_word_share(new), voice.function_word_share(old)
        low = share < case.limits.function_words and share < before - case.limits.function_fall
        if low and len(content_words(new)) >= case.limits.style_words:
            yield form("headline_style", f"{name} reads like a headline; write it as one speaks")
