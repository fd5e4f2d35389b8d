"""The numbers of an audited series as rows for people, out of its document."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

Json = Mapping[str, Any]
"""A document, or a part of one."""
NULLS: Final[Mapping[str, str]] = {
    "any_date": "r, answers dealt out among all dates",
    "same_era": "r, among four neighbouring dates",
    "same_season": "r, among the dates of a season",
    "same_year": "r, what a year's mean leaves over",
    "drift": "r, unrelated series that drift alike",
    "within_date": "r, among the family on each date",
}
BASELINES: Final[Mapping[str, str]] = {
    "constant": "one number for all dates",
    "year": "the year's mean",
    "season": "the season's mean",
    "year_and_season": "year's and season's means",
    "previous": "the value before",
}


class Row(NamedTuple):
    """One number, written out."""

    what: str
    value: str
    span: str
    """Its 95 % interval, or what 95 % of permutations lie between."""
    n: str


def signature_rows(one: Json) -> Iterator[Row]:
    """Yield the joint signature: what tells memory from fluency only together."""
    points = one["points_name"]
    yield row_of("answered with a number (parse rate)", one["parse_rate"])
    yield row_of("Pearson r", one["pearson_r"])
    yield row_of(f"mean absolute error, {points}", one["mae"])
    yield row_of(f"within {one['tolerance']:g} {points}, of the answered", one["within_tolerance"])
    yield row_of("the same, of all asked", one["hits_of_asked"])
    yield row_of("right sign", one["sign_accuracy"])


def further_rows(one: Json) -> Iterator[Row]:
    """Yield what chance and plain knowledge would give, and the probes that were asked."""
    yield from _null_rows(one["nulls"])
    yield from _baseline_rows(one["baselines"])
    yield from _probe_rows(one)


def _null_rows(nulls: Json) -> Iterator[Row]:
    for name, words in NULLS.items():
        if name in nulls:
            chance = nulls[name]["pearson_r"]
            ends = _ends(chance["low"], chance["high"])
            yield Row(f"chance: {words}", figure(chance["expected"]), ends, _p(chance["p_value"]))


def _p(value: float | None) -> str:
    return "" if value is None else f"p {value:.4f}"


def _baseline_rows(baselines: Json) -> Iterator[Row]:
    for name, words in BASELINES.items():
        if name in baselines:
            yield row_of(f"error saved against {words} (1: all)", baselines[name]["gain"])


def _probe_rows(one: Json) -> Iterator[Row]:
    yield from if_asked("parse rate for series that do not exist", one["fictitious"])
    blind = one["blind"]
    if blind["n"]:
        yield row_of("asked without the name: answered", blind["parse_rate"])
        yield row_of("asked without the name: Pearson r", blind["pearson_r"])
    yield from if_asked("higher of two dates, asked freely: right", one["ranks"]["accuracy"])
    yield from if_asked("higher of two dates, forced: right", one["forced_ranks"]["accuracy"])
    yield from if_asked("repeated draws agree within tolerance", one["repeats"]["agreement"])
    yield from if_asked("after the cutoff minus before: answered", one["recent"]["parse_rate"])
    yield from _entropy_rows(one["entropy"])


def _entropy_rows(entropy: Json | None) -> Iterator[Row]:
    if entropy:
        yield from if_asked("entropy of sign and first digits, bits", entropy["series"]["mean"])
        yield from if_asked("the same for series that do not exist", entropy["fictitious"]["mean"])
        yield from if_asked("the latter minus the former", entropy["difference"])


def if_asked(what: str, metric: Json) -> Iterator[Row]:
    """Yield a metric's row where there is anything that it rests on."""
    if metric["n"] and metric["estimate"] is not None:
        yield row_of(what, metric)


def row_of(what: str, metric: Json) -> Row:
    """Return a metric of a document as a row."""
    ends = _ends(metric["ci_low"], metric["ci_high"])
    return Row(what, figure(metric["estimate"]), ends, str(metric["n"]))


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{figure(low)} to {figure(high)}"


def figure(value: float | None) -> str:
    """Return a number as it is shown; what is not defined is said to be so."""
    if value is None:
        return "undefined"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"


def settings_line(settings: Json) -> str:
    """Return what decides the numbers, in a line."""
    return (
        f"Intervals at {settings['level']:.0%} over dates: Wilson for shares, jackknife for r and "
        "savings, bootstrap-t for mean errors. "
        f"{settings['draws']} draws and permutations, seed {settings['seed']}."
    )
