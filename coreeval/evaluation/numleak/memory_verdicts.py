"""Verdicts on memory from answers about a series, by rules, and the consequences for back-tests.

Memory is judged on answers that could be read, never on their number: the parse rate reflects
refusal policy (NumLeak, section 2). Memory requires the whole signature: answers that follow their
dates more than any null does, that are closer than every baseline without memory, that are more
exact than knowledge of the dates in words allows, and that have the right sign.
docs/numleak_calibration.md has the calibration.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from coreeval.evaluation.numleak.signature import (
    HITS_P,
    MIN_DATES,
    MemoryCase,
    describe_nearness,
    p_text,
    share,
    span,
)
from coreeval.evaluation.numleak.statistics.measurements import Exactness, SeriesMeasurements
from coreeval.evaluation.statistics import SIGNIFICANCE
from coreeval.tools.formatting import format_quantity, plural

Verdict = Literal[
    "memorized", "partly_memorized", "fluent", "fabricating", "refusing", "no_recall",
    "inconclusive",
]  # fmt: skip
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
MAJORITY: Final = 0.5
"""The share of answers below which a model counts as refusing.

NumLeak's models answer for nearly all or nearly no fictitious names (table 14: at least 0.967, and
0), so any share in between is suitable.
"""


class MemoryJudgement(NamedTuple):
    """A verdict and its reasons."""

    verdict: Verdict
    reasons: tuple[str, ...]
    """Sentences that contain the numbers."""


VerdictReasons = tuple[str, ...]
VerdictRule = Callable[[MemoryCase], VerdictReasons | None]
"""A rule that returns its reasons if it holds, otherwise None."""


def _remembers(case: MemoryCase) -> VerdictReasons | None:
    if case.dates < MIN_DATES:
        return None
    most = case.recites and case.exactness.share.ci_low > MAJORITY
    whole = all(check.holds for check in case.signature)
    if not (most or whole):
        return None
    parts = tuple(check.says for check in case.signature) if whole else ()
    return (*(_say_exactness(case.exactness) if case.recites else ()), *parts)


def _remembers_part(case: MemoryCase) -> VerdictReasons | None:
    if case.dates < MIN_DATES or not case.recites:
        return None
    return _say_exactness(case.exactness)


def _refuses(case: MemoryCase) -> VerdictReasons | None:
    seen = case.measured.overall
    refused = seen.statuses.get("refused", 0)
    if not (seen.parse_rate.ci_high < MAJORITY and 2 * refused > seen.n - seen.parsed):
        return None
    return (
        f"The model refused {refused} of {seen.n} questions; the share of questions with a "
        f"readable answer is {share(seen.parse_rate)}.",
        "Refusals are evidence neither for nor against memory: the model may remember values that "
        "it refuses to state.",
    )


def _few_dates(case: MemoryCase) -> VerdictReasons | None:
    if case.dates >= MIN_DATES:
        return None
    statuses = case.measured.overall.statuses
    ends = ", ".join(f"{count} {name}" for name, count in statuses.items() if count)
    lacking = MIN_DATES - case.dates
    more = f"{format_quantity(lacking, 'more is', 'more are')} needed"
    dates = format_quantity(case.dates, "date")
    return (
        f"Answers for {dates} could be read ({ends}). A verdict needs at least {MIN_DATES} dates: "
        f"{more}.",
    )


def _knows_words(case: MemoryCase) -> VerdictReasons | None:
    if not (
        case.depends_on_dates and case.may_be_recall and case.is_approximate and case.is_useful
    ):
        return None
    others = tuple(check.says for check in (case.nearer, case.signs) if not check.holds)
    return (
        _say_dependence(case),
        f"However, the answers are not the published values: {case.closeness}.",
        *others,
    )


def _is_only_trace(case: MemoryCase) -> VerdictReasons | None:
    if not (case.depends_on_dates and case.may_be_recall):
        return None
    worse = () if case.is_useful else (_worse(case),)
    return (*(check.says for check in case.signature), *worse)


def _perhaps(case: MemoryCase) -> VerdictReasons | None:
    if not case.may_be_recall:
        return None
    r, near = case.measured.overall.pearson_r, describe_nearness(case.bars.baseline, case.bars.gain)
    exact = (f"Yet the answers are close: {case.closeness}.",) if case.is_close else ()
    return (
        "It is unclear whether the answers follow their dates: r is "
        f"{span(r)}{p_text(case.chance)}, and the error is {near}.",
        *exact,
        *_drift(case),
    )


def _perhaps_part(case: MemoryCase) -> VerdictReasons | None:
    found = case.exactness
    if case.measured.modal.estimate == 1 or not found.dealt_p <= HITS_P:
        return None
    exact = round(found.share.estimate * found.share.n)
    return (
        f"It is unclear whether the answers come from memory: {exact} of {found.share.n} "
        f"{plural(exact, 'is', 'are')} exact, more than expected by "
        f"chance{p_text(found.dealt_p)}. However, up to {found.expected:.0%} of the {found.near} "
        "answers that are close to a published value would be exact even if the model knew only "
        "the approximate value.",
        _no_better(case),
    )


def _fabricates(case: MemoryCase) -> VerdictReasons | None:
    if not case.measured.fictitious.ci_low > MAJORITY:
        return None
    return (_no_better(case), *_drift(case), f"Yet the model answers {_fictitious(case)}.")


def _knows_nothing(case: MemoryCase) -> VerdictReasons | None:
    if not case.measured.fictitious.n:
        told = (
            "The model was not asked about any fictitious series, so fabrication cannot be "
            "ruled out."
        )
        return (_no_better(case), *_drift(case), told)
    if not case.measured.fictitious.ci_high < MAJORITY:
        return None
    return (_no_better(case), *_drift(case), f"The model answers only {_fictitious(case)}.")


def _either(case: MemoryCase) -> VerdictReasons:
    return (
        _no_better(case),
        *_drift(case),
        f"The model answers {_fictitious(case)}: it is unclear whether it fabricates.",
    )


RULES: Final[tuple[tuple[Verdict, VerdictRule], ...]] = (
    ("memorized", _remembers),
    ("partly_memorized", _remembers_part),
    ("refusing", _refuses),
    ("inconclusive", _few_dates),
    ("fluent", _knows_words),
    ("inconclusive", _is_only_trace),
    ("inconclusive", _perhaps),
    ("inconclusive", _perhaps_part),
    ("fabricating", _fabricates),
    ("no_recall", _knows_nothing),
    ("inconclusive", _either),
)
"""The rules in order; the first one that holds gives the verdict."""


def judge_memory(measured: SeriesMeasurements) -> MemoryJudgement:
    """Return the verdict on one model and series, with its reasons."""
    if not measured.overall.n:
        return MemoryJudgement(
            "inconclusive", ("The model was not asked for the value on any date.",)
        )
    case = MemoryCase.of(measured)
    return next(MemoryJudgement(verdict, why) for verdict, rule in RULES if (why := rule(case)))


def verdict_words(verdict: str) -> str:
    """Return a verdict's display name, the same on all pages and in all tables and sentences."""
    return verdict.replace("_", " ")


def _say_exactness(found: Exactness) -> VerdictReasons:
    exact = round(found.share.estimate * found.share.n)
    first = (
        f"{share(found.share)} of the answers match a published value to the last "
        f"digit{p_text(found.p)}: {exact} of the {found.near} answers that are close to "
        "a published value do. Without memory of the digits, at most "
        f"{found.expected:.0%} of these would be exact."
    )
    return (first, *_say_shift(found), *_say_scale(found))


def _say_shift(found: Exactness) -> VerdictReasons:
    """Say which dates' values the answers match, if they do not match the dates asked about."""
    if not found.shift:
        return ()
    count, side = abs(found.shift), "before" if found.shift < 0 else "after"
    periods = f"{count} {plural(count, 'period')}"
    return (
        f"The answers match the values {periods} {side} the dates asked about: the model "
        f"remembers the series shifted by {periods}.",
    )


def _say_scale(found: Exactness) -> VerdictReasons:
    """Say by which factor the answers differ from the series' unit, if they do."""
    if found.factor == 1:
        return ()
    return (
        f"The answers are {found.factor:g} times the published values: the model remembers the "
        "values in another unit.",
    )


def _say_dependence(case: MemoryCase) -> str:
    null = case.measured.nulls["any_date"].pearson_r
    return (
        f"The answers follow their dates: r is {span(case.measured.overall.pearson_r)}; with the "
        f"same answers shuffled among dates, r is between {null.low:.2f} and {null.high:.2f} in "
        f"95 % of cases{p_text(case.chance)}."
    )


def _no_better(case: MemoryCase) -> str:
    r = case.measured.overall.pearson_r
    near = describe_nearness(case.bars.baseline, case.bars.gain)
    shown = f"r is {span(r)}"
    if case.measured.modal.estimate == 1:
        shown = "all answers are the same number"
    return f"The answers show no recall: {shown}, and the error is {near}."


def _drift(case: MemoryCase) -> VerdictReasons:
    """Say that drift explains r, if it does so alone."""
    nulls = case.measured.nulls
    if not {"drift", "any_date"} <= nulls.keys():
        return ()
    drift, dealt = (nulls[name].pearson_r.p_value for name in ("drift", "any_date"))
    if not dealt <= SIGNIFICANCE < drift:
        return ()
    return (f"Unrelated series with a similar drift reach such an r in {drift:.0%} of cases.",)


def _worse(case: MemoryCase) -> str:
    if "constant" not in case.measured.baselines:
        return (
            "It is unknown whether the answers are closer to the published values than the mean "
            "of all values is."
        )
    return f"The error is {describe_nearness('constant', case.beside_mean)}."


def _fictitious(case: MemoryCase) -> str:
    return f"{share(case.measured.fictitious)} of the questions about series that do not exist"


TrustLevel = Literal["no", "unsettled", "no_memory_found"]
MOST_NAMES: Final = 4
"""The largest number of series that a sentence names."""
_KNOWN: Final[Mapping[Verdict, str]] = {
    "memorized": "remembers the published values of ",
    "partly_memorized": "remembers part of the published values of ",
    "fluent": "knows the approximate values of ",
}
_OPEN: Final[Mapping[Verdict, str]] = {"inconclusive": "", "refusing": ""}
_UNKNOWN: Final[Mapping[Verdict, str]] = {
    "no_recall": "does not recall the values of ",
    "fabricating": "makes up values when asked about ",
}
"""Phrases for the behaviour of a model, by its verdict for some series."""


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """A back-test period, with its first and last date as given."""

    start: str
    end: str


@dataclass(frozen=True, kw_only=True)
class BacktestTrust:
    """Whether back-tests with one model can be trusted."""

    model: str
    answer: TrustLevel
    sentence: str


def assess_trust(model: str, verdicts: Mapping[str, Verdict], backtest: Backtest) -> BacktestTrust:
    """Return whether a back-test with a model can be trusted, given its verdict for each series.

    One remembered series is enough for a no, because a strategy may rely on it. The same holds for
    one that is known date by date, but not to the digit. Refused and unsettled series are not
    evidence. Each series is listed with its verdict, by the same name as on all pages and in all
    tables.
    """
    period = f"from {backtest.start} to {backtest.end}"
    if known := _clauses(verdicts, _KNOWN):
        return BacktestTrust(
            model=model,
            answer="no",
            sentence=f"No: a back-test of {model} {period} cannot be trusted, because the model "
            f"{known}. It may trade on information that was not available at the time.",
        )
    if unsettled := _clauses(verdicts, _OPEN):
        return BacktestTrust(
            model=model,
            answer="unsettled",
            sentence=f"Undecided: it is unclear whether a back-test of {model} {period} can be "
            f"trusted, because the model's memory of {unsettled} could not be measured.",
        )
    return BacktestTrust(
        model=model,
        answer="no_memory_found",
        sentence=f"No recall found: this audit found no reason to distrust a back-test of {model} "
        f"{period}; the model {_clauses(verdicts, _UNKNOWN)}.",
    )


def _clauses(verdicts: Mapping[str, Verdict], words: Mapping[Verdict, str]) -> str:
    """Return a clause that lists the series with each of some verdicts; empty if there are none."""
    clauses = [
        f"{words[verdict]}{_list_names(names)} ({verdict_words(verdict)})"
        for verdict in words
        if (names := [name for name, each in verdicts.items() if each == verdict])
    ]
    return _join_clauses(clauses)


def _list_names(names: Sequence[str]) -> str:
    """Join names for a sentence; a long list is cut after the first few."""
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more series"
    return _join_clauses(names)


def _join_clauses(parts: Sequence[str]) -> str:
    *others, last = parts or ("",)
    return f"{', '.join(others)} and {last}" if others else last
