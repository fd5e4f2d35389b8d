"""What a score drop is made of: memory, rewriting, label noise; and which samples it comes from."""

from coreeval.evaluation.decomposition.decomposing import decompose
from coreeval.evaluation.decomposition.items import (
    FALSE_SHARE,
    Flagged,
    ItemEvidence,
    Items,
    find_items,
)
from coreeval.evaluation.decomposition.values import (
    CONTRASTS,
    DEFINITIONS,
    MIN_SAMPLES,
    Decomposition,
    Parts,
    Step,
    Term,
    TermName,
    Verdict,
)

__all__ = [
    "CONTRASTS",
    "DEFINITIONS",
    "FALSE_SHARE",
    "MIN_SAMPLES",
    "Decomposition",
    "Flagged",
    "ItemEvidence",
    "Items",
    "Parts",
    "Step",
    "Term",
    "TermName",
    "Verdict",
    "decompose",
    "find_items",
]
