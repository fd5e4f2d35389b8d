"""Checks of an extraction and a rewrite against the original text.

`clean_extraction` keeps the spans that exist in the text and adds the locks that code can find.
`check_rewrite` requires other words and the same facts (D^s, CoreEval paper, eq. 4).
"""

import re
from collections.abc import Callable, Collection, Iterator

from coreeval.agents.checks.composition import check_fields
from coreeval.agents.defects import form_defect
from coreeval.agents.edits import find_fixed_locks, find_kept_spans, keeps_lock, may_lock
from coreeval.agents.kinds import item_kind
from coreeval.agents.safety import EMPTY_TAKEDOWN, Takedown
from coreeval.agents.text.numbers import find_missing_numbers, find_numbers
from coreeval.agents.text.support import expand_words, find_calendar_words, find_unknown_names
from coreeval.agents.text.words import (
    MOST_SPANS,
    count_marker,
    find_closed_quotations,
    find_content_words,
    find_mentions,
    find_span,
    has_span,
    is_same_text,
    mask_spans,
    measure_containment,
    split_words,
)
from coreeval.agents.thresholds import thresholds_of
from coreeval.schema import (
    Defect,
    Entity,
    Extraction,
    FieldTriple,
    Lock,
    Rewrite,
    Sample,
    SemanticStatus,
    Task,
)


def clean_extraction(task: Task, sample: Sample, extraction: Extraction) -> Extraction:
    """Return an extraction whose spans are quoted from the text, with the locks that code adds.

    A span that does not occur in its field is dropped. Flags are always kept: a warning with a
    wrong quotation is still a warning.
    """
    spans = _SpanFinder(sample, is_one=item_kind(task).is_one)
    given = (lock for lock in extraction.locked if _may_bind(task, extraction, lock))
    locks = [lock for lock in map(spans.lock, given) if lock]
    own = find_fixed_locks(task, sample)
    locked = {(lock.field, lock.span): lock for lock in (*own, *locks)}.values()
    return extraction.model_copy(
        update={
            "entities": tuple(filter(None, map(spans.entity, extraction.entities))),
            "triples": tuple(filter(None, map(spans.triple, extraction.triples))),
            "locked": tuple(
                lock for lock in locked if not _is_inside_another(lock, locked, sample)
            ),
        }
    )


def _may_bind(task: Task, extraction: Extraction, lock: Lock) -> bool:
    """Return whether a new text must keep a span that the extractor locked.

    An insult is never kept for its label. The label of a pair depends on the comparison of its
    texts: the words that somebody said belong to the event and change with it.
    """
    if len(task.fields) > 1:
        return may_lock(task, lock)
    hostile = [one.span for one in extraction.sensitive if one.flag in _HOSTILE_FLAGS]
    return lock.why != "label_carrier" or not any(has_span(lock.span, span) for span in hostile)


def _is_inside_another(lock: Lock, locked: Collection[Lock], sample: Sample) -> bool:
    """Return whether a span occurs only inside longer locked spans, which already cover it."""
    longer = [
        other.span
        for other in locked
        if other.field == lock.field
        and len(other.span) > len(lock.span)
        and has_span(other.span, lock.span)
    ]
    return not has_span(mask_spans(sample.fields[lock.field], longer), lock.span)


class _SpanFinder:
    """Finder of spans in the fields of one sample."""

    def __init__(self, sample: Sample, *, is_one: bool) -> None:
        self._fields, self._is_one = sample.fields, is_one

    def find(self, field: str, span: str) -> str | None:
        return find_span(self._fields.get(field, ""), span)

    def entity(self, entity: Entity) -> Entity | None:
        span = self.find(entity.field, entity.span)
        return entity.model_copy(update={"span": span}) if span else None

    def lock(self, lock: Lock) -> Lock | None:
        span = self.find(lock.field, lock.span)
        return lock.model_copy(update={"span": span}) if span else None

    def triple(self, triple: FieldTriple) -> FieldTriple | None:
        """Return a triple in the text's spelling; a tail may summarise a longer passage."""
        fields = [triple.field, *(self._fields if self._is_one else ())]
        head, tail = (
            next(filter(None, (self.find(name, end) for name in fields)), None)
            for end in (triple.head, triple.tail)
        )
        if head is None:
            return None
        tail = tail or triple.tail
        return triple.model_copy(update={"head": head, "tail": tail})


_HOSTILE_FLAGS = frozenset({"abuse", "protected_group"})
_EDGE_SIGNS = ".,;:\"'()"


def check_rewrite(
    task: Task,
    sample: Sample,
    extraction: Extraction,
    rewrite: Rewrite,
    takedown: Takedown = EMPTY_TAKEDOWN,
) -> tuple[SemanticStatus, list[Defect]]:
    """Return whether a text was reworded, and the defects that prevent this.

    A rewording with defects is `unchanged` and excluded from the semantic arm.

    Args:
        task: The task of the sample.
        sample: The sample with the original text.
        extraction: The entities and locks of the original.
        rewrite: The rewriter's answer.
        takedown: Persons whom the rewording may name only if the original does.
    """
    if not rewrite.reworded:
        return "unchanged", []
    incomplete = list(check_fields(task, rewrite.fields))
    if incomplete:
        return "unchanged", incomplete
    names = item_kind(task).reworded(task)
    if all(is_same_text(sample.fields[name], rewrite.fields[name]) for name in names):
        return "unchanged", []
    found = [
        defect
        for check in _REWRITE_CHECKS
        for name in names
        for defect in check(task, extraction, name, sample.fields[name], rewrite.fields[name])
    ]
    for listed in takedown.find_new_names(sample.fields.values(), rewrite.fields.values()):
        found.append(form_defect("takedown", f"the text names {listed!r}, who may not be named"))
    return ("unchanged" if found else "reworded"), found


def _check_words(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    limits = thresholds_of(task)
    stays = find_kept_spans(extraction, name, old)
    share = measure_containment(
        mask_spans(new, stays), mask_spans(old, stays), fewest=limits.judged_trigrams
    )
    if share > limits.copied_rewrite:
        yield form_defect("copied_original", f"{name} keeps {share:.0%} of the original's phrases")


def _check_locks(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    for lock in extraction.locked:
        if lock.field == name and not keeps_lock(new, lock):
            yield form_defect("lock", f"{name} must keep {lock.span!r} word for word ({lock.why})")
    for marker in task.markers:
        if count_marker(old, marker) != count_marker(new, marker):
            yield form_defect("markers", f"{name} must keep {marker} as often as it was")
    if sorted(find_mentions(old)) != sorted(find_mentions(new)):
        yield form_defect("mentions", f"{name} has other @names than the original")


def _check_quotations(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    quotations = dict.fromkeys(find_closed_quotations(old))
    if len(quotations) > MOST_SPANS:
        told = f"{name} has {len(quotations)} quotations; it may have {MOST_SPANS}"
        yield form_defect("quotation", told)
        return
    for quoted in quotations:
        if not has_span(new, quoted):
            yield form_defect("quotation", f"{name} must keep {quoted!r} word for word")


def _check_numbers(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    language = task.language
    for number in find_missing_numbers(old, find_numbers(new, language), language):
        yield form_defect("numbers", f"{name} lost {number.text!r}")
    for number in find_missing_numbers(new, find_numbers(old, language), language):
        yield form_defect("numbers", f"{name} gained {number.text!r}")
    for day in sorted(find_calendar_words(old, language) ^ find_calendar_words(new, language)):
        yield form_defect("dates", f"{name} lost or gained {day.title()!r}")


def _check_names(
    task: Task, extraction: Extraction, name: str, old: str, new: str
) -> Iterator[Defect]:
    for entity in extraction.entities:
        spellings = (entity.span, entity.query_name, *entity.aliases)
        wanted = entity.kind == "named" and entity.field == name and not _is_description(entity)
        if wanted and not any(_is_still_named(spelling, new) for spelling in spellings):
            yield form_defect("names", f"{name} lost {entity.span!r}")
    known = _known_words(extraction, old, task.language)
    for unknown in find_unknown_names(new, like=old, known=known, language=task.language):
        yield form_defect("names", f"{name} gained {unknown!r}")


def _is_description(entity: Entity) -> bool:
    """Return whether a span is a description, such as `the nation 's highest court`.

    It has no capital, more than one word, unlike a nickname, and most of its words are in no name.
    """
    words = set(find_content_words(entity.span))
    named = set(split_words(" ".join([entity.query_name, *entity.aliases])))
    return entity.span.islower() and len(words) > 1 and len(words - named) > len(words) / 2


def _is_still_named(spelling: str, text: str) -> bool:
    """Return whether a text has all proper words of a name, in any order and inflection.

    `troops from South Korea` still names the `South Korean troops`.
    """
    proper = [word for word in spelling.split() if any(c.isupper() or c.isdigit() for c in word)]
    return has_span(text, spelling) or (
        bool(proper) and all(_has_start(word, text) for word in proper)
    )


def _has_start(word: str, text: str) -> bool:
    start = word.strip(_EDGE_SIGNS)
    start = start[: max(4, len(start) - 3)]
    return re.search(rf"(?<!\w){re.escape(start)}", text, re.IGNORECASE) is not None


def _known_words(extraction: Extraction, old: str, language: str) -> frozenset[str]:
    spellings = [
        name for entity in extraction.entities for name in (entity.query_name, *entity.aliases)
    ]
    return frozenset[str]().union(*(expand_words(text, language) for text in [old, *spellings]))


_REWRITE_CHECKS: tuple[Callable[[Task, Extraction, str, str, str], Iterator[Defect]], ...] = (
    _check_words,
    _check_locks,
    _check_quotations,
    _check_numbers,
    _check_names,
)
