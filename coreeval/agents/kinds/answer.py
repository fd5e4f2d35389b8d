"""Questions with answers: question, context and accepted answers are written anew."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from coreeval.agents.defects import form_defect, label_defect
from coreeval.agents.kinds.base import (
    JUDGED_ANSWER,
    FactQuestion,
    ItemKind,
    WrittenItem,
    keep_unwritten,
)
from coreeval.agents.text.numbers import find_missing_numbers, find_numbers
from coreeval.agents.text.words import count_words, has_span, is_same_text, split_words
from coreeval.schema import Defect, Sample, Task
from coreeval.tasks.kinds.answer import split_answers

CONTEXT: Final = "context"
_SAME: Final = 0.6
"""The token F1 from which a judge's answer counts as the gold: it may add a title or a first name
(own choice)."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_LONGER: Final = 2.0
"""How many times as long as the original's the gold answer may be (own choice)."""
_FREE_WORDS: Final = 4
"""Number of words that it may always have more than the original's (own choice)."""


def _texts(task: Task) -> Sequence[str]:
    return task.shown_fields


def _written(task: Task) -> Sequence[str]:
    return [name for name in task.fields if name not in task.carried_fields]


def _ask_facts(item: WrittenItem) -> FactQuestion:
    """Ask about context and question, and about the gold as the answer."""
    texts = {name: item.fields[name] for name in item.task.shown_fields}
    texts[JUDGED_ANSWER] = split_answers(item.fields)[0]
    return FactQuestion(fields=texts, evidence=item.evidence)


def is_accepted(task: Task, sample: Sample, fields: Mapping[str, str], said: str) -> bool:
    """Return whether a judge's answer is one of the accepted ones, in other words if need be."""
    return any(_is_same_answer(gold, said, task.language) for gold in split_answers(fields))


def _is_same_answer(gold: str, said: str, language: str) -> bool:
    wanted, given = find_numbers(gold, language), find_numbers(said, language)
    if wanted and find_missing_numbers(gold, given, language):
        return False
    one, other = (
        [word for word in split_words(text) if word not in _ARTICLES] for text in (gold, said)
    )
    shared = sum(min(one.count(word), other.count(word)) for word in set(one))
    return is_same_text(gold, said) or 2 * shared >= _SAME * max(1, len(one) + len(other))


def check_answer(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the gold is the old one, is not where it must be, or is told."""
    gold, old = split_answers(item.fields)[0], split_answers(item.sample.fields)[0]
    kind = item.sample.label_text
    if kind != "yes_no" and is_same_text(gold, old):
        yield label_defect("old_answer", f"the answer is still {old!r}", replan=True)
    if kind in ("text", "date") and CONTEXT in item.fields:
        stood = has_span(item.sample.fields[CONTEXT], old)
        if stood and not has_span(item.fields[CONTEXT], gold):
            yield label_defect(
                "answer_missing", f"the context must contain the answer {gold!r} word for word"
            )
    question = item.fields["question"]
    if has_span(question, gold) and not has_span(item.sample.fields["question"], old):
        yield label_defect("answer_told", f"the question tells its answer {gold!r}")


def check_answer_form(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the gold is of another type or far longer than the original's."""
    gold, old = split_answers(item.fields)[0], split_answers(item.sample.fields)[0]
    kind, language = item.sample.label_text, item.task.language
    if kind == "number" and not find_numbers(gold, language):
        yield form_defect("answer_type", f"the answer {gold!r} must be a number, as {old!r} is")
    if kind == "yes_no" and gold.casefold() not in ("yes", "no"):
        yield form_defect("answer_type", f"the answer {gold!r} must be yes or no")
    if count_words(gold) > max(_LONGER * count_words(old), _FREE_WORDS + count_words(old)):
        yield form_defect("answer_length", f"the answer {gold!r} is much longer than {old!r}")


ANSWER = ItemKind(
    reworded=_texts,
    written=_written,
    compared=_texts,
    finish=keep_unwritten,
    judged=lambda task: [*task.shown_fields, JUDGED_ANSWER],
    ask_facts=_ask_facts,
    is_gold=is_accepted,
    describe_gold=lambda sample, fields: repr(split_answers(fields)[0]),
    needs_news=lambda task: CONTEXT not in task.fields,
    passage=lambda task: [name for name in task.fields if name == CONTEXT],
    keeps_lines=True,
    checks=(check_answer, check_answer_form),
)
