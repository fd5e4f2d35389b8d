"""CAP: tests whether a score is memory, by performance over consistency in two splits."""

from coreeval.evaluation.pcr.comparison import Comparison, ReferenceResult, SplitResult, compare
from coreeval.evaluation.pcr.differences import ExcessDifference, SplitDifference
from coreeval.evaluation.pcr.pairs import Pair, Pairs, read_pairs
from coreeval.evaluation.pcr.ratio import ALPHA, SCALES, Scale, performance_consistency_ratio
from coreeval.evaluation.pcr.study import PcrSettings, study
from coreeval.evaluation.pcr.verdicts import MARGINS, MIN_ITEMS, PcrOptions, Verdict
from coreeval.evaluation.statistics import INTERVALS, LEVEL, Estimate, Interval

__all__ = [
    "ALPHA",
    "INTERVALS",
    "LEVEL",
    "MARGINS",
    "MIN_ITEMS",
    "SCALES",
    "Comparison",
    "Estimate",
    "ExcessDifference",
    "Interval",
    "Pair",
    "Pairs",
    "PcrOptions",
    "PcrSettings",
    "ReferenceResult",
    "Scale",
    "SplitDifference",
    "SplitResult",
    "Verdict",
    "compare",
    "performance_consistency_ratio",
    "read_pairs",
    "study",
]
