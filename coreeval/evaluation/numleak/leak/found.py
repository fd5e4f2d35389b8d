"""What an attribution finds, each number with its interval over dates."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.statistics.measured import Metric

Route = Literal["through_recall", "not_through_recall", "undecided"]
ROUTES: Final[tuple[Route, ...]] = get_args(Route)
"""Most of what ties the signal to the truth runs through what the model recalls; less than half of
it does; or the answers do not tell."""
OWN: Final = "sentiment"
"""Name of the signal that the model itself gives, asked for a score of a date."""


class Triple(NamedTuple):
    """One date: what the signal says, what the model recalls, what was published."""

    period: Period
    signal: float
    recall: float
    """In the unit of the series; the mean of its answers for the date."""
    truth: float


class Dealt(NamedTuple):
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
    dealt_truth: Dealt
    dealt_recall: Dealt
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
    points: tuple[Triple, ...]


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
