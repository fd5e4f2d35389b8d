"""Which locked spans a text about other news must keep."""

from coreeval.schema import Extraction, Lock, Task

_OF_THE_EVENT = frozenset({"quotation", "label_carrier", "anaphor", "pun"})


def firm_locks(task: Task, extraction: Extraction) -> list[Lock]:
    """Return the locks that bind the replacer and the composer.

    The label of a pair lies in how its texts compare. What somebody said and how it was put belongs
    to the event there, and goes with it: only the rewriter, who tells the same event, keeps it.
    """
    if len(task.fields) == 1:
        return list(extraction.locked)
    return [lock for lock in extraction.locked if lock.why not in _OF_THE_EVENT]
