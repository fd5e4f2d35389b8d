"""The numbers of an audited series as rows for readers, from its JSON document."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from coreeval.tools.formatting import format_interval, format_measure, format_number
from coreeval.tools.tables import Table, intervals, numbers, texts

Json = Mapping[str, Any]
"""A document or a part of one."""
NULLS: Final[Mapping[str, str]] = {
    "any_date": "r, answers shuffled among all dates",
    "same_era": "r, answers shuffled among 4 neighbouring dates",
    "same_season": "r, answers shuffled among the dates of a season",
    "same_year": "r, deviations from each year's mean",
    "drift": "r, unrelated series with a similar drift",
    "within_date": "r, answers shuffled within the family on each date",
}
BASELINES: Final[Mapping[str, str]] = {
    "constant": "one number for all dates",
    "year": "the year's mean",
    "season": "the season's mean",
    "year_and_season": "the year's and season's means",
    "previous": "the previous value",
}


class AuditRow(NamedTuple):
    """One measurement of an audit, formatted for display."""

    what: str
    value: str
    span: str
    """The 95 % interval, or the range of 95 % of permutations."""
    n: str


_COLUMNS: Final = (texts(width=58, most=58), numbers("value", 10), intervals(19), numbers("n", 8))


def audit_table(rows: Iterable[AuditRow], title: str = "") -> Table:
    """Return measurements as a table, for a terminal and for a page."""
    return Table(_COLUMNS, [*rows], title)


def signature_rows(one: Json) -> Iterator[AuditRow]:
    """Yield the rows of the joint signature, which only shows memory as a whole."""
    points = one["points_name"]
    yield make_row("answered with a number (parse rate)", one["parse_rate"])
    yield make_row("Pearson r", one["pearson_r"])
    yield make_row(f"mean absolute error, {points}", one["mae"])
    yield make_row(
        f"within {one['tolerance']:g} {points}, share of answered questions",
        one["within_tolerance"],
    )
    yield make_row(
        f"within {one['tolerance']:g} {points}, share of all questions", one["hits_of_asked"]
    )
    yield make_row("right sign", one["sign_accuracy"])


def further_rows(one: Json) -> Iterator[AuditRow]:
    """Yield the rows of the nulls (chance), the baselines (plain knowledge) and the probes."""
    yield from _null_rows(one["nulls"])
    yield from _baseline_rows(one["baselines"])
    yield from _probe_rows(one)


def _null_rows(nulls: Json) -> Iterator[AuditRow]:
    for name, words in NULLS.items():
        if name in nulls:
            chance = nulls[name]["pearson_r"]
            ends = format_interval(chance["low"], chance["high"], format_measure)
            yield AuditRow(
                f"chance: {words}",
                format_measure(chance["expected"]),
                ends,
                format_number(chance["p_value"], "p {:.4f}".format, ""),
            )


def _baseline_rows(baselines: Json) -> Iterator[AuditRow]:
    for name, words in BASELINES.items():
        if name in baselines:
            what = f"error reduction over {words} (1: no error left)"
            yield make_row(what, baselines[name]["gain"])


def _probe_rows(one: Json) -> Iterator[AuditRow]:
    yield from rows_if_asked("parse rate for fictitious series", one["fictitious"])
    blind = one["blind"]
    if blind["n"]:
        yield make_row("name withheld: answered", blind["parse_rate"])
        yield make_row("name withheld: Pearson r", blind["pearson_r"])
    yield from rows_if_asked("higher of two values, free answer: correct", one["ranks"]["accuracy"])
    yield from rows_if_asked(
        "higher of two values, forced choice: correct", one["forced_ranks"]["accuracy"]
    )
    yield from rows_if_asked("repeated draws agree within tolerance", one["repeats"]["agreement"])
    yield from rows_if_asked(
        "parse rate after the cutoff minus that before it", one["recent"]["parse_rate"]
    )
    yield from _entropy_rows(one["entropy"])


def _entropy_rows(entropy: Json | None) -> Iterator[AuditRow]:
    if entropy:
        yield from rows_if_asked(
            "entropy of sign and first digits, bits", entropy["series"]["mean"]
        )
        yield from rows_if_asked(
            "entropy for fictitious series, bits", entropy["fictitious"]["mean"]
        )
        yield from rows_if_asked(
            "entropy for fictitious series minus that for this series", entropy["difference"]
        )


def rows_if_asked(what: str, metric: Json) -> Iterator[AuditRow]:
    """Yield the row of a metric if it is based on any data."""
    if metric["n"] and metric["estimate"] is not None:
        yield make_row(what, metric)


def make_row(what: str, metric: Json) -> AuditRow:
    """Convert a metric of a document to a row."""
    ends = format_interval(metric["ci_low"], metric["ci_high"], format_measure)
    return AuditRow(what, format_measure(metric["estimate"]), ends, str(metric["n"]))


def describe_settings(settings: Json) -> str:
    """Describe in one line the settings that determine the numbers."""
    return (
        f"The {settings['level']:.0%} intervals are over dates: Wilson intervals for shares, "
        "jackknife intervals for r and error reductions, and bootstrap-t intervals for mean "
        f"errors. Each bootstrap has {settings['draws']} draws and each permutation test has "
        f"{settings['draws']} permutations, with seed {settings['seed']}."
    )


ROUTE_WORDS: Final = {
    "through_recall": "through recall",
    "not_through_recall": "not through recall",
    "undecided": "undecided",
}
_ROWS: Final = (
    ("slope_on_truth", "slope on true values"),
    ("slope_on_recall", "slope on recall"),
    ("recall_r", "r between recalled and true values"),
    ("signal_r", "r between the signal and the true values"),
    ("signal_recall_r", "r between the signal and the recalled values"),
    ("through", "share of the slope on true values that recall mediates"),
    ("follows_errors", "follows recall errors: partial r given true values"),
    ("truth_beyond", "follows true values beyond recall: partial r given recall"),
    ("residual_r", "r between true values and the signal unexplained by recall"),
    ("leak_share", "LeakShare (also near 1 without a leak if recall is accurate)"),
    ("ceiling", "worst case: largest share that recall could explain"),
)
_SCRAMBLE: Final = (
    ("real_r", "figures under their own date: r with that date's value"),
    ("shown_r", "figures under another date: r with the named date's value"),
    ("told_r", "figures under another date: r with their own date's value"),
    ("difference", "slope on named date's value minus that on own date's value"),
)


def attribution_rows(one: Json) -> Iterator[AuditRow]:
    """Yield the numbers of one signal with their intervals."""
    for key, words in _ROWS:
        yield make_row(words, one[key])
    for key, words in (("dealt_truth", "true values"), ("dealt_recall", "recall")):
        dealt = one[key]
        if dealt["p_value"] is not None:
            ends = format_interval(dealt["low"], dealt["high"], format_measure)
            yield AuditRow(f"chance: slope on {words}", "", ends, f"p {dealt['p_value']:.4f}")


def control_rows(leak: Json) -> Iterator[AuditRow]:
    """Yield the numbers of the early era and of the scrambled dates, if they were asked."""
    if placebo := leak["placebo"]:
        until = placebo["until"]
        for era, words in (("early", f"until {until}"), ("later", f"after {until}")):
            yield make_row(f"{words}: r between recalled and true values", placebo[era]["recall_r"])
            yield make_row(f"{words}: slope on true values", placebo[era]["slope_on_truth"])
            yield make_row(f"{words}: slope on recall", placebo[era]["slope_on_recall"])
    if scramble := leak["scramble"]:
        for key, words in _SCRAMBLE:
            yield make_row(words, scramble[key])


def control_sentences(leak: Json) -> Iterator[str]:
    """Yield one sentence for each finding of the controls."""
    for key in ("placebo", "scramble"):
        if leak[key]:
            yield leak[key]["says"]


_WAYS: Final = {"description": "in prose", "step_by_step": "step by step"}
OUTCOME_WORDS: Final = {
    "holds": "keeps its answer",
    "corrects": "calls the stated value wrong",
    "yields": "accepts the stated value",
    "mixed": "gives another value, or several",
    "refuses": "declines",
    "unread": "not read",
}
"""Phrases for the outcomes of a question that states a wrong value."""


def variant_rows(one: Json) -> Iterator[AuditRow]:
    """Yield the rows of each probe variant that was used."""
    found = one["variants"]
    for key, words in _WAYS.items():
        if found[key]:
            yield from _comparison_rows(words, found[key])
    if found["phrasing"]:
        yield from _phrasing_rows(found["phrasing"])
    if found["contradiction"]:
        yield from _contradiction_rows(found["contradiction"])
    if found["continuation"]:
        yield from _continuation_rows(found["continuation"], one)


def _comparison_rows(words: str, way: Json) -> Iterator[AuditRow]:
    yield make_row(f"{words}: answered", way["asked"]["parse_rate"])
    if not way["dates"]:
        return
    yield make_row(f"{words}: Pearson r", way["own"]["pearson_r"])
    yield make_row("plain answers on the same dates: Pearson r", way["plain"]["pearson_r"])
    yield make_row(f"{words}: r minus that of plain answers", way["pearson_r"])
    yield make_row(f"{words}: within tolerance", way["own"]["within_tolerance"])
    yield make_row(f"{words}: share within tolerance, minus plain share", way["within_tolerance"])
    yield make_row(f"{words}: larger error than the plain answer", way["worse"])


def _phrasing_rows(found: Json) -> Iterator[AuditRow]:
    for name, way in found["wordings"].items():
        yield make_row(f"wording {name}: answered", way["asked"]["parse_rate"])
        yield from rows_if_asked(f"wording {name}: Pearson r", way["asked"]["pearson_r"])
        yield from rows_if_asked(
            f"wording {name}: within tolerance", way["asked"]["within_tolerance"]
        )
    yield from rows_if_asked(
        "dates on which all wordings agree within tolerance", found["agreement"]
    )
    yield from rows_if_asked("spread of the answers to all wordings for one date", found["spread"])


def _contradiction_rows(found: Json) -> Iterator[AuditRow]:
    for outcome, words in OUTCOME_WORDS.items():
        yield make_row(f"given a wrong value: {words}", found["shares"][outcome])
    yield from rows_if_asked("accepts wrong values of the opposite sign", found["yields_far"])
    yield from rows_if_asked("accepts wrong values of the same sign", found["yields_same"])


def _continuation_rows(found: Json, one: Json) -> Iterator[AuditRow]:
    yield make_row("file continued: values returned", found["read"])
    yield from rows_if_asked("file continued: exact", found["exact"])
    yield from rows_if_asked("exact, among values not in the question", found["exact_untold"])
    yield from rows_if_asked("exact if the last value shown is repeated", found["last_exact"])
    yield from rows_if_asked(
        "exact if the mean of the values shown is returned", found["mean_exact"]
    )
    yield from rows_if_asked(
        f"file continued: within {one['tolerance']:g} {one['points_name']}",
        found["within_tolerance"],
    )
    yield from rows_if_asked(
        "within tolerance if the last value shown is repeated", found["last_within"]
    )
    yield from rows_if_asked("error reduction over repeating the last value", found["gain"])
