"""The properties of a kind of task that the roles and the checks need."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from coreeval.agents.roles import Fields
from coreeval.prompts import PromptName
from coreeval.schema import Defect, Evidence, Sample, Task
from coreeval.tasks.kinds.base import CONTEXT, QUESTION

FieldNames = Callable[[Task], Sequence[str]]
"""A function that returns some of the fields of a sample's task."""


@dataclass(frozen=True, kw_only=True)
class FactQuestion:
    """A request to the fact judge: texts by field, and the evidence that must support them."""

    fields: Fields
    evidence: Sequence[Evidence]


@dataclass(frozen=True, kw_only=True)
class WrittenItem:
    """A new item, with its original and the news that it uses."""

    task: Task
    sample: Sample
    fields: Fields
    evidence: Sequence[Evidence] = ()


JUDGED_ANSWER: Final = "answer"
"""The name under which the fact judge gets the gold of a question."""
ItemCheck = Callable[[WrittenItem], Iterator[Defect]]
"""A function that yields the defects that only items of this kind can have."""


def all_fields(task: Task) -> Sequence[str]:
    """Return every field of a task."""
    return task.fields


@dataclass(frozen=True, kw_only=True)
class ItemKind:
    """The rules by which items of one kind are written and judged."""

    reworded: FieldNames
    """The fields that the rewriter rewords; the others stay."""
    written: FieldNames
    """The fields that the composer writes."""
    compared: FieldNames
    """The fields whose form must resemble the original's."""
    finish: Callable[[Task, Sample, Fields, Sequence[Evidence]], Fields]
    """Returns all fields of a text, given those that were written and the evidence."""
    judged: FieldNames
    """The names of the texts that the fact judge gets."""
    claimless: FieldNames = lambda task: ()
    """Those of these texts that may make no claims, so that their statements need not be judged."""
    ask_facts: Callable[[WrittenItem], FactQuestion]
    """Returns the request to the fact judge about a text."""
    is_gold: Callable[[Task, Sample, Mapping[str, str], str], bool]
    """Returns whether a judge's answer is the gold of a text, which is the original or another text
    with the original's label."""
    describe_gold: Callable[[Sample, Mapping[str, str]], str]
    """Returns the gold of a text in words, for feedback."""
    needs_news: Callable[[Task], bool] = lambda task: False
    """Returns whether the judge needs the news to find the gold of an updated item (closed
    book)."""
    passage: FieldNames = lambda task: ()
    """The fields without which the gold must not be found."""
    needs_many_statements: Callable[[Task], bool] = lambda task: CONTEXT in task.fields
    """Returns whether a text is long, so that it needs many statements of the news."""
    composer_prompt: PromptName = "composer_item"
    writer_prompt: Callable[[Task], PromptName] = lambda task: "replacer_composer_item"
    """Returns the prompt of the replacer that also writes the text."""
    plain_text: bool = False
    """Whether an item consists only of text with a label: then rules can play the roles, several
    originals are labelled in one call, and texts of any length are reworded."""
    is_one: bool = False
    """Whether the fields are parts of one item, so that a fact that begins in one may end in
    another, such as a question's subject and its answer."""
    asks_when: bool = False
    """Whether the month of a report may be stated as the time of its event: the answer to a
    question may depend on it."""
    judges_options: bool = False
    """Whether a judge checks options one by one."""
    keeps_lines: bool = False
    """Whether a text may have several lines."""
    lockable: FieldNames = all_fields
    """The fields in which spans may be locked, and whose @names, tags and emoji stay."""
    keeps_form: bool = False
    """Whether these fields have a form that a new text keeps: words such as "which of the
    following" may be locked and copied."""
    announced: FieldNames = lambda task: ()
    """Returns the words that a text must not announce as its label."""
    publishes_news: bool = False
    """Whether an item contains reports word for word, as far as their licences allow."""
    has_material: Callable[[Task, Sample, Sequence[Evidence]], bool] = (
        lambda task, sample, reports: True
    )
    """Returns whether the reports of one event can make an item in the place of a sample."""
    explain_no_material: Callable[[Task, Sample, Sequence[Evidence]], str] = (
        lambda task, sample, evidence: ""
    )
    """Returns why none of the events on offer can make an item; empty if one may."""
    checks: tuple[ItemCheck, ...] = ()


def keep_unwritten(
    task: Task, sample: Sample, written: Fields, evidence: Sequence[Evidence]
) -> Fields:
    """Return all fields of a text: the written ones, and otherwise the original's."""
    texts = sample.fields | {name: text for name, text in written.items() if name in task.fields}
    return {name: texts[name] for name in task.fields}


def find_claimless(task: Task) -> Sequence[str]:
    """Return the question if it is about a context: then it must not presuppose anything."""
    return [QUESTION] if CONTEXT in task.fields else []
