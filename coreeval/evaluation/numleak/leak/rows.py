"""The numbers of an attribution as rows for people, out of its document."""

from collections.abc import Iterator
from typing import Final

from coreeval.evaluation.numleak.table import Json, Row, figure

ROUTE_WORDS: Final = {
    "through_recall": "through recall",
    "not_through_recall": "not through recall",
    "undecided": "undecided",
}
_ROWS: Final = (
    ("slope_on_truth", "slope on the truth"),
    ("slope_on_recall", "slope on recall"),
    ("recall_r", "r of recall and truth"),
    ("signal_r", "r of signal and truth"),
    ("signal_recall_r", "r of signal and recall"),
    ("through", "share of the slope on the truth that runs through recall"),
    ("follows_errors", "follows recall's mistakes: partial r given the truth"),
    ("truth_beyond", "follows the truth besides: partial r given recall"),
    ("residual_r", "r of the truth and what recall leaves of the signal"),
    ("leak_share", "LeakShare (near 1 also without a leak, if recall is right)"),
    ("ceiling", "worst case: share that recall could explain at most"),
)
_SCRAMBLE: Final = (
    ("real_r", "figures under own date: r with its value"),
    ("shown_r", "figures under another: r with the named date's value"),
    ("told_r", "figures under another: r with their own date's value"),
    ("difference", "slope on the named date's value minus that on the other's"),
)


def attribution_rows(one: Json) -> Iterator[Row]:
    """Yield the numbers of one signal, each with its interval."""
    for key, words in _ROWS:
        yield _row(words, one[key])
    for key, words in (("dealt_truth", "truth"), ("dealt_recall", "recall")):
        dealt = one[key]
        if dealt["p_value"] is not None:
            ends = _ends(dealt["low"], dealt["high"])
            yield Row(f"chance: slope on {words}", "", ends, f"p {dealt['p_value']:.4f}")


def control_rows(leak: Json) -> Iterator[Row]:
    """Yield the numbers of the early era and of the scrambled dates, where they were asked."""
    if placebo := leak["placebo"]:
        until = placebo["until"]
        for era, words in (("early", f"until {until}"), ("later", f"after {until}")):
            yield _row(f"{words}: r of recall and truth", placebo[era]["recall_r"])
            yield _row(f"{words}: slope on the truth", placebo[era]["slope_on_truth"])
            yield _row(f"{words}: slope on recall", placebo[era]["slope_on_recall"])
    if scramble := leak["scramble"]:
        for key, words in _SCRAMBLE:
            yield _row(words, scramble[key])


def control_says(leak: Json) -> Iterator[str]:
    """Yield what the controls say, a sentence each."""
    for key in ("placebo", "scramble"):
        if leak[key]:
            yield leak[key]["says"]


def _row(what: str, metric: Json) -> Row:
    ends = _ends(metric["ci_low"], metric["ci_high"])
    return Row(what, figure(metric["estimate"]), ends, str(metric["n"]))


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{figure(low)} to {figure(high)}"
