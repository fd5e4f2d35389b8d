"""A composed text and all data that its checks compare it with, computed once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from coreeval.agents.kinds import item_kind
from coreeval.agents.roles import CompositionRequest, Fields
from coreeval.agents.safety import EMPTY_TAKEDOWN, Takedown
from coreeval.agents.text.numbers import Number, find_numbers, find_source_numbers
from coreeval.agents.text.support import (
    evidence_text,
    expand_words,
    find_unknown_names,
    is_shouted,
    is_title_case,
    name_month,
)
from coreeval.agents.text.vocabulary import vocabulary_of
from coreeval.agents.text.words import find_content_words, has_span, mask_spans
from coreeval.agents.thresholds import Thresholds, thresholds_of
from coreeval.schema import Task, Window


@dataclass(frozen=True, kw_only=True)
class Restraint:
    """The restrictions on what a text may say about real people."""

    neutral_only: bool = False
    """True if the sample is sensitive: the text says nothing negative, even about people it names.
    """
    takedown: Takedown = EMPTY_TAKEDOWN


UNRESTRAINED = Restraint()


@dataclass(frozen=True, kw_only=True)
class CheckContext:
    """One composed text and the context that the checks need."""

    task: Task
    request: CompositionRequest
    fields: Fields
    window: Window
    restraint: Restraint = UNRESTRAINED

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name, original text and new text of each field."""
        for name in item_kind(self.task).compared(self.task):
            yield name, self.request.sample.fields.get(name, ""), self.fields[name]

    def form_pairs(self) -> Iterator[tuple[str, str, str]]:
        """Yield the same as `pairs` for the fields whose marks must stay."""
        lockable = item_kind(self.task).lockable(self.task)
        return (pair for pair in self.pairs() if pair[0] in lockable)

    def written_pairs(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name, original text and new text of each written field."""
        for name in item_kind(self.task).written(self.task):
            yield name, self.request.sample.fields.get(name, ""), self.fields[name]

    def locked_spans(self, field: str) -> list[str]:
        """Return the locked spans of a field."""
        return [lock.span for lock in self.request.extraction.locked if lock.field == field]

    @property
    def factual_fields(self) -> Sequence[str]:
        """Return the fields whose facts need evidence; a hypothesis may state unsupported facts."""
        return self.task.factual_fields or self.task.fields

    @cached_property
    def limits(self) -> Thresholds:
        """Return the thresholds for this kind of text."""
        return thresholds_of(self.task)

    @cached_property
    def news_texts(self) -> list[str]:
        """Return the text of each piece of evidence, with translations of its quotations.

        If a question may say when something happened, the months of publication follow.
        """
        translated = [one.translation for one in self.request.plan.statements if one.translation]
        months = list[str]()
        if item_kind(self.task).asks_when:
            months = [name_month(item) for item in self.request.evidence]
        return [*(evidence_text(item) for item in self.request.evidence), *translated, *months]

    @cached_property
    def news_numbers(self) -> list[Number]:
        """Return the numbers that the evidence states."""
        return find_source_numbers(self.news_texts, self.task.language)

    @cached_property
    def known_words(self) -> frozenset[str]:
        """Return every word of the original and of the evidence."""
        people = [entity.name for item in self.request.evidence for entity in item.entities]
        texts = [*self.request.sample.fields.values(), *self.news_texts, *people]
        language = self.task.language
        return frozenset[str]().union(*(expand_words(text, language) for text in texts))

    @property
    def replaces_news(self) -> bool:
        """Return whether the plan removes the old event from sentences of news completely."""
        return self.request.plan.replaces_all and self.task.text_kind == "sentence"

    def remaining_text(self, field: str) -> str:
        """Return the part of a field that the plan keeps, which includes its locks."""
        text = self.request.sample.fields.get(field, "")
        return " ".join([mask_spans(text, self.removed_spans(field)), *self.locked_spans(field)])

    def remaining_numbers(self, field: str) -> Sequence[Number]:
        """Return the numbers that the plan keeps in a field."""
        return find_numbers(self.remaining_text(field), self.task.language)

    def removed_spans(self, field: str) -> list[str]:
        """Return the spans of a field that the plan replaces or deletes."""
        if self.replaces_news:
            return [self.request.sample.fields.get(field, "")]
        changes = [change for change in self.request.plan.replacements if change.field == field]
        old = [
            (span, new)
            for change in changes
            if change.before is not None and change.mode == "replace"
            for span, new in (
                (change.before.head, change.after.head),
                (change.before.tail, change.after.tail),
            )
        ]
        deleted = [gone.span for gone in self.request.plan.delete if gone.field == field]
        return [span for span, new in old if not has_span(new, span)] + deleted

    def forbidden_spans(self, field: str) -> list[str]:
        """Return the spans that must not remain in a field: deleted spans and replaced heads.

        Heads that the new facts also name may remain, and so may heads without a content word. If
        the old event is removed completely, none of its names may remain unless the news has it.
        """
        plan, language = self.request.plan, self.task.language
        if self.replaces_news:
            return self._old_names(field)
        new = [f"{c.after.head} {c.after.tail}" for c in plan.replacements] + [
            statement.text for statement in plan.statements
        ]
        heads = [
            change.before.head
            for change in plan.replacements
            if change.field == field and change.before is not None and change.mode == "replace"
        ]
        replaced = [
            head
            for head in heads
            if set(find_content_words(head, language)) - vocabulary_of(language).personal_words
            and not any(has_span(text, head) for text in new)
        ]
        return replaced + [gone.span for gone in plan.delete if gone.field == field]

    def _old_names(self, field: str) -> list[str]:
        text = self.request.sample.fields.get(field, "")
        if is_title_case(text) or is_shouted(text):
            return []
        language = self.task.language
        news = frozenset[str]().union(*(expand_words(one, language) for one in self.news_texts))
        found = find_unknown_names(text, like=text, known=news, language=language)
        return list(dict.fromkeys(found))
