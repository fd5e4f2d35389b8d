"""May a back-test of a model over a period be trusted? One sentence out of several verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from coreeval.evaluation.numleak.verdicts import Verdict

Trusted = Literal["no", "unsettled", "no_memory_found"]
NAMED: Final = 4
"""Most series that a sentence names."""
_OPEN: Final[tuple[Verdict, ...]] = ("inconclusive", "refusing")


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
    about, date by date, without the digits. What was refused or not settled is no evidence.
    """
    period = f"from {backtest.start} to {backtest.end}"
    exact, roughly, unsettled, made_up = (
        [name for name, verdict in verdicts.items() if verdict in kind]
        for kind in (("memorized",), ("fluent",), _OPEN, ("fabricating",))
    )
    if exact or roughly:
        known = [f"remembers the published values of {_listed(exact)}"] if exact else []
        known += [f"knows roughly how {_listed(roughly)} stood at each date"] if roughly else []
        return Trust(
            model=model,
            answer="no",
            sentence=f"No: a back-test of {model} {period} cannot be trusted, because the model "
            f"{' and '.join(known)}, so that it may trade on what it could not have known.",
        )
    if unsettled:
        return Trust(
            model=model,
            answer="unsettled",
            sentence=f"Not settled: whether a back-test of {model} {period} can be trusted is "
            f"open, because its memory of {_listed(unsettled)} could not be measured.",
        )
    warning = f", though it makes up values of {_listed(made_up)} when asked" if made_up else ""
    return Trust(
        model=model,
        answer="no_memory_found",
        sentence=f"No memory found: nothing here speaks against a back-test of {model} {period}; "
        f"it does not recall the values of {_listed(list(verdicts))}{warning}.",
    )


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them; of many the first few."""
    if len(names) > NAMED:
        return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more series"
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
