"""Texts with a label: the label stays, and every field is new."""

from collections.abc import Mapping, Sequence

from coreeval.agents.kinds.base import FactQuestion, ItemKind, WrittenItem, all_fields
from coreeval.prompts import PromptName
from coreeval.schema import Sample, Task
from coreeval.tasks import find_label


def factual_fields(task: Task) -> Sequence[str]:
    """Return the fields whose facts need evidence."""
    return task.factual_fields or task.fields


def _ask_facts(item: WrittenItem) -> FactQuestion:
    texts = {name: item.fields[name] for name in factual_fields(item.task)}
    return FactQuestion(fields=texts, evidence=item.evidence)


def is_label_of(task: Task, sample: Sample, fields: Mapping[str, str], said: str) -> bool:
    """Return whether an answer is the label of a sample."""
    given = find_label(task, said)
    return given is not None and given.id == sample.label


def _choose_writer_prompt(task: Task) -> PromptName:
    tweet = task.text_kind == "tweet"
    return "replacer_composer_tweet" if tweet else "replacer_composer_sentence"


LABELS = ItemKind(
    needs_many_statements=lambda task: bool(task.factual_fields),
    composer_prompt="composer",
    writer_prompt=_choose_writer_prompt,
    plain_text=True,
    reworded=all_fields,
    written=all_fields,
    compared=all_fields,
    finish=lambda task, sample, written, evidence: written,
    judged=factual_fields,
    ask_facts=_ask_facts,
    is_gold=is_label_of,
    describe_gold=lambda sample, fields: sample.label_text,
    announced=lambda task: [label.name for label in task.labels],
)
