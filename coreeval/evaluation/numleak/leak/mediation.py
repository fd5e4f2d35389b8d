"""What an attribution finds, and whether a signal reaches the truth through recall.

LeakShare cannot say so alone. Where recall is right, a signal that honestly follows the truth is
explained by recall as well as one that was made from it: both have a share near 1. They differ on
the dates that the model recalls wrongly. A signal made from recall goes wrong with it; an honest
one does not know of the mistakes. So the signal is compared with recall and truth at once, and the
verdict rests on the share of its slope on the truth that runs through recall. The better the
recall, the fewer the mistakes, and the more dates it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, NamedTuple, get_args

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.signature import MIN_DATES, span
from coreeval.evaluation.numleak.statistics.measurements import Metric

Route = Literal["through_recall", "not_through_recall", "undecided"]
ROUTES: Final[tuple[Route, ...]] = get_args(Route)
"""Most of what ties the signal to the truth runs through what the model recalls; less than half of
it does; or the answers do not tell."""
OWN_SIGNAL: Final = "sentiment"
"""Name of the signal that the model itself gives, asked for a score of a date."""


class DateTriple(NamedTuple):
    """One date: what the signal says, what the model recalls, what was published."""

    period: Period
    signal: float
    recall: float
    """In the unit of the series; the mean of its answers for the date."""
    truth: float


class SlopePermutation(NamedTuple):
    """A slope of the signal, and what it is when the signal is dealt out among other dates."""

    low: float
    high: float
    """What 95 % of permutations lie between."""
    p_value: float
    """Two-sided (Phipson and Smyth 2010)."""
    permutations: int


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """What ties one signal to the truth (research: numleak, equations 1 to 4)."""

    signal: str
    dates: int
    """Those with all three numbers."""
    slope_on_truth: Metric
    """Of the signal on the published values: the paper's beta_T."""
    slope_on_recall: Metric
    """Of the signal on what the model recalls: the paper's beta."""
    dealt_truth: SlopePermutation
    dealt_recall: SlopePermutation
    recall_r: Metric
    """Of recall and truth: the paper's rho_recall."""
    signal_r: Metric
    """Of signal and truth."""
    signal_recall_r: Metric
    """Of signal and recall."""
    residual_r: Metric
    """Of the truth and what recall leaves of the signal: the paper's rho(u, r); nan where that is
    nothing."""
    leak_share: Metric
    """Equation 4; nan where the signal is not shown to follow the truth at all."""
    ceiling: Metric
    """Equation 3, as a share of the signal's tie to the truth."""
    follows_errors: Metric
    """Partial correlation of signal and recall given the truth: whether it shares its mistakes; nan
    where there are none."""
    truth_beyond: Metric
    """Partial correlation of signal and truth given recall: what it knows besides; nan where recall
    leaves nothing of one of them."""
    through: Metric
    """Share of the slope on the truth that runs through recall (mediated); nan as `leak_share`."""
    route: Route
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    """Dates that are left out, and what limits the numbers, a sentence each."""
    points: tuple[DateTriple, ...]


@dataclass(frozen=True, kw_only=True)
class Placebo:
    """The model's own signal where little is recalled: dates of an early era beside later ones."""

    until: Period
    """Last date of the early era."""
    early: Attribution
    later: Attribution
    recall_r: Metric
    """Early minus later, as the two below."""
    slope_on_truth: Metric
    slope_on_recall: Metric
    says: str


@dataclass(frozen=True, kw_only=True)
class Scramble:
    """The same figures stated under their own date and under another (appendix Q).

    What the date's name alone does to the score is told apart from what is stated beside it.
    """

    real_r: Metric
    """Of score and published value, the figures under their own date."""
    real_slope: Metric
    shown_r: Metric
    """Of the score and the value of the date that is named, where the figures are another's."""
    told_r: Metric
    """Of the score and the value of the date that the figures lead up to."""
    shown_slope: Metric
    """On both values at once: the part of the named date."""
    told_slope: Metric
    difference: Metric
    """The named date's part minus the other's."""
    says: str


@dataclass(frozen=True, kw_only=True)
class Leak:
    """All that is known of one model and one series."""

    asked: int
    """Questions for a score."""
    parsed: int
    signals: tuple[Attribution, ...]
    """The model's own first, if it was asked for, then those of the user."""
    placebo: Placebo | None
    scramble: Scramble | None
    notes: tuple[str, ...]
    """What could not be measured, and why, a sentence each."""


HALF: Final = 0.5
"""Most of a tie is more than half of it."""
LARGE: Final = 0.5
"""A correlation that counts as large (Cohen 1988, section 3.2): a signal that follows neither
truth nor recall has nothing to leak, once so much is excluded."""
SMALL: Final = 0.1
"""A small one, by the same source: a signal without truth follows recall by more than that, or one
in twenty would by chance."""
NEAR_ONE: Final = 0.95
"""Recall from which on a verdict of none is explained by it: a tenth of the variance is error."""
RouteReasons = tuple[str, ...]


class MediationEvidence(NamedTuple):
    """What a verdict rests on; as in `Attribution`."""

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
        return (f"{dates} dates have signal, recall and truth; {MIN_DATES} are the least.",)
    if not isfinite(ties.signal_r.estimate):
        return ("Signal, recall or truth never vary: nothing can follow anything.",)
    return ()


def _most(ties: MediationEvidence) -> RouteReasons:
    if not ties.through.ci_low > HALF:
        return ()
    return (
        _ties(ties),
        f"At least {min(1.0, ties.through.ci_low):.0%} of that runs through what the model "
        "recalls: where it recalls wrongly, the signal goes wrong with it "
        f"(partial r {span(ties.follows_errors)}).",
        "A source of mistakes that both share, such as the same stories about a date, would look "
        "the same.",
    )


def _least(ties: MediationEvidence) -> RouteReasons:
    if not ties.through.ci_high < HALF:
        return ()
    return (
        _ties(ties),
        f"At most {max(0.0, ties.through.ci_high):.0%} of that runs through recall: given what the "
        f"model recalls, the signal still follows the truth (partial r {span(ties.truth_beyond)}).",
    )


def _mistakes(ties: MediationEvidence) -> RouteReasons:
    """Return the reason that a signal follows recall but not the truth: it leaks errors."""
    errors = ties.follows_errors
    follows = is_nonzero(ties.signal_recall_r) and max(errors.ci_low, -errors.ci_high) > SMALL
    if is_nonzero(ties.signal_r) or not follows:
        return ()
    return (
        f"The signal is not shown to follow the truth (r {span(ties.signal_r)}), but it follows "
        f"what the model recalls (r {span(ties.signal_recall_r)}), right or wrong.",
    )


def _neither(ties: MediationEvidence) -> RouteReasons:
    if is_nonzero(ties.signal_r) or is_nonzero(ties.signal_recall_r):
        return ()
    if not max(abs(ties.signal_recall_r.ci_low), abs(ties.signal_recall_r.ci_high)) < LARGE:
        return ()
    return (
        f"The signal follows neither the truth (r {span(ties.signal_r)}) nor what the model "
        f"recalls (r {span(ties.signal_recall_r)}): there is nothing that recall would explain.",
        f"Only a large tie (r of {LARGE}) is excluded, not a small one.",
    )


def _open(ties: MediationEvidence) -> RouteReasons:
    if not is_nonzero(ties.signal_r):
        return (
            f"Whether the signal follows the truth (r {span(ties.signal_r)}) or what the model "
            f"recalls (r {span(ties.signal_recall_r)}) is open: it takes more dates.",
        )
    return (_ties(ties), f"How much of that runs through recall is open: {_share(ties.through)}.",
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
"""The first that holds gives the verdict."""


def is_nonzero(r: Metric) -> bool:
    """Return whether a correlation's interval excludes 0."""
    return bool(r.ci_low > 0 or r.ci_high < 0)


def _mistaken(ties: MediationEvidence) -> str:
    """Say why recall and truth cannot be told apart.

    If recall has no mistakes, neither varies once the other is given, so no partial correlation is
    defined.
    """
    r = f"r {span(ties.recall_r)}"
    if not (isfinite(ties.follows_errors.estimate) or isfinite(ties.truth_beyond.estimate)):
        return (
            f"Recall and truth move as one ({r}): what follows one follows the other, and no "
            "mistake tells them apart."
        )
    if abs(ties.recall_r.estimate) >= NEAR_ONE:
        return (
            f"Recall and truth are nearly the same ({r}): what follows one follows the other, and "
            "only the few mistakes tell them apart."
        )
    return f"Recall and truth have {r}: the mistakes are too few to tell."


def _ties(ties: MediationEvidence) -> str:
    return f"The signal follows the truth: r is {span(ties.signal_r)}."


def _share(through: Metric) -> str:
    if not isfinite(through.ci_low):
        return "it cannot be computed"
    if through.ci_low <= 0 and through.ci_high >= 1:
        return "anything from none to all of it fits"
    return f"{through.estimate:.0%} ({through.ci_low:.0%} to {through.ci_high:.0%})"
