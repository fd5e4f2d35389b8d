"""Two controls of the model's own signal: an era of which little is recalled, scrambled dates."""

from collections.abc import Mapping, Sequence

from coreeval.evaluation.numleak.leak.found import Attribution, Placebo, Scramble, Triple
from coreeval.evaluation.numleak.leak.measuring import RECALL, TRUTH, Measuring
from coreeval.evaluation.numleak.leak.routes import apart
from coreeval.evaluation.numleak.leak.scores import Score
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.signature import span
from coreeval.evaluation.numleak.statistics.intervals import difference
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings


def placebo_of(until: Period, early: Attribution, later: Attribution) -> Placebo:
    """Put an early era beside the later one (research: numleak, appendix M)."""
    recall_r = difference(early.recall_r, later.recall_r)
    return Placebo(
        until=until,
        early=early,
        later=later,
        recall_r=recall_r,
        slope_on_truth=difference(early.slope_on_truth, later.slope_on_truth),
        slope_on_recall=difference(early.slope_on_recall, later.slope_on_recall),
        says=_placebo_says(early, recall_r),
    )


def _placebo_says(early: Attribution, recall_r: Metric) -> str:
    if not recall_r.ci_high < 0:
        return (
            f"Less recall of the early era is not shown (r {span(early.recall_r)} there): it is no "
            "placebo for this model."
        )
    known = f"Of the early era the model recalls less (r {span(early.recall_r)})"
    if apart(early.signal_r):
        return (
            f"{known}, yet its score follows the truth there too (r {span(early.signal_r)}): "
            "something besides the recalled value leads from a date to a score."
        )
    return (
        f"{known}, and its score is not shown to follow the truth there (r "
        f"{span(early.signal_r)}), as would be so of a score made from what is recalled."
    )


def scramble_of(
    scores: Sequence[Score], values: Mapping[Period, float], settings: Settings
) -> Scramble | None:
    """Measure whether scores follow the date that is named or the figures that are stated.

    Both are held against the scores of the scrambled questions at once; None without any.
    """
    real = [Triple(at, value, values[at], values[at])
            for at, value, _, shown in scores if value is not None and shown == at]  # fmt: skip
    moved = [Triple(at, value, values[shown], values[at])
             for at, value, _, shown in scores
             if value is not None and shown is not None and shown != at]  # fmt: skip
    if not any(score.shown for score in scores):
        return None
    own, other = Measuring(real, settings), Measuring(moved, settings)
    found = {
        "real_r": own.r(lambda each: each.signal_r),
        "real_slope": own.slope(lambda each: each.slope_on_truth, over=TRUTH),
        "shown_r": other.r(lambda each: each.signal_recall_r),
        "told_r": other.r(lambda each: each.signal_r),
        "shown_slope": other.slope(lambda each: each.recall_beside, over=RECALL),
        "told_slope": other.slope(lambda each: each.truth_beside, over=TRUTH),
        "difference": other.difference(
            lambda each: each.recall_beside, lambda each: each.truth_beside
        ),
    }
    return Scramble(**found, says=_scramble_says(found))


def _scramble_says(found: Mapping[str, Metric]) -> str:
    real, apart_by = found["real_r"], found["difference"]
    if not apart(real):
        return (
            f"With figures stated, the score is not shown to follow the truth (r {span(real)}): "
            "scrambling has nothing to tell."
        )
    if not apart(apart_by):
        return (
            f"Whether the score follows the named date (r {span(found['shown_r'])}) or the stated "
            f"figures (r {span(found['told_r'])}) is open."
        )
    if (apart_by.estimate > 0) == (real.estimate > 0):
        return (
            "The score goes with the date that is named while the stated figures stay (r "
            f"{span(found['shown_r'])}): the name of the date alone brings the value in."
        )
    return (
        f"The score stays with the stated figures under another date (r {span(found['told_r'])}): "
        "the name of the date does not decide it."
    )
