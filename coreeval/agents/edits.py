"""The changes of a plan to a text, the spans that must stay, and the length limits.

`substitute` makes d^u = f(d, T-hat): code inserts the planned spans, without a model (CoreEval
paper, §3.3). `list_replaced_facts` returns the new facts of a text with the evidence of each.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, floor

from coreeval.agents.kinds import item_kind
from coreeval.agents.text.words import (
    MOST_SPANS,
    build_span_pattern,
    count_words,
    find_closed_quotations,
    find_emoji,
    find_hashtags,
    find_marker,
    find_mentions,
    find_target,
    find_urls,
    has_span,
    is_same_text,
    mask_spans,
    remove_marks,
    split_words,
)
from coreeval.agents.thresholds import thresholds_of
from coreeval.schema import (
    Evidence,
    Extraction,
    Lock,
    LockReason,
    Plan,
    ReplacedFact,
    Replacement,
    Sample,
    Task,
)
from coreeval.tasks.kinds.base import count_units
from coreeval.tools.gdelt.words import count_shared_keys

_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|\\n)\W*$")


def substitute(sample: Sample, plan: Plan) -> dict[str, str]:
    """Return a sample's fields with old heads and tails replaced and insertions appended.

    The longest old span is replaced first, and new text is not searched again. An insertion is the
    text of its supporting statement, at the end of its field.
    """
    return {
        name: _append(_replace_spans(text, list_changed_spans(plan, name)), _insertions(plan, name))
        for name, text in sample.fields.items()
    }


def list_changed_spans(plan: Plan, field: str) -> list[tuple[str, str]]:
    """Return (old, new) pairs of the heads and tails that the plan changes in a field."""
    found = (
        pair
        for change in plan.replacements
        if change.field == field
        for pair in _changed_ends(change)
    )
    return [(old, new) for old, new in dict(found).items() if not is_same_text(old, new)]


def _changed_ends(change: Replacement) -> list[tuple[str, str]]:
    if change.before is None or change.mode == "insert":
        return []
    before, after = change.before, change.after
    return [(before.head, after.head), (before.tail, after.tail)]


def _insertions(plan: Plan, field: str) -> list[str]:
    indexes = dict.fromkeys(
        change.statement_index
        for change in plan.replacements
        if change.field == field and change.mode == "insert"
    )
    return [plan.statements[index].text for index in indexes if index < len(plan.statements)]


def _append(text: str, additions: Iterable[str]) -> str:
    return " ".join([text, *additions]) if text else " ".join(additions)


def _replace_spans(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Replace all pairs in one pass, so that a new span is never taken for an old one."""
    by_length = sorted(pairs, key=lambda pair: len(pair[0]), reverse=True)
    patterns = [(build_span_pattern(old), old, new) for old, new in by_length]
    usable = [(pattern, old, new) for pattern, old, new in patterns if pattern is not None]
    if not usable:
        return text
    either = re.compile("|".join(f"({pattern.pattern})" for pattern, _, _ in usable), re.I)

    def put(found: re.Match[str]) -> str:
        _, old, new = usable[(found.lastindex or 1) - 1]
        return _match_case(found, planned=old, new=new)

    return either.sub(put, text)


def _match_case(found: re.Match[str], *, planned: str, new: str) -> str:
    """Return the new span with the case pattern that the text adds to the planned span."""
    actual = found.group()
    if actual.isupper() and not planned.isupper():
        return new.upper()
    if actual.islower() and not planned.islower():
        return new.lower()
    starts = actual[0].isupper() and (
        planned[:1].islower() or _SENTENCE_START.search(found.string[: found.start()])
    )
    return new[:1].upper() + new[1:] if starts else new


def list_replaced_facts(sample_id: str, plan: Plan, used: Sequence[int]) -> list[ReplacedFact]:
    """Return one row per replacement that the composer reports as used, or all if it names none."""
    numbers = [n for n in used if n < len(plan.replacements)] or range(len(plan.replacements))
    return [_fact_row(sample_id, plan, number) for number in numbers]


def _fact_row(sample_id: str, plan: Plan, number: int) -> ReplacedFact:
    replacement = plan.replacements[number]
    statement = plan.statements[replacement.statement_index]
    return ReplacedFact(
        sample_id=sample_id,
        field=replacement.field,
        before=replacement.before,
        after=replacement.after,
        evidence_id=statement.evidence_ids[0],
        quote=statement.quote,
    )


EVENT_LOCKS = frozenset({"quotation", "label_carrier", "anaphor", "pun"})
"""The reasons that do not lock a span of a pair of texts, since it belongs to their event."""


def find_fixed_locks(task: Task, sample: Sample) -> list[Lock]:
    """Return the spans that code locks in all versions of a sample.

    For items whose form is kept, these are only the task's markers: an address or an @name in a
    question belongs to its subject.
    """
    names = item_kind(task).lockable(task)
    found = [
        lock
        for name, text in sample.fields.items()
        if name in names
        for lock in _find_field_locks(task, name, text)
    ]
    return list(dict.fromkeys(lock for lock in found if may_lock(task, lock)))


def may_lock(task: Task, lock: Lock) -> bool:
    """Return whether a span with this reason may be locked in a task's texts."""
    kind = item_kind(task)
    if lock.field not in kind.lockable(task):
        return False
    if kind.keeps_form:
        own = lock.span.casefold() in {marker.casefold() for marker in task.markers}
        return own or lock.why == "label_carrier"
    return len(task.fields) == 1 or lock.why not in EVENT_LOCKS


def _find_field_locks(task: Task, field: str, text: str) -> Iterator[Lock]:
    spans: list[tuple[LockReason, Iterable[str]]] = [
        ("marker", (span for marker in task.markers for span in find_marker(text, marker))),
        ("marker", find_urls(text)),
        ("mention", find_mentions(text)),
        ("emoji", find_emoji(text)),
        ("target", find_target(text, task.target_terms)),
        ("quotation", find_closed_quotations(text)),
    ]
    for why, found in spans:
        yield from (Lock(span=span, field=field, why=why) for span in _first_spans(found))


FEWEST_FREE_WORDS = 3
"""The fewest words outside locks and names for which a rewording is requested (research:
reading_trial_2)."""


MOST_REWORDED_WORDS = 600
"""The most words of a text that is reworded (own choice: the cost of rewording a longer document
exceeds what it shows about memory)."""


def explain_no_rewording(task: Task, sample: Sample, extraction: Extraction) -> str:
    """Return why a sample's text is not reworded; empty if it is reworded."""
    if reason := explain_length(task, sample):
        return reason
    own = {name: sample.fields[name] for name in item_kind(task).reworded(task)}
    if count_free_words(own, extraction) < FEWEST_FREE_WORDS:
        return "nearly every word is a name, a quotation or locked"
    return ""


def explain_length(task: Task, sample: Sample) -> str:
    """Return why a sample's text is too long to be reworded; empty if it is short enough."""
    kind = item_kind(task)
    if kind.plain_text:
        return ""
    words = sum(count_units(sample.fields[name]) for name in kind.reworded(task))
    if words <= MOST_REWORDED_WORDS:
        return ""
    return f"it has {words:,} words, and at most {MOST_REWORDED_WORDS} are reworded"


def count_free_words(fields: Mapping[str, str], extraction: Extraction) -> int:
    """Return the number of words that a rewording may change.

    Locked spans, names, quotations, @names, hashtags, emoji and links stay.
    """
    return sum(
        len(split_words(remove_marks(mask_spans(text, find_kept_spans(extraction, name, text)))))
        for name, text in fields.items()
    )


def find_kept_spans(extraction: Extraction, field: str, text: str) -> list[str]:
    """Return the spans of a field that rewordings keep: locks, names, quotations, tags.

    They include only the first `MOST_SPANS` quotations and tags.
    """
    locked = [lock.span for lock in extraction.locked if lock.field == field]
    names = [
        entity.span
        for entity in extraction.entities
        if entity.field == field and entity.kind == "named"
    ]
    own = (find_closed_quotations(text), find_hashtags(text))
    return [*locked, *names, *(span for found in own for span in _first_spans(found))]


def _first_spans(found: Iterable[str]) -> Iterator[str]:
    """Return an iterator over the first `MOST_SPANS` different spans."""
    return islice(dict.fromkeys(found), MOST_SPANS)


def keeps_lock(text: str, lock: Lock) -> bool:
    """Return whether a text contains a locked span word for word.

    The first letter of ordinary words may change case, because sentences may begin elsewhere.
    """
    if has_span(text, lock.span, any_case=lock.why == "target"):
        return True
    return lock.why in _ORDINARY_LOCKS and has_span(
        text, _swap_first_case(lock.span), any_case=False
    )


_ORDINARY_LOCKS = frozenset({"label_carrier", "anaphor", "pun"})


def _swap_first_case(span: str) -> str:
    """Return a span with the case of its first letter swapped; acronyms and `I` are unchanged."""
    return span if span[1:2].isupper() or span[:2] == "I " else span[0].swapcase() + span[1:]


@dataclass(frozen=True)
class SharedWords:
    """The number of content words of a pair's second field, and of those also in the first."""

    both: int
    second: int

    @property
    def share(self) -> float:
        """The share of the second field's words that are in the first field."""
        return self.both / self.second


def count_shared_words(task: Task, fields: Mapping[str, str]) -> SharedWords | None:
    """Count the words that the fields of a pair share; None for other texts."""
    if task.kind != "labels" or len(task.fields) != 2:
        return None
    first, second = (fields.get(name, "") for name in task.fields)
    both, asked = count_shared_keys(first, second)
    return SharedWords(both, asked) if asked else None


@dataclass(frozen=True)
class LengthLimits:
    """The number of words in a text, and the bounds for another version of it."""

    original: int
    fewest: int
    most: int


def length_limits(
    task: Task, text: str, plan: Plan | None = None, evidence: Iterable[Evidence] = ()
) -> LengthLimits:
    """Return the length limits of a text (pilot §7), or of a text that a plan updates.

    News from one headline cannot fill a long premise without padding: then a sentence need not have
    more words than the plan's longest statement. Passages of articles can, if they have as many
    words as the text.
    """
    limits, count = thresholds_of(task), count_words(text)
    slack = max(limits.length_share * count, limits.length_words)
    fewest = max(1, ceil(count - slack))
    passages = (count_words(one.snippet) for one in evidence if one.depth == "article")
    if plan is not None and task.text_kind == "sentence" and sum(passages) < count:
        fewest = min(fewest, max((count_words(one.text) for one in plan.statements), default=1))
    return LengthLimits(count, fewest, floor(count + slack))
