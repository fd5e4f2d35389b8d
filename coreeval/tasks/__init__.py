"""What kinds of benchmark there are: five built-in tasks as data, and the reader of a user's own.

The file format is described in docs/tasks.md.
"""

from coreeval.tasks.task_file import (
    ALL_TARGETS,
    BUILT_IN,
    explain_task,
    find_label,
    fold_name,
    hash_task,
    load_task,
    make_label_finder,
    mentions_target,
)

__all__ = [
    "ALL_TARGETS",
    "BUILT_IN",
    "explain_task",
    "find_label",
    "fold_name",
    "hash_task",
    "load_task",
    "make_label_finder",
    "mentions_target",
]
