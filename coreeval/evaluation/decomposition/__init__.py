"""Decomposition of a score drop into memory, rewriting and label noise, and its samples."""

from coreeval.evaluation.decomposition.item_evidence import (
    FALSE_SHARE,
    ItemEvidence,
    ItemFindings,
    SampleFlags,
    find_items,
)
from coreeval.evaluation.decomposition.judgement import (
    ArmTexts,
    compare_arm_texts,
    decompose,
    judge_losses,
)
from coreeval.evaluation.decomposition.losses import (
    CONTRASTS,
    MIN_SAMPLES,
    TERM_DEFINITIONS,
    ArmStep,
    Decomposition,
    DropParts,
    LossCheck,
    Losses,
    MemoryKind,
    Term,
    TermName,
    Verdict,
    measure_losses,
)

__all__ = [
    "CONTRASTS",
    "FALSE_SHARE",
    "MIN_SAMPLES",
    "TERM_DEFINITIONS",
    "ArmStep",
    "ArmTexts",
    "Decomposition",
    "DropParts",
    "ItemEvidence",
    "ItemFindings",
    "LossCheck",
    "Losses",
    "MemoryKind",
    "SampleFlags",
    "Term",
    "TermName",
    "Verdict",
    "compare_arm_texts",
    "decompose",
    "find_items",
    "judge_losses",
    "measure_losses",
]
