"""Which locked spans a text about other news must keep, and whether it does."""

from coreeval.agents.words import holds
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


def keeps(text: str, lock: Lock) -> bool:
    """Tell whether a text has a locked span word for word.

    Ordinary words may begin with a capital or without, since a sentence may now begin elsewhere.
    """
    if holds(text, lock.span, any_case=lock.why == "target"):
        return True
    return lock.why in _ORDINARY and holds(text, _other_start(lock.span), any_case=False)


_ORDINARY = frozenset({"label_carrier", "anaphor", "pun"})


def _other_start(span: str) -> str:
    """Return a span with its first letter in the other case; acronyms and `I` stay."""
    return span if span[1:2].isupper() or span[:2] == "I " else span[0].swapcase() + span[1:]
