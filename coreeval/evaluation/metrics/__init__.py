"""Scores of recorded answers, computed from texts: performance, consistency, classification."""

from coreeval.evaluation.metrics.consistency import (
    CONSISTENCY,
    THRESHOLD,
    Consistency,
    TwinAnswers,
    at_least,
    cosine,
    cosine_similarity,
)
from coreeval.evaluation.metrics.performance import PERFORMANCE, Performance, PerItem

__all__ = [
    "CONSISTENCY",
    "PERFORMANCE",
    "THRESHOLD",
    "Consistency",
    "PerItem",
    "Performance",
    "TwinAnswers",
    "at_least",
    "cosine",
    "cosine_similarity",
]
