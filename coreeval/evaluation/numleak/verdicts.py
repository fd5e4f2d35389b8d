"""What the answers about one series say of memory, and by which rule.

Memory is judged on answers that could be read, never on how many there were: parse rate is refusal
policy (NumLeak, section 2). It takes the whole signature: answers that follow their dates where no
null does, that are nearer than every baseline without memory, that are exact where one who knows
the dates in words cannot be, and that have the sign. Calibrated in docs/numleak_calibration.md.
"""

import math
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, get_args

from coreeval.evaluation.numleak.signature import (
    HITS_P,
    MIN_DATES,
    Case,
    nearness,
    p_text,
    plural,
    share,
    span,
)
from coreeval.evaluation.numleak.statistics.measured import Exactness, Measured
from coreeval.evaluation.statistics import SIGNIFICANCE

Verdict = Literal[
    "memorized", "partly_memorized", "fluent", "fabricating", "refusing", "no_recall",
    "inconclusive",
]  # fmt: skip
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
    if case.dates < MIN_DATES:
        return None
    most = case.recites and case.exactness.share.ci_low > MAJORITY
    whole = all(check.holds for check in case.signature)
    if not (most or whole):
        return None
    parts = tuple(check.says for check in case.signature) if whole else ()
    return (*(_exact(case.exactness) if case.recites else ()), *parts)


def _remembers_part(case: Case) -> Why | None:
    if case.dates < MIN_DATES or not case.recites:
        return None
    return _exact(case.exactness)


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
    lacking = MIN_DATES - case.dates
    more = "1 more is needed" if lacking == 1 else f"{lacking} more are needed"
    dates = "1 date" if case.dates == 1 else f"{case.dates} dates"
    return (
        f"Answers for {dates} could be read ({ends}); {MIN_DATES} are the least for a "
        f"verdict: {more}.",
    )


def _knows_words(case: Case) -> Why | None:
    if not (case.dated and case.trace and case.approximate and case.useful):
        return None
    others = tuple(check.says for check in (case.nearer, case.signed) if not check.holds)
    return (_dated(case), f"But they are not the dates' values: {case.closeness}.", *others)


def _unsettled(case: Case) -> Why | None:
    if not (case.dated and case.trace):
        return None
    worse = () if case.useful else (_worse(case),)
    return (*(check.says for check in case.signature), *worse)


def _perhaps(case: Case) -> Why | None:
    if not case.trace:
        return None
    r, near = case.measured.overall.pearson_r, nearness(case.bars.baseline, case.bars.gain)
    exact = (f"Yet they are near: {case.closeness}.",) if case.exact else ()
    return (
        f"Whether the answers follow their dates is open: r is {span(r)}{p_text(case.chance)}, "
        f"and the error is {near}.",
        *exact,
        *_drift(case),
    )


def _perhaps_part(case: Case) -> Why | None:
    found = case.exactness
    if case.measured.modal.estimate == 1 or not found.dealt_p <= HITS_P:
        return None
    exact = round(found.share.estimate * found.share.n)
    return (
        f"Whether the answers are of memory is open: {exact} of {found.share.n} "
        f"{plural(exact, 'is', 'are')} exact, more than by chance{p_text(found.dealt_p)}; but of "
        f"the {found.near} that are close to a value, up to {found.expected:.0%} are exact by "
        "knowing its level alone.",
        _no_better(case),
    )


def _fabricates(case: Case) -> Why | None:
    if not case.measured.fictitious.ci_low > MAJORITY:
        return None
    return (_no_better(case), *_drift(case), f"Yet it answers {_fictitious(case)}.")


def _knows_nothing(case: Case) -> Why | None:
    if not case.measured.fictitious.n:
        told = "No fictitious name was asked about, so fabricating is not excluded."
        return (_no_better(case), *_drift(case), told)
    if not case.measured.fictitious.ci_high < MAJORITY:
        return None
    return (_no_better(case), *_drift(case), f"It answers only {_fictitious(case)}.")


def _either(case: Case) -> Why:
    return (
        _no_better(case),
        *_drift(case),
        f"It answers {_fictitious(case)}: whether it fabricates is open.",
    )


RULES: Final[tuple[tuple[Verdict, Rule], ...]] = (
    ("memorized", _remembers),
    ("partly_memorized", _remembers_part),
    ("refusing", _refuses),
    ("inconclusive", _few_dates),
    ("fluent", _knows_words),
    ("inconclusive", _unsettled),
    ("inconclusive", _perhaps),
    ("inconclusive", _perhaps_part),
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


def in_words(verdict: str) -> str:
    """Return the word for a verdict, the same on every page and in every table and sentence."""
    return verdict.replace("_", " ")


def _exact(found: Exactness) -> Why:
    exact = round(found.share.estimate * found.share.n)
    first = (
        f"{share(found.share)} of the answers are a published value to its last digit"
        f"{p_text(_of(found))}: {exact} of the {found.near} that are close to one; without memory "
        f"of the digits at most {found.expected:.0%} of these would be exact."
    )
    return (first, *_shifted(found), *_scaled(found))


def _shifted(found: Exactness) -> Why:
    """Say whose values they are, if not those of the dates asked about."""
    if not found.shift:
        return ()
    count, side = abs(found.shift), "before" if found.shift < 0 else "after"
    return (
        f"They are the values of {count} {plural(count, 'period')} {side} the dates asked about: "
        f"the series is remembered, shifted by {count}.",
    )


def _scaled(found: Exactness) -> Why:
    """Say in which unit they are, if not in that of the series."""
    if found.factor == 1:
        return ()
    return (f"They are {found.factor:g} times the values: it is remembered in another unit.",)


def _of(found: Exactness) -> float:
    return found.p_adjusted if math.isfinite(found.p_adjusted) else found.p_value


def _dated(case: Case) -> str:
    null = case.measured.nulls["any_date"].pearson_r
    return (
        f"The answers follow their dates: r is {span(case.measured.overall.pearson_r)}, of the "
        f"same answers on other dates {null.low:.2f} to {null.high:.2f} in 95 % of cases"
        f"{p_text(case.chance)}."
    )


def _no_better(case: Case) -> str:
    r = case.measured.overall.pearson_r
    near = nearness(case.bars.baseline, case.bars.gain)
    shown = f"r is {span(r)}"
    if case.measured.modal.estimate == 1:
        shown = "all of them are the same number"
    return f"The answers show no recall: {shown}, and the error is {near}."


def _drift(case: Case) -> Why:
    """Say that drift explains r, if nothing but drift does."""
    nulls = case.measured.nulls
    if not {"drift", "any_date"} <= nulls.keys():
        return ()
    drift, dealt = (nulls[name].pearson_r.p_value for name in ("drift", "any_date"))
    if not dealt <= SIGNIFICANCE < drift:
        return ()
    return (
        f"Series that drift like this one, but have nothing to do with it, reach such an r in "
        f"{drift:.0%} of cases.",
    )


def _worse(case: Case) -> str:
    if "constant" not in case.measured.baselines:
        return "Whether they are nearer than the mean of all values is not known."
    return f"The error is {nearness('constant', case.beside_mean)}."


def _fictitious(case: Case) -> str:
    return f"{share(case.measured.fictitious)} of the questions about series that do not exist"
