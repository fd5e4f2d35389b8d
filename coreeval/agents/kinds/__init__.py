"""The properties of each kind of task that the roles and the checks need."""

from collections.abc import Mapping

from coreeval.agents.kinds.answer import ANSWER
from coreeval.agents.kinds.base import FactQuestion, ItemKind, WrittenItem
from coreeval.agents.kinds.choice import CHOICE
from coreeval.agents.kinds.labels import LABELS
from coreeval.agents.kinds.summary import SUMMARY_KIND
from coreeval.schema import Task, TaskKind

ITEM_KINDS: Mapping[TaskKind, ItemKind] = {
    "labels": LABELS,
    "choice": CHOICE,
    "answer": ANSWER,
    "summary": SUMMARY_KIND,
}


def item_kind(task: Task) -> ItemKind:
    """Return the rules by which items of a task are written and judged."""
    return ITEM_KINDS[task.kind]


__all__ = ["ITEM_KINDS", "FactQuestion", "ItemKind", "WrittenItem", "item_kind"]
