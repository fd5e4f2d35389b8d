"""How long a new text may be: what the composer is told and what its check allows."""

from dataclasses import dataclass
from math import ceil, floor

from coreeval.agents.thresholds import thresholds_of
from coreeval.agents.words import word_count
from coreeval.schema import Plan, Task


@dataclass(frozen=True)
class Length:
    """Words of a text, and the fewest and the most that another version may have."""

    original: int
    fewest: int
    most: int


def length_limits(task: Task, text: str, plan: Plan | None = None) -> Length:
    """Return the limits for a text (pilot §7), and for one that a plan brings up to date.

    News of one headline cannot fill a long premise without being padded: a sentence need not have
    more words than the longest of the plan's statements.
    """
    limits, count = thresholds_of(task), word_count(text)
    slack = max(limits.length_share * count, limits.length_words)
    fewest = max(1, ceil(count - slack))
    if plan is not None and task.text_kind == "sentence":
        fewest = min(fewest, max((word_count(one.text) for one in plan.statements), default=1))
    return Length(count, fewest, floor(count + slack))
