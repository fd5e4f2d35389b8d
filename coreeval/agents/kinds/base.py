"""What the roles and the checks must know of a kind of task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from coreeval.agents.roles import Fields
from coreeval.prompts import PromptName
from coreeval.schema import Defect, Evidence, Sample, Task
from coreeval.tasks.kinds.base import CONTEXT, QUESTION

FieldNames = Callable[[Task], Sequence[str]]
"""Returns some of the fields of a sample's task."""


@dataclass(frozen=True, kw_only=True)
class FactQuestion:
    """What the fact judge is asked: texts by field, and what must carry them."""

    fields: Fields
    evidence: Sequence[Evidence]


@dataclass(frozen=True, kw_only=True)
class WrittenItem:
    """An item that was written anew, with its original and the news that it rests on."""

    task: Task
    sample: Sample
    fields: Fields
    evidence: Sequence[Evidence] = ()


JUDGED_ANSWER: Final = "answer"
"""The name under which the fact judge gets the gold of a question."""
ItemCheck = Callable[[WrittenItem], Iterator[Defect]]
"""Yields the defects that only items of this kind can have."""


def all_fields(task: Task) -> Sequence[str]:
    """Return every field of a task."""
    return task.fields


@dataclass(frozen=True, kw_only=True)
class ItemKind:
    """How items of one kind are written and judged."""

    reworded: FieldNames
    """The fields that the rewriter says in other words; the others stay."""
    written: FieldNames
    """The fields that the composer writes."""
    compared: FieldNames
    """The fields whose form must resemble the original's."""
    finish: Callable[[Task, Sample, Fields, Sequence[Evidence]], Fields]
    """Returns all fields of a text, given those that were written and the evidence."""
    judged: FieldNames
    """The names of the texts that the fact judge gets."""
    claimless: FieldNames = lambda task: ()
    """Those of these texts that may claim nothing, so that no statement of them need be judged."""
    ask_facts: Callable[[WrittenItem], FactQuestion]
    """Returns what the fact judge is asked about a text."""
    is_gold: Callable[[Task, Sample, Mapping[str, str], str], bool]
    """Returns whether a judge's answer is the gold of a text: of the original, or of another text
    with the original's label."""
    describe_gold: Callable[[Sample, Mapping[str, str]], str]
    """Returns the gold of a text in words, for feedback."""
    needs_news: Callable[[Task], bool] = lambda task: False
    """Returns whether the judge must be given the news to find the gold of an updated item: closed
    book."""
    passage: FieldNames = lambda task: ()
    """The fields without which the gold must not be found."""
    composer_prompt: PromptName = "composer_item"
    writer_prompt: Callable[[Task], PromptName] = lambda task: "replacer_composer_item"
    """Returns the prompt of the replacer that also writes the text."""
    plain_text: bool = False
    """Whether an item is nothing but text with a label: then rules can play the roles, several
    originals are labelled in one call, and a text of any length is reworded."""
    is_one: bool = False
    """Whether the fields are parts of one item, so that a fact that begins in one may end in
    another: what a question asks about, and its answer."""
    asks_when: bool = False
    """Whether the month in which news appeared may be told as the time of what it reports: the
    answer to a question may depend on it."""
    judges_options: bool = False
    """Whether a judge looks at options one by one."""
    keeps_lines: bool = False
    """Whether a text may have several lines."""
    lockable: FieldNames = all_fields
    """The fields in which spans may be locked, and whose @names, tags and emoji stay."""
    keeps_form: bool = False
    """Whether these fields have a form that a new text keeps: words such as "which of the
    following" may be locked, and copied."""
    announced: FieldNames = lambda task: ()
    """Returns what no text may announce as its label."""
    publishes_news: bool = False
    """Whether reports stand in an item word for word, so far as their terms allow."""
    explain_no_material: Callable[[Task, Sample, Sequence[Evidence]], str] = (
        lambda task, sample, evidence: ""
    )
    """Returns why no item can be made of the news on offer; empty if one may be."""
    checks: tuple[ItemCheck, ...] = ()


def keep_unwritten(
    task: Task, sample: Sample, written: Fields, evidence: Sequence[Evidence]
) -> Fields:
    """Return all fields of a text: those written, and the original's where none was."""
    texts = sample.fields | {name: text for name, text in written.items() if name in task.fields}
    return {name: texts[name] for name in task.fields}


def find_claimless(task: Task) -> Sequence[str]:
    """Return the question if it is about a context: it may take nothing for granted."""
    return [QUESTION] if CONTEXT in task.fields else []
