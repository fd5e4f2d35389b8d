"""The results of an attribution: does a signal follow the truth through recall?

LeakShare alone cannot show this. If recall is right, it explains a signal that honestly follows the
truth as well as one made from recall: both have a share near 1. They differ on the dates that the
model recalls wrongly. A signal made from recall has the same mistakes; an honest one does not. So
the signal is compared with recall and truth at once, and the verdict is based on the share of its
slope on true values that recall mediates. The better the recall, the fewer the mistakes, and the
more dates are needed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, NamedTuple, get_args

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.signature import MIN_DATES, span
from coreeval.evaluation.numleak.statistics.measurements import Metric
from coreeval.tools.formatting import format_estimate

Route = Literal["through_recall", "not_through_recall", "undecided"]
ROUTES: Final[tuple[Route, ...]] = get_args(Route)
"""The verdicts on how a signal is related to the truth.

Recall mediates most of the relation, or less than half of it, or the answers are not conclusive.
"""
OWN_SIGNAL: Final = "sentiment"
"""The name of the signal that the model gives when asked to score a date."""


class DateTriple(NamedTuple):
    """The signal's value, the recalled value and the published value of one date."""

    period: Period
    signal: float
    recall: float
    """Recalled value in the unit of the series: the mean of the answers for the date."""
    truth: float


class SlopePermutation(NamedTuple):
    """A slope of the signal, compared with its slopes when permuted over the dates."""

    low: float
    high: float
    """Upper end of the range that contains 95 % of permutations; `low` is the other end."""
    p_value: float
    """Two-sided p-value (Phipson and Smyth 2010)."""
    permutations: int


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """The relation of one signal to the truth (research: numleak, equations 1 to 4)."""

    signal: str
    dates: int
    """The number of dates with all three numbers."""
    slope_on_truth: Metric
    """Slope of the signal on the published values: the paper's beta_T."""
    slope_on_recall: Metric
    """Slope of the signal on the recalled values: the paper's beta."""
    dealt_truth: SlopePermutation
    dealt_recall: SlopePermutation
    recall_r: Metric
    """Correlation of recall and truth: the paper's rho_recall."""
    signal_r: Metric
    """Correlation of signal and truth."""
    signal_recall_r: Metric
    """Correlation of signal and recall."""
    residual_r: Metric
    """Correlation of the truth with the signal's residual on recall: the paper's rho(u, r).

    nan if there is no residual.
    """
    leak_share: Metric
    """Equation 4; nan if it is not shown that the signal follows the truth."""
    ceiling: Metric
    """Equation 3, as a share of the signal's relation to the truth."""
    follows_errors: Metric
    """Partial correlation of signal and recall given the truth.

    Shows whether the signal shares the mistakes of recall; nan if there are none.
    """
    truth_beyond: Metric
    """Partial correlation of signal and truth given recall.

    Shows what the signal knows beyond recall; nan if recall explains one of them fully.
    """
    through: Metric
    """Share of the slope on true values mediated by recall; nan if `leak_share` is nan."""
    route: Route
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    """Notes on dates left out and on the limits of the numbers, one sentence each."""
    points: tuple[DateTriple, ...]


@dataclass(frozen=True, kw_only=True)
class Placebo:
    """The model's own signal on early dates, with little recall, and on later dates."""

    until: Period
    """The last date of the early era."""
    early: Attribution
    later: Attribution
    recall_r: Metric
    """Difference of the recall correlations: early minus later, like the two below."""
    slope_on_truth: Metric
    slope_on_recall: Metric
    says: str


@dataclass(frozen=True, kw_only=True)
class Scramble:
    """Scores for the same figures, stated under their own date and under another (appendix Q).

    Separates the effect of the named date on the score from that of the stated figures.
    """

    real_r: Metric
    """Correlation of the score with the published value if the figures are under their own date."""
    real_slope: Metric
    shown_r: Metric
    """Correlation of the score with the named date's value if the figures are another date's."""
    told_r: Metric
    """Correlation of the score with the value of the date that follows the figures."""
    shown_slope: Metric
    """Slope on the named date's value, in a regression on both values."""
    told_slope: Metric
    difference: Metric
    """The slope on the named date's value minus that on the other date's."""
    says: str


@dataclass(frozen=True, kw_only=True)
class Leak:
    """All results on the leakage of one model and one series."""

    asked: int
    """The number of questions for a score."""
    parsed: int
    signals: tuple[Attribution, ...]
    """Attributions of the model's own signal, if it was asked for, then of the user's signals."""
    placebo: Placebo | None
    scramble: Scramble | None
    notes: tuple[str, ...]
    """Notes on numbers that could not be measured, with reasons, one sentence each."""


HALF: Final = 0.5
"""The share above which recall mediates most of the relation."""
LARGE: Final = 0.5
"""A correlation that counts as large (Cohen 1988, section 3.2).

A signal that follows neither truth nor recall cannot leak if correlations of this size are
excluded.
"""
SMALL: Final = 0.1
"""A small correlation, by the same source.

A signal without truth must follow recall by more than this; otherwise one in twenty signals would
do so by chance.
"""
NEAR_ONE: Final = 0.95
"""The recall correlation from which recall is named as the reason for an undecided verdict.

A tenth of the variance is then error.
"""
RouteReasons = tuple[str, ...]


class MediationEvidence(NamedTuple):
    """The numbers on which a verdict is based, as in `Attribution`."""

    recall_r: Metric
    signal_r: Metric
    signal_recall_r: Metric
    follows_errors: Metric
    truth_beyond: Metric
    through: Metric


def find_route(ties: MediationEvidence) -> tuple[Route, RouteReasons]:
    """Return the verdict and its reasons."""
    return next((route, why) for route, rule in ROUTE_RULES if (why := rule(ties)))


def _few(ties: MediationEvidence) -> RouteReasons:
    dates = ties.signal_r.dates
    if dates < MIN_DATES:
        return (
            f"Only {dates} dates have a signal, a recalled value and a true value, but at least "
            f"{MIN_DATES} are needed.",
        )
    if not isfinite(ties.signal_r.estimate):
        return (
            "The signal, the recalled values or the true values never vary, so no "
            "association can be measured.",
        )
    return ()


def _most(ties: MediationEvidence) -> RouteReasons:
    if not ties.through.ci_low > HALF:
        return ()
    return (
        _ties(ties),
        f"At least {min(1.0, ties.through.ci_low):.0%} of the association between the signal and "
        "the true values runs through what the model recalls: when its recall is wrong, the "
        "signal is wrong in the same direction "
        f"(partial r {span(ties.follows_errors)}).",
        "A common source of errors, such as the same news stories about a date, would have the "
        "same effect.",
    )


def _least(ties: MediationEvidence) -> RouteReasons:
    if not ties.through.ci_high < HALF:
        return ()
    return (
        _ties(ties),
        f"At most {max(0.0, ties.through.ci_high):.0%} of the association between the signal and "
        "the true values runs through recall: given what the model recalls, the signal still "
        f"follows the true values (partial r {span(ties.truth_beyond)}).",
    )


def _mistakes(ties: MediationEvidence) -> RouteReasons:
    """Return the reason why a signal leaks errors: it follows recall but not the truth."""
    errors = ties.follows_errors
    follows = is_nonzero(ties.signal_recall_r) and max(errors.ci_low, -errors.ci_high) > SMALL
    if is_nonzero(ties.signal_r) or not follows:
        return ()
    return (
        f"There is no evidence that the signal follows the true values (r {span(ties.signal_r)}), "
        f"but it follows what the model recalls (r {span(ties.signal_recall_r)}), whether right "
        "or wrong.",
    )


def _neither(ties: MediationEvidence) -> RouteReasons:
    if is_nonzero(ties.signal_r) or is_nonzero(ties.signal_recall_r):
        return ()
    if not max(abs(ties.signal_recall_r.ci_low), abs(ties.signal_recall_r.ci_high)) < LARGE:
        return ()
    return (
        f"The signal follows neither the true values (r {span(ties.signal_r)}) nor what the model "
        f"recalls (r {span(ties.signal_recall_r)}): there is nothing for recall to explain.",
        f"The intervals rule out a strong association (r of {LARGE}), but not a weak one.",
    )


def _open(ties: MediationEvidence) -> RouteReasons:
    if not is_nonzero(ties.signal_r):
        return (
            f"It is unclear whether the signal follows the true values (r {span(ties.signal_r)}) "
            f"or what the model recalls (r {span(ties.signal_recall_r)}): more dates are needed.",
        )
    return (_ties(ties), "It is unclear how much of the association between the signal and the "
                         f"true values runs through recall: {_share(ties.through)}.",
            _mistaken(ties))  # fmt: skip


RouteRule = Callable[[MediationEvidence], RouteReasons]
ROUTE_RULES: Final[tuple[tuple[Route, RouteRule], ...]] = (
    ("undecided", _few),
    ("through_recall", _most),
    ("not_through_recall", _least),
    ("through_recall", _mistakes),
    ("not_through_recall", _neither),
    ("undecided", _open),
)
"""The rules in order; the first one that holds gives the verdict."""


def is_nonzero(r: Metric) -> bool:
    """Return whether a correlation's interval excludes 0."""
    return bool(r.ci_low > 0 or r.ci_high < 0)


def _mistaken(ties: MediationEvidence) -> str:
    """Say why recall and truth cannot be distinguished.

    If recall has no mistakes, neither varies once the other is given, so no partial correlation is
    defined.
    """
    r = f"r {span(ties.recall_r)}"
    if not (isfinite(ties.follows_errors.estimate) or isfinite(ties.truth_beyond.estimate)):
        return (
            f"Recalled and true values move together ({r}): a signal that follows one follows the "
            "other, and no errors distinguish them."
        )
    if abs(ties.recall_r.estimate) >= NEAR_ONE:
        return (
            f"Recalled and true values are nearly the same ({r}): a signal that follows one "
            "follows the other, and only a few errors distinguish them."
        )
    return f"Recalled and true values are correlated ({r}): too few errors distinguish them."


def _ties(ties: MediationEvidence) -> str:
    return f"The signal follows the true values: r is {span(ties.signal_r)}."


def _share(through: Metric) -> str:
    if not isfinite(through.ci_low):
        return "it cannot be computed"
    if through.ci_low <= 0 and through.ci_high >= 1:
        return "the data are compatible with anything from 0 % to 100 %"
    return format_estimate(through, ".0%")
