"""The comparison of a target that said nothing to compare."""

from math import nan

from coreeval.evaluation.pcr.comparison import Comparison, SplitResult, Test
from coreeval.evaluation.pcr.differences import Difference, Points
from coreeval.evaluation.statistics import Estimate

UNDEFINED = Estimate(nan, nan, nan)


def silent_comparison(splits: tuple[str, str], reason: str) -> Comparison:
    """Return the comparison of a target that has no pair in one split or in both.

    Nothing in it is defined: what the other split scores says nothing by itself.
    """
    empty = SplitResult(
        n=0,
        clusters=0,
        scored=0,
        unanswered=0,
        statuses=({}, {}),
        performance=nan,
        consistency=nan,
        pcr=UNDEFINED,
        decline=UNDEFINED,
    )
    points = Points(
        estimate=UNDEFINED, p_value=nan, p_adjusted=nan, standard_error=nan, detectable=nan
    )
    return Comparison(
        splits=dict.fromkeys(splits, empty),
        difference=Difference(
            pcr=UNDEFINED,
            p_value=nan,
            p_adjusted=nan,
            standard_error=nan,
            detectable=nan,
            points=points,
            joint_p=nan,
            discrepancy=UNDEFINED,
        ),
        test=Test(basis="none", p_value=nan, p_adjusted=nan),
        doses=(),
        verdict="insufficient_signal",
        reason=reason,
        notes=(),
    )
