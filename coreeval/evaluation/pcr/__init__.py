"""CAP: is the score memory? Performance over consistency, compared between two splits."""

from coreeval.evaluation.pcr.comparison import Comparison, Reference, SplitResult, compare
from coreeval.evaluation.pcr.differences import Adjusted, Difference
from coreeval.evaluation.pcr.form import Form
from coreeval.evaluation.pcr.pairs import Pair, Pairs, read_pairs
from coreeval.evaluation.pcr.ratio import ALPHA, SCALES, Scale, performance_consistency_ratio
from coreeval.evaluation.pcr.study import Settings, study
from coreeval.evaluation.pcr.verdicts import MARGINS, MIN_ITEMS, Verdict
from coreeval.evaluation.statistics import INTERVALS, LEVEL, Estimate, Interval

__all__ = [
    "ALPHA",
    "INTERVALS",
    "LEVEL",
    "MARGINS",
    "MIN_ITEMS",
    "SCALES",
    "Adjusted",
    "Comparison",
    "Difference",
    "Estimate",
    "Form",
    "Interval",
    "Pair",
    "Pairs",
    "Reference",
    "Scale",
    "Settings",
    "SplitResult",
    "Verdict",
    "compare",
    "performance_consistency_ratio",
    "read_pairs",
    "study",
]
