"""A wrong value is stated before the question: does the answer stand, or give way?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import answers_of, numbered
from coreeval.evaluation.numleak.statistics.intervals import share
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings, Signature
from coreeval.evaluation.numleak.statistics.metrics import ROUNDING, signature

Outcome = Literal["holds", "corrects", "yields", "mixed", "refuses", "unread"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
"""Near its own plain answer or the truth; the same, and the stated value is called wrong in words;
the stated value is repeated; another value, or both; declined; not read or cut off."""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """How many answers ended in each way, and what is left of recall."""

    n: int
    outcomes: Mapping[Outcome, int]
    """They add up to n."""
    shares: Mapping[Outcome, Metric]
    """Of all questions, with Wilson's interval."""
    kept: Metric
    """Share that holds or corrects."""
    yields_far: Metric
    """Share that yields where the stated value has the other sign."""
    yields_same: Metric
    """Share that yields where it has the sign of the truth."""
    plain: Signature
    """The plain answers on the dates that were asked."""
    contradicted: Signature
    """These answers, whatever their outcome."""


def contradiction(
    plain: Sequence[Point],
    points: Sequence[Point],
    *,
    tolerances: Sequence[float],
    settings: Settings,
) -> Contradiction:
    """Sort the answers to questions that state a wrong value.

    Args:
        plain: The plain questions.
        points: Those that state one.
        tolerances: Of the series: within the headline one an answer repeats the stated value,
            within the widest one it is near the plain answer or the truth.
        settings: How answers are resampled.
    """
    answers = answers_of(plain)
    own = dict(zip(answers.periods, answers.means(answers.estimate).tolist(), strict=True))
    found = [outcome_of(point, own.get(point.period), tolerances) for point in points]
    _, question = numbered([point.period for point in points])
    counts: Counter[Outcome] = Counter(found)

    def part(*which: Outcome) -> Metric:
        return share([each in which for each in found], question)

    dates = {point.period for point in points}
    asked = [point for point in plain if point.period in dates]
    return Contradiction(
        n=len(points),
        outcomes={each: counts[each] for each in OUTCOMES},
        shares={each: part(each) for each in OUTCOMES},
        kept=part("holds", "corrects"),
        yields_far=_yielding(points, found, turned=True),
        yields_same=_yielding(points, found, turned=False),
        plain=signature(asked, tolerance=tolerances[0], settings=settings),
        contradicted=signature(points, tolerance=tolerances[0], settings=settings),
    )


def outcome_of(point: Point, plain: float | None, tolerances: Sequence[float]) -> Outcome:
    """Return how one answer ended; `plain` is what the model says when nothing is stated."""
    if point.status != "parsed" or point.estimate is None or point.stated is None:
        return _silent(point)
    near, wide = tolerances[0] + ROUNDING, max(tolerances) + ROUNDING
    gives_way = abs(point.estimate - point.stated) <= near
    own = [each for each in (plain, point.truth) if each is not None]
    stands = any(abs(point.estimate - each) <= wide for each in own)
    if gives_way and not stands:
        return "mixed" if point.disputed else "yields"
    if stands and not gives_way:
        return "corrects" if point.disputed else "mixed" if point.echoed else "holds"
    return "mixed"


def _silent(point: Point) -> Outcome:
    if point.status == "refused":
        return "refuses"
    return "mixed" if point.echoed else "unread"


def _yielding(points: Sequence[Point], found: Sequence[Outcome], *, turned: bool) -> Metric:
    """Return the share that yields, of the values stated with the other sign, or with the same."""
    those = [
        (point.period, outcome == "yields")
        for point, outcome in zip(points, found, strict=True)
        if point.truth and point.stated and (point.truth * point.stated < 0) == turned
    ]
    _, question = numbered([period for period, _ in those])
    return share(np.array([hit for _, hit in those], np.bool_), question)
