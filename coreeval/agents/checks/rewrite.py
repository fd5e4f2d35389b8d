"""A rewording against its original: other words, the same facts (D^s, paper eq. 4)."""

import re
from collections.abc import Callable, Iterator

from coreeval.agents.checks.case import form
from coreeval.agents.checks.composition import missing_fields
from coreeval.agents.locks import keeps
from coreeval.agents.marks import marker_count, mentions
from coreeval.agents.names import calendar, unknown_names
from coreeval.agents.numbers import missing_numbers, numbers
from coreeval.agents.support import readings
from coreeval.agents.thresholds import thresholds_of
from coreeval.agents.words import containment, holds, mask, same_text
from coreeval.schema import Defect, Extraction, Rewrite, Sample, SemanticStatus, Task

_AROUND = ".,;:\"'()"


def check_rewrite(
    task: Task, sample: Sample, extraction: Extraction, rewrite: Rewrite
) -> tuple[SemanticStatus, list[Defect]]:
    """Return whether a text was reworded, and what keeps it from counting as that.

    A rewording with defects is `unchanged`: it has no place in the semantic arm.
    """
    if not rewrite.reworded:
        return "unchanged", []
    incomplete = list(missing_fields(task, rewrite.fields))
    if incomplete:
        return "unchanged", incomplete
    if all(same_text(sample.fields[name], rewrite.fields[name]) for name in task.fields):
        return "unchanged", []
    found = [
        defect
        for check in _CHECKS
        for name in task.fields
        for defect in check(task, extraction, name, sample.fields[name], rewrite.fields[name])
    ]
    return ("unchanged" if found else "reworded"), found


def _other_words(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    limits = thresholds_of(task)
    stays = [lock.span for lock in extraction.locked if lock.field == name]
    stays += [one.span for one in extraction.entities if one.field == name and one.kind == "named"]
    share = containment(mask(new, stays), mask(old, stays), fewest=limits.judged_trigrams)
    if share > limits.copied_rewrite:
        yield form("copied_original", f"{name} keeps {share:.0%} of the original's phrases")


def _locks_kept(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    for lock in extraction.locked:
        if lock.field == name and not keeps(new, lock):
            yield form("lock", f"{name} must keep {lock.span!r} word for word ({lock.why})")
    for marker in task.markers:
        if marker_count(old, marker) != marker_count(new, marker):
            yield form("markers", f"{name} must keep {marker} as often as it was")
    if sorted(mentions(old)) != sorted(mentions(new)):
        yield form("mentions", f"{name} has other @names than the original")


def _numbers_kept(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    for number in missing_numbers(old, numbers(new)):
        yield form("numbers", f"{name} lost {number.text!r}")
    for number in missing_numbers(new, numbers(old)):
        yield form("numbers", f"{name} gained {number.text!r}")
    for day in sorted(calendar(old) ^ calendar(new)):
        yield form("dates", f"{name} lost or gained {day.title()!r}")


def _names_kept(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    for entity in extraction.entities:
        spellings = (entity.span, entity.query_name, *entity.aliases)
        wanted = entity.kind == "named" and entity.field == name
        if wanted and not any(_still_named(spelling, new) for spelling in spellings):
            yield form("names", f"{name} lost {entity.span!r}")
    for unknown in unknown_names(new, like=old, known=_known(extraction, old)):
        yield form("names", f"{name} gained {unknown!r}")


def _still_named(spelling: str, text: str) -> bool:
    """Tell whether a text has a name: all of its proper words, in whatever order and grammar.

    `troops from South Korea` still names the `South Korean troops`.
    """
    proper = [word for word in spelling.split() if any(c.isupper() or c.isdigit() for c in word)]
    return holds(text, spelling) or (bool(proper) and all(_begins(word, text) for word in proper))


def _begins(word: str, text: str) -> bool:
    start = word.strip(_AROUND)
    start = start[: max(4, len(start) - 3)]
    return re.search(rf"(?<!\w){re.escape(start)}", text, re.IGNORECASE) is not None


def _known(extraction: Extraction, old: str) -> frozenset[str]:
    spellings = [
        name for entity in extraction.entities for name in (entity.query_name, *entity.aliases)
    ]
    return frozenset[str]().union(*map(readings, [old, *spellings]))


_CHECKS: tuple[Callable[[Task, Extraction, str, str, str], Iterator[Defect]], ...] = (
    _other_words,
    _locks_kept,
    _numbers_kept,
    _names_kept,
)
