"""What the answers about one series say of memory, and by which rule.

Memory is judged on answers that could be read, never on how many there were: parse rate is refusal
policy (NumLeak, section 2). It takes the whole signature: answers that follow their dates where no
null does, that are nearer than every baseline without memory, that are exact where one who knows
the dates in words cannot be, and that have the sign. Calibrated in docs/numleak_calibration.md.
"""

import math
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, get_args

from coreeval.evaluation.numleak.bars import MEMORY_GAIN, WORDS_GAIN, dates_to_settle
from coreeval.evaluation.numleak.signature import (
    MIN_DATES,
    TRACE_GAIN,
    Case,
    nearness,
    share,
    span,
)
from coreeval.evaluation.numleak.statistics.measured import Measured

Verdict = Literal["memorized", "fluent", "fabricating", "refusing", "no_recall", "inconclusive"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
MAJORITY: Final = 0.5
"""Whoever answers fewer refuses. NumLeak's models answer nearly all or nearly no fictitious names
(table 14: at least 0.967, and 0), so that any share between would do."""


class Judgement(NamedTuple):
    """A verdict and what led to it."""

    verdict: Verdict
    reasons: tuple[str, ...]
    """Sentences with the numbers."""


Why = tuple[str, ...]
Rule = Callable[[Case], Why | None]
"""Why the rule holds, or None."""


def _remembers(case: Case) -> Why | None:
    if case.dates < MIN_DATES or not all(check.holds for check in case.signature):
        return None
    return tuple(check.says for check in case.signature)


def _refuses(case: Case) -> Why | None:
    seen = case.measured.overall
    refused = seen.statuses.get("refused", 0)
    if not (seen.parse_rate.ci_high < MAJORITY and 2 * refused > seen.n - seen.parsed):
        return None
    return (
        f"It refused {refused} of {seen.n} questions; {share(seen.parse_rate)} could be read.",
        "That says nothing for or against memory: what is refused may be remembered.",
    )


def _few_dates(case: Case) -> Why | None:
    if case.dates >= MIN_DATES:
        return None
    statuses = case.measured.overall.statuses
    ends = ", ".join(f"{count} {name}" for name, count in statuses.items() if count)
    return (
        f"Answers for {case.dates} dates could be read ({ends}); {MIN_DATES} are the least for a "
        f"verdict: {MIN_DATES - case.dates} more are needed.",
    )


def _knows_words(case: Case) -> Why | None:
    if not (case.dated and case.trace and case.approximate):
        return None
    others = tuple(check.says for check in (case.nearer, case.signed) if not check.holds)
    return (_dated(case), f"But they are not the dates' values: {case.exactness}.", *others)


def _unsettled(case: Case) -> Why | None:
    if not (case.dated and case.trace):
        return None
    return (*(check.says for check in case.signature), _more(_needed(case)))


def _perhaps(case: Case) -> Why | None:
    if not case.trace:
        return None
    r, near = case.measured.overall.pearson_r, nearness(case.bars.baseline, case.bars.gain)
    needed = (dates_to_settle(r, 0.0), dates_to_settle(case.bars.gain, TRACE_GAIN))
    exact = (f"Yet they are exact: {case.exactness}.",) if case.exact else ()
    return (
        f"Whether the answers follow their dates is open: r is {span(r)}{_p(case.chance)}, "
        f"and the error is {near}.",
        *exact,
        _more(min((each for each in needed if each is not None), default=None)),
    )


def _fabricates(case: Case) -> Why | None:
    if not case.measured.fictitious.ci_low > MAJORITY:
        return None
    return (_no_better(case), f"Yet it answers {_fictitious(case)}.")


def _knows_nothing(case: Case) -> Why | None:
    if not case.measured.fictitious.n:
        told = "No fictitious name was asked about, so fabricating is not excluded."
        return (_no_better(case), told)
    if not case.measured.fictitious.ci_high < MAJORITY:
        return None
    return (_no_better(case), f"It answers only {_fictitious(case)}.")


def _either(case: Case) -> Why:
    return (_no_better(case), f"It answers {_fictitious(case)}: whether it fabricates is open.")


RULES: Final[tuple[tuple[Verdict, Rule], ...]] = (
    ("memorized", _remembers),
    ("refusing", _refuses),
    ("inconclusive", _few_dates),
    ("fluent", _knows_words),
    ("inconclusive", _unsettled),
    ("inconclusive", _perhaps),
    ("fabricating", _fabricates),
    ("no_recall", _knows_nothing),
    ("inconclusive", _either),
)
"""The first that holds gives the verdict."""


def verdict_of(measured: Measured) -> Judgement:
    """Return the verdict on one model and series, and why."""
    if not measured.overall.n:
        return Judgement("inconclusive", ("No date was asked for its value.",))
    case = Case.of(measured)
    return next(Judgement(verdict, why) for verdict, rule in RULES if (why := rule(case)))


def _dated(case: Case) -> str:
    null = case.measured.nulls["any_date"].pearson_r
    return (
        f"The answers follow their dates: r is {span(case.measured.overall.pearson_r)}, of the "
        f"same answers on other dates at most {null.high:.2f} (p {null.p_value:.4f})."
    )


def _no_better(case: Case) -> str:
    r = case.measured.overall.pearson_r
    near = nearness(case.bars.baseline, case.bars.gain)
    if math.isfinite(r.estimate):
        return f"The answers show no recall: r is {span(r)}, and the error is {near}."
    same = f"{case.measured.modal.estimate:.0%} of them are the same number"
    return f"The answers show no recall: {same}, and the error is {near}."


def _p(value: float) -> str:
    return f" (p {value:.4f})" if math.isfinite(value) else ""


def _fictitious(case: Case) -> str:
    return f"{share(case.measured.fictitious)} of the questions about series that do not exist"


def _needed(case: Case) -> int | None:
    """Return how many more dates would tell exact answers from approximate ones."""
    hits = [case.hits] if case.bars.telling else []
    above = [(each, case.bars.words) for each in hits] + [(case.bars.gain, WORDS_GAIN)]
    exact = [dates_to_settle(each, bar) for each, bar in above if each.estimate > bar]
    if exact:
        return min((dates for dates in exact if dates is not None), default=None)
    below = [(each, case.bars.memory) for each in hits] + [(case.bars.gain, MEMORY_GAIN)]
    needed = [dates_to_settle(each, bar) for each, bar in below if not each.ci_high < bar]
    known = [dates for dates in needed if dates is not None]
    return max(known) if known and len(known) == len(needed) else None


def _more(dates: int | None) -> str:
    if dates is None:
        return "How many more dates would decide cannot be said."
    return f"About {dates} more dates would decide, if they are like these."
