"""May a back-test of a model over a period be trusted? One sentence out of several verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from coreeval.evaluation.numleak.verdicts import Verdict, in_words

Trusted = Literal["no", "unsettled", "no_memory_found"]
NAMED: Final = 4
"""Most series that a sentence names."""
_KNOWN: Final[Mapping[Verdict, str]] = {
    "memorized": "remembers the published values of ",
    "partly_memorized": "remembers part of the published values of ",
    "fluent": "knows roughly the values at each date of ",
}
_OPEN: Final[Mapping[Verdict, str]] = {"inconclusive": "", "refusing": ""}
_UNKNOWN: Final[Mapping[Verdict, str]] = {
    "no_recall": "does not recall the values of ",
    "fabricating": "makes up values when asked about ",
}
"""What a model does that got each verdict for some series."""


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """A period, as its first and last date were given."""

    start: str
    end: str


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What may be said of back-tests with one model."""

    model: str
    answer: Trusted
    sentence: str


def trust_in(model: str, verdicts: Mapping[str, Verdict], backtest: Backtest) -> Trust:
    """Say whether a back-test with a model may be trusted, from its verdict for each series.

    One remembered series is enough for a no: a strategy may lean on it. So is one that is known
    about, date by date, without the digits. What was refused or not settled is no evidence. Each
    series stands beside its verdict, in the word that all pages and tables have for it.
    """
    period = f"from {backtest.start} to {backtest.end}"
    if known := _clauses(verdicts, _KNOWN):
        return Trust(
            model=model,
            answer="no",
            sentence=f"No: a back-test of {model} {period} cannot be trusted, because the model "
            f"{known}, so that it may trade on what it could not have known.",
        )
    if unsettled := _clauses(verdicts, _OPEN):
        return Trust(
            model=model,
            answer="unsettled",
            sentence=f"Not settled: whether a back-test of {model} {period} can be trusted is "
            f"open, because its memory of {unsettled} could not be measured.",
        )
    return Trust(
        model=model,
        answer="no_memory_found",
        sentence=f"No recall found: nothing here speaks against a back-test of {model} {period}; "
        f"the model {_clauses(verdicts, _UNKNOWN)}.",
    )


def _clauses(verdicts: Mapping[str, Verdict], words: Mapping[Verdict, str]) -> str:
    """Return which series got which of some verdicts, as part of a sentence; empty for none."""
    clauses = [
        f"{words[verdict]}{_listed(names)} ({in_words(verdict)})"
        for verdict in words
        if (names := [name for name, each in verdicts.items() if each == verdict])
    ]
    return _and(clauses)


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them; of many the first few."""
    if len(names) > NAMED:
        return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more series"
    return _and(names)


def _and(parts: Sequence[str]) -> str:
    *others, last = parts or ("",)
    return f"{', '.join(others)} and {last}" if others else last
