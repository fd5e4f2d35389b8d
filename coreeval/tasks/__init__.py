"""Benchmark tasks: the built-in ones as data, and the reader of the user's own task files.

The file format is described in docs/tasks.md.
"""

from coreeval.tasks.kinds import adapt_task, kind_of
from coreeval.tasks.label_finder import find_label, fold_name, make_label_finder
from coreeval.tasks.task_file import (
    ALL_TARGETS,
    BUILT_IN,
    GENERAL_TASKS,
    PAPER_TASKS,
    explain_task,
    hash_task,
    load_task,
    mentions_target,
)

__all__ = [
    "ALL_TARGETS",
    "BUILT_IN",
    "GENERAL_TASKS",
    "PAPER_TASKS",
    "adapt_task",
    "explain_task",
    "find_label",
    "fold_name",
    "hash_task",
    "kind_of",
    "load_task",
    "make_label_finder",
    "mentions_target",
]
