"""From a signal, a recall and a truth for each date to what ties them, and the verdict."""

from collections.abc import Sequence
from typing import Final

from coreeval.evaluation.numleak.leak.found import OWN, Attribution, Triple
from coreeval.evaluation.numleak.leak.measuring import RECALL, TRUTH, Measuring
from coreeval.evaluation.numleak.leak.routes import Ties, apart, route_of
from coreeval.evaluation.numleak.statistics.measured import Settings

DATE_ALONE: Final = (
    "The model was given a date and nothing else: what its score knows of the outcome is memory in "
    "any case, of the value or of what was written about that date."
)


def attribute(
    signal: str, triples: Sequence[Triple], settings: Settings, notes: Sequence[str] = ()
) -> Attribution:
    """Attribute a signal: slopes, correlations, shares and their intervals over dates.

    Args:
        signal: Its name.
        triples: One for each date.
        settings: Draws of the bootstrap and the seed; permutations are always 10,000.
        notes: What is known of the dates beforehand.
    """
    found = Measuring(triples, settings)
    ties = ties_of(found)
    route, reasons = route_of(ties)
    if signal == OWN and apart(ties.signal_r):
        reasons = (*reasons, DATE_ALONE)
    dealt_truth, dealt_recall = found.dealt()
    return Attribution(
        signal=signal,
        dates=len(triples),
        slope_on_truth=found.slope(lambda each: each.slope_on_truth, over=TRUTH),
        slope_on_recall=found.slope(lambda each: each.slope_on_recall, over=RECALL),
        dealt_truth=dealt_truth,
        dealt_recall=dealt_recall,
        **ties._asdict(),
        residual_r=found.r(lambda each: each.residual_r),
        leak_share=found.share(lambda each: each.leak_share, if_tied=ties.signal_r),
        ceiling=found.share(lambda each: each.ceiling),
        route=route,
        reasons=reasons,
        notes=tuple(notes),
        points=tuple(triples),
    )


def ties_of(found: Measuring) -> Ties:
    """Return what the verdict rests on."""
    signal_r = found.r(lambda each: each.signal_r)
    return Ties(
        recall_r=found.r(lambda each: each.recall_r),
        signal_r=signal_r,
        signal_recall_r=found.r(lambda each: each.signal_recall_r),
        follows_errors=found.r(lambda each: each.follows_errors),
        truth_beyond=found.r(lambda each: each.truth_beyond),
        through=found.share(lambda each: each.through, if_tied=signal_r),
    )
