"""What a score drop is made of: memory, rewriting, label noise; and which samples it comes from."""

from coreeval.evaluation.decomposition.arm_texts import ArmTexts, compare_arm_texts
from coreeval.evaluation.decomposition.items import (
    FALSE_SHARE,
    Flagged,
    ItemEvidence,
    Items,
    find_items,
)
from coreeval.evaluation.decomposition.judging import decompose, judge_losses
from coreeval.evaluation.decomposition.losses import Losses, measure_losses
from coreeval.evaluation.decomposition.values import (
    CONTRASTS,
    DEFINITIONS,
    MIN_SAMPLES,
    Check,
    Decomposition,
    Kind,
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
    "ArmTexts",
    "Check",
    "Decomposition",
    "Flagged",
    "ItemEvidence",
    "Items",
    "Kind",
    "Losses",
    "Parts",
    "Step",
    "Term",
    "TermName",
    "Verdict",
    "compare_arm_texts",
    "decompose",
    "find_items",
    "judge_losses",
    "measure_losses",
]
