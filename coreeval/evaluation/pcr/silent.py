"""The comparison of a target that said nothing to compare."""

from math import nan

from coreeval.evaluation.pcr.comparison import Comparison, Difference, SplitResult
from coreeval.evaluation.statistics import Estimate

UNDEFINED = Estimate(nan, nan, nan)


def silent_comparison(splits: tuple[str, str], reason: str) -> Comparison:
    """Return the comparison of a target that has no pair in one split or in both.

    Nothing in it is defined: what the other split scores says nothing by itself.
    """
    empty = SplitResult(
        n=0, scored=0, performance=nan, consistency=nan, pcr=UNDEFINED, decline=UNDEFINED
    )
    return Comparison(
        splits=dict.fromkeys(splits, empty),
        difference=Difference(
            pcr=UNDEFINED,
            p_value=nan,
            p_adjusted=nan,
            standard_error=nan,
            detectable=nan,
            discrepancy=UNDEFINED,
        ),
        verdict="insufficient_signal",
        reason=reason,
        notes=(),
    )
