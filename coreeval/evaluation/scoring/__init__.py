"""Scores of recorded answers, from texts alone: performance, consistency, classification."""

from coreeval.evaluation.scoring.consistency import (
    CONSISTENCY,
    THRESHOLD,
    Answered,
    Consistency,
    at_least,
    cosine,
    cosine_similarity,
)
from coreeval.evaluation.scoring.items import PerItem
from coreeval.evaluation.scoring.performance import PERFORMANCE, Performance

__all__ = [
    "CONSISTENCY",
    "PERFORMANCE",
    "THRESHOLD",
    "Answered",
    "Consistency",
    "PerItem",
    "Performance",
    "at_least",
    "cosine",
    "cosine_similarity",
]
