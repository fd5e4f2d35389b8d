"""What the further ways of asking for values show, each beside the plain question."""

from collections.abc import Sequence
from dataclasses import dataclass

from coreeval.evaluation.numleak.points import Continued, Point
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.statistics.answers import grouped
from coreeval.evaluation.numleak.statistics.beside import Beside, beside
from coreeval.evaluation.numleak.statistics.continuation import Continuation, continuation
from coreeval.evaluation.numleak.statistics.contradiction import Contradiction, contradiction
from coreeval.evaluation.numleak.statistics.measured import Settings
from coreeval.evaluation.numleak.statistics.phrasings import Phrasings, phrasings


@dataclass(frozen=True, kw_only=True)
class Variants:
    """One model on one series; None where a probe was not asked."""

    description: Beside | None
    step_by_step: Beside | None
    phrasing: Phrasings | None
    contradiction: Contradiction | None
    continuation: Continuation | None


def variants_of(
    points: Sequence[Point],
    rows: Sequence[Continued],
    *,
    definition: SeriesDefinition,
    settings: Settings,
) -> Variants:
    """Return what each of the further probes that were asked shows."""
    asked = grouped(points, lambda point: point.variant)
    plain, tolerance = asked.get("value", []), definition.tolerance

    def compared(own: Sequence[Point] | None) -> Beside | None:
        return beside(plain, own, tolerance=tolerance, settings=settings) if own else None

    worded, told = asked.get("phrasing"), asked.get("contradiction")
    return Variants(
        description=compared(asked.get("description")),
        step_by_step=compared(asked.get("step_by_step")),
        phrasing=phrasings(plain, worded, tolerance=tolerance, settings=settings)
        if worded
        else None,
        contradiction=contradiction(
            plain, told, tolerances=definition.tolerances, settings=settings
        )
        if told
        else None,
        continuation=continuation(rows, tolerance=tolerance, decimals=definition.decimals)
        if rows
        else None,
    )
