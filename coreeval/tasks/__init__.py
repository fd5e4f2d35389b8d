"""What kinds of benchmark there are: five built-in tasks as data, and the reader of a user's own.

The file format is described in docs/tasks.md.
"""

from coreeval.tasks.labels import find_label, folded, label_finder
from coreeval.tasks.reader import ALL_TARGETS, BUILT_IN, explain_task, fingerprint, load_task
from coreeval.tasks.taskfile import mentions_target

__all__ = [
    "ALL_TARGETS",
    "BUILT_IN",
    "explain_task",
    "find_label",
    "fingerprint",
    "folded",
    "label_finder",
    "load_task",
    "mentions_target",
]
