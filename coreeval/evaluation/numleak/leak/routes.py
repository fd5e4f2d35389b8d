"""Whether what ties a signal to the truth runs through what a model recalls.

LeakShare cannot say so alone. Where recall is right, a signal that honestly follows the truth is
explained by recall as well as one that was made from it: both have a share near 1. They differ on
the dates that the model recalls wrongly. A signal made from recall goes wrong with it; an honest
one does not know of the mistakes. So the signal is held against recall and truth at once, and the
verdict rests on the share of its slope on the truth that runs through recall. The better the
recall, the fewer the mistakes, and the more dates it takes.
"""

from collections.abc import Callable
from math import isfinite
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.leak.found import Route
from coreeval.evaluation.numleak.signature import MIN_DATES, span
from coreeval.evaluation.numleak.statistics.measured import Metric

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
Why = tuple[str, ...]


class Ties(NamedTuple):
    """What a verdict rests on; as in `Attribution`."""

    recall_r: Metric
    signal_r: Metric
    signal_recall_r: Metric
    follows_errors: Metric
    truth_beyond: Metric
    through: Metric


def route_of(ties: Ties) -> tuple[Route, Why]:
    """Return the verdict and its reasons."""
    return next((route, why) for route, rule in RULES if (why := rule(ties)))


def _few(ties: Ties) -> Why:
    dates = ties.signal_r.dates
    if dates < MIN_DATES:
        return (f"{dates} dates have signal, recall and truth; {MIN_DATES} are the least.",)
    if not isfinite(ties.signal_r.estimate):
        return ("Signal, recall or truth never vary: nothing can follow anything.",)
    return ()


def _most(ties: Ties) -> Why:
    if not ties.through.ci_low > HALF:
        return ()
    return (
        _tied(ties),
        f"At least {min(1.0, ties.through.ci_low):.0%} of that runs through what the model "
        "recalls: where it recalls wrongly, the signal goes wrong with it "
        f"(partial r {span(ties.follows_errors)}).",
        "A source of mistakes that both share, such as the same stories about a date, would look "
        "the same.",
    )


def _least(ties: Ties) -> Why:
    if not ties.through.ci_high < HALF:
        return ()
    return (
        _tied(ties),
        f"At most {max(0.0, ties.through.ci_high):.0%} of that runs through recall: given what the "
        f"model recalls, the signal still follows the truth (partial r {span(ties.truth_beyond)}).",
    )


def _mistakes(ties: Ties) -> Why:
    """A signal without any truth in it that follows recall: what leaks is wrong."""
    errors = ties.follows_errors
    follows = apart(ties.signal_recall_r) and max(errors.ci_low, -errors.ci_high) > SMALL
    if apart(ties.signal_r) or not follows:
        return ()
    return (
        f"The signal is not shown to follow the truth (r {span(ties.signal_r)}), but it follows "
        f"what the model recalls (r {span(ties.signal_recall_r)}), right or wrong.",
    )


def _neither(ties: Ties) -> Why:
    if apart(ties.signal_r) or apart(ties.signal_recall_r):
        return ()
    if not max(abs(ties.signal_recall_r.ci_low), abs(ties.signal_recall_r.ci_high)) < LARGE:
        return ()
    return (
        f"The signal follows neither the truth (r {span(ties.signal_r)}) nor what the model "
        f"recalls (r {span(ties.signal_recall_r)}): there is nothing that recall would explain.",
        f"Only a large tie (r of {LARGE}) is excluded, not a small one.",
    )


def _open(ties: Ties) -> Why:
    if not apart(ties.signal_r):
        return (
            f"Whether the signal follows the truth (r {span(ties.signal_r)}) or what the model "
            f"recalls (r {span(ties.signal_recall_r)}) is open: it takes more dates.",
        )
    return (_tied(ties), f"How much of that runs through recall is open: {_share(ties.through)}.",
            _mistaken(ties))  # fmt: skip


Rule = Callable[[Ties], Why]
RULES: Final[tuple[tuple[Route, Rule], ...]] = (
    ("undecided", _few),
    ("through_recall", _most),
    ("not_through_recall", _least),
    ("through_recall", _mistakes),
    ("not_through_recall", _neither),
    ("undecided", _open),
)
"""The first that holds gives the verdict."""


def apart(r: Metric) -> bool:
    """Whether a correlation's interval leaves 0 out."""
    return bool(r.ci_low > 0 or r.ci_high < 0)


def _mistaken(ties: Ties) -> str:
    """Say why recall and truth cannot be told apart.

    Without a mistake nothing is left of either given the other: no partial correlation is defined.
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


def _tied(ties: Ties) -> str:
    return f"The signal follows the truth: r is {span(ties.signal_r)}."


def _share(through: Metric) -> str:
    if not isfinite(through.ci_low):
        return "it cannot be computed"
    if through.ci_low <= 0 and through.ci_high >= 1:
        return "anything from none to all of it fits"
    return f"{through.estimate:.0%} ({through.ci_low:.0%} to {through.ci_high:.0%})"
