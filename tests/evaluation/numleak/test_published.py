"""What NumLeak prints comes out of its recorded answers, to the digits printed.

What the files cannot give, and why:
- Tables 1, 5 and 6 (three drawings), 13 (variants D and E), 17 and the rows of other models in
  Tables 3 and 4: their answers are not among the files. Nor is Table 10's historical row; it is
  there as a finished number only.
- RMW, CMA and Mom in the sweep (Table 3): the files have no such series, so only n is checked.
- S&P 500 (Table 4): truth was the month-end close of ^GSPC; what is beside the answers are monthly
  averages, so only the parse rate is checked. NASDAQ has no file at all.
- Haiku's share within 25 basis points on Mkt-RF is 0.17 [0.10, 0.28] in Table 3, 18 % in Figure 7
  and 19 % in a scatter plot: 12 or 13 of 70, without or with the answer that is off by exactly 0.25
  (September 2021). Here it counts, as elsewhere in the paper.
- Table 14's pooled Wilson intervals end at 0.0209 and 0.9929; they are printed as 0.020 and 0.992.
- Intervals of r are bootstrapped with the authors' draws; their ends are not checked.
- Variant C (Tables 11 and 12): 0.525, 0.655 and 0.475 follow from taking the month named last as
  the choice. Of Sonnet's 360 answers 345 were cut off, at 48 tokens, and 13 say a choice.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from coreeval.evaluation.numleak.parsing import read_choice, read_points, read_value
from coreeval.evaluation.numleak.parsing.answer_text import normalise_text
from coreeval.evaluation.numleak.parsing.dates import find_mentions
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import DateComparison, Point, Reply, Side, Status
from coreeval.evaluation.numleak.series import Series, Unit, open_series
from coreeval.evaluation.numleak.series.catalogue import find_definition
from coreeval.evaluation.numleak.statistics import AuditSettings, signature
from coreeval.evaluation.statistics import wilson_interval
from tests.support.numleak_data import FILES
from tests.support.numleak_records import (
    beside_records,
    forced_choices,
    gpt_siblings,
    of,
    rows,
    sweep,
    values,
)

pytestmark = beside_records
SONNET, HAIKU, OPUS, GPT = "claude-sonnet", "claude-haiku", "claude-opus", "gpt-5.4"


@cache
def series_of(name: str) -> Series:
    return open_series(name, base=Path(), file=FILES[name])


def points(replies: Iterable[Reply], name: str) -> list[Point]:
    readings = read_points(replies, series_of(name), None)
    assert not readings.bad
    return readings.points


def status(reply: Reply, unit: Unit) -> Status:
    period = Period.parse(reply.date, "monthly")
    return read_value(reply.response, unit=unit, period=period, kind=reply.kind).status


class Cell(NamedTuple):
    """A row of the paper; None where it prints nothing, or the files do not give it."""

    parsed: int
    rate: str | None = None
    r: str | None = None
    mae: str | None = None
    within: str | None = None
    sign: str | None = None


def agrees(value: float, printed: str | None) -> bool:
    """Whether a number is printed so."""
    if printed is None:
        return True
    digits = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.5 * 10.0**-digits + 1e-9


def share(found: Iterable[float], printed: str | None) -> bool:
    """Whether a share, and its interval where it is printed, is printed so: "0.34 0.24 0.45"."""
    wanted = printed.split() if printed else []
    return all(agrees(one, text) for one, text in zip(found, wanted, strict=False))


def of_hits(hits: list[bool]) -> tuple[float, float, float]:
    """Return a share and Wilson's interval, each answer counting as one, as in the paper."""
    rate = sum(hits) / len(hits)
    return (rate, *wilson_interval(rate, len(hits)))


def check(found: list[Point], cell: Cell, tolerance: float) -> None:
    ours = signature(found, tolerance=tolerance, settings=AuditSettings(draws=10))
    assert ours.parsed == cell.parsed
    assert agrees(ours.parse_rate.estimate, cell.rate)
    assert agrees(ours.pearson_r.estimate, cell.r)
    assert agrees(ours.mae.estimate, cell.mae)
    assert share(ours.within_tolerance, cell.within)
    assert share(ours.sign_accuracy, cell.sign)


@pytest.mark.parametrize(
    ("model", "name", "cell"),
    [
        (SONNET, "mkt_rf", Cell(77, "0.88", "0.98", None, "0.34 0.24 0.45", "0.97 0.91 0.99")),
        (SONNET, "smb", Cell(72, None, "-0.25", None, "0.08 0.04 0.17", "0.61 0.50 0.72")),
        (SONNET, "hml", Cell(69, None, "0.48", None, "0.03 0.01 0.10", "0.49 0.38 0.61")),
        (HAIKU, "mkt_rf", Cell(70, None, "0.68", None, None, "0.77 0.66 0.85")),
        (HAIKU, "smb", Cell(70, None, "0.45", None, "0.03 0.01 0.10", "0.61 0.50 0.72")),
        (HAIKU, "hml", Cell(70, None, "0.04", None, "0.10 0.05 0.19", "0.64 0.52 0.74")),
    ],
)
def test_table_3_and_4_the_main_sweep(model: str, name: str, cell: Cell) -> None:
    check(points(of(sweep("A"), model, name), name), cell, 0.25)


@pytest.mark.parametrize(
    ("model", "name", "parsed"),
    [
        (SONNET, "rmw", 24), (SONNET, "cma", 25), (SONNET, "mom", 69),
        (HAIKU, "rmw", 70), (HAIKU, "cma", 68), (HAIKU, "mom", 69),
    ],
)  # fmt: skip
def test_table_3_parsed_answers_on_factors_without_a_file(
    model: str, name: str, parsed: int
) -> None:
    unit = find_definition(name, base=Path()).unit
    statuses = [status(reply, unit) for reply in of(sweep("A"), model, name)]
    assert statuses.count("parsed") == parsed


def test_haiku_on_mkt_rf_has_an_answer_off_by_exactly_the_tolerance() -> None:
    found = points(of(sweep("A"), HAIKU, "mkt_rf"), "mkt_rf")
    errors = [
        abs(point.estimate - point.truth)
        for point in found
        if point.estimate is not None and point.truth is not None
    ]
    assert share(of_hits([error < 0.25 - 1e-9 for error in errors]), "0.17 0.10 0.28")
    assert share(of_hits([error <= 0.25 + 1e-9 for error in errors]), "0.19")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("smb", Cell(40, "1.00", "-0.07", None, "0.10 0.04 0.23", "0.70 0.55 0.82")),
        ("hml", Cell(40, "1.00", "-0.06", None, "0.12 0.05 0.26", "0.65 0.50 0.78")),
        ("rmw", Cell(40, "1.00", "0.28", None, "0.15 0.07 0.29", "0.65 0.50 0.78")),
        ("cma", Cell(40, "1.00", "0.27", None, "0.05 0.01 0.17", "0.42 0.29 0.58")),
        ("mom", Cell(40, "1.00", "-0.03", None, "0.00 0.00 0.09", "0.50 0.35 0.65")),
    ],
)
def test_table_3_gpt_on_the_siblings(name: str, cell: Cell) -> None:
    untold = Series(definition=find_definition(name, base=Path()), values={})
    check(read_points(of(gpt_siblings(), GPT, name), untold, None).points, cell, 0.25)


def test_table_4_the_market_without_its_name() -> None:
    found = points(of(values("blind_query", "mkt_rf", "blind"), SONNET), "mkt_rf")
    check(found, Cell(25, "0.62", "0.92", None, "0.20", "1.00"), 0.25)


@pytest.mark.parametrize("model", [SONNET, HAIKU])
def test_table_4_every_question_about_the_sp500_gets_a_number(model: str) -> None:
    replies = [*of(values("snp500_baseline", "sp500"), model)]
    unit = find_definition("sp500", base=Path()).unit
    read = [
        read_value(r.response, unit=unit, period=Period.parse(r.date, "monthly")) for r in replies
    ]
    assert [one.status for one in read] == ["parsed"] * 40


CROSS_DOMAIN = [
    ("unrate_baseline", "unrate", SONNET, 0.25, Cell(30, "1.00", "1.000", None, "1.00")),
    ("unrate_baseline", "unrate", SONNET, 0.5, Cell(30, "1.00", "1.000", None, "1.00")),
    ("unrate_baseline", "unrate", OPUS, 0.25, Cell(30, "1.00", "1.000", None, "1.00")),
    ("unrate_baseline", "unrate", OPUS, 0.5, Cell(30, "1.00", "1.000", None, "1.00")),
    ("cpi_baseline", "cpi_yoy", SONNET, 0.25, Cell(29, "0.97", "0.995", None, "0.93")),
    ("cpi_baseline", "cpi_yoy", OPUS, 0.25, Cell(30, "1.00", "1.000", None, "1.00")),
    ("noaa_temperature", "noaa_us_tavg", SONNET, 0.5, Cell(28, "0.93", "0.993", "1.58", "0.36")),
    ("noaa_temperature", "noaa_us_tavg", OPUS, 0.5, Cell(30, "1.00", "0.450", "9.17", "0.30")),
    ("noaa_temperature", "noaa_us_tavg", GPT, 0.5, Cell(30, "1.00", "0.989", "1.79", "0.20")),
]


@pytest.mark.parametrize(("file", "name", "model", "tolerance", "cell"), CROSS_DOMAIN)
def test_tables_7_to_9_other_domains(
    file: str, name: str, model: str, tolerance: float, cell: Cell
) -> None:
    found = points(of(values(file, name), model), name)
    check(found, cell, tolerance)
    ours = series_of(name).values
    assert all(agrees(ours[point.period], f"{point.truth:.2f}") for point in found)


def test_table_9_opus_without_its_four_anomalies() -> None:
    found = points(of(values("noaa_temperature", "noaa_us_tavg"), OPUS), "noaa_us_tavg")
    absolute = [point for point in found if point.estimate is None or point.estimate > 5]
    check(absolute, Cell(26, None, "0.995", "1.14", "0.35"), 0.5)


@pytest.mark.parametrize(
    ("model", "cell"),
    [
        (OPUS, Cell(8, "0.57", "0.99", "0.44", "0.50")),
        (SONNET, Cell(3, "0.21", "0.98", "0.60", "0.33")),
    ],
)
def test_table_10_recent_releases(model: str, cell: Cell) -> None:
    check(points(of(values("post_cutoff_holdout", "mkt_rf"), model), "mkt_rf"), cell, 0.25)


@pytest.mark.parametrize(
    ("models", "parsed", "n", "printed"),
    [
        ("claude-opus-4.7", 0, 60, "0.000"),
        ("claude-sonnet-4.6", 0, 60, "0.000"),
        ("claude-haiku-4.5", 0, 60, "0.000"),
        ("gpt-5.4", 58, 60, "0.967"),
        ("gpt-5.4-mini", 58, 60, "0.967"),
        ("gpt-5.4-nano", 60, 60, "1.000"),
        ("deepseek.*", 59, 60, "0.983"),
        ("llama-3.3-70b.*", 60, 60, "1.000"),
        ("claude.*", 0, 180, "0.000 0.000 0.021"),
        ("(?!claude).*", 295, 300, "0.983 0.962 0.993"),
    ],
)
def test_table_14_names_that_do_not_exist(models: str, parsed: int, n: int, printed: str) -> None:
    replies = values("fabricated_expanded", "mkt_rf", "fictitious")
    found = points((r for r in replies if re.fullmatch(models, r.model)), "mkt_rf")
    read = [point.status == "parsed" for point in found]
    assert (sum(read), len(read)) == (parsed, n)
    assert share(of_hits(read), printed)
    assert all(point.truth is None for point in found)


def comparisons(replies: Iterable[Reply], name: str) -> list[DateComparison]:
    readings = read_points(replies, series_of(name), None)
    assert not readings.bad
    return readings.comparisons


def binomial(right: int, n: int) -> tuple[float, float]:
    """Return the normal approximation that Tables 11 and 12 print."""
    half = 1.959963984540054 * math.sqrt(right / n * (1 - right / n) / n)
    return right / n - half, right / n + half


def test_table_11_a_forced_choice() -> None:
    found = comparisons(forced_choices(), "mkt_rf")
    right = sum(one.chosen == one.higher for one in found)
    assert [one.status for one in found] == ["parsed"] * 60
    assert agrees(right / 60, "0.550")
    assert all(map(agrees, binomial(right, 60), ("0.424", "0.676")))


def test_the_authors_read_each_forced_choice_likewise() -> None:
    found = comparisons(forced_choices(), "mkt_rf")
    theirs = [row["model_choice"] for row in rows("variantc_forced_choice")]
    assert [{"first": "m1", "second": "m2"}[str(one.chosen)] for one in found] == theirs


# Narrower than `declines`, which leaves 39 of Mkt-RF and 58 of SMB (0.538, 0.483): "in the future"
# is no refusal here. Chosen to give the paper's own numbers of answers.
DECLINED = re.compile(
    r"\b(?:don't have (?:access|the|reliable)|unable to|cannot)\b|beyond my knowledge"
)


def named(reply: Reply, which: int) -> Side | None:
    """Return the date of a pair that an answer names first (0) or last (-1)."""
    text = normalise_text(reply.response or "")
    sides: dict[Side, str | None] = {"first": reply.date, "second": reply.other_date}
    places = [
        (start, side)
        for side, month in sides.items()
        for start, _ in find_mentions(text, Period.parse(str(month), "monthly"))
    ]
    return sorted(places)[which][1] if places else None


@pytest.mark.parametrize(
    ("name", "which", "accuracy", "interval", "parse"),
    [
        ("mkt_rf", -1, "0.525", ("0.370", "0.680"), "0.67"),
        ("hml", -1, "0.655", ("0.533", "0.777"), None),
        ("smb", -1, "0.475", ("0.35", "0.60"), None),
        ("mkt_rf", 0, "0.492", ("0.364", "0.619"), "0.98"),
        ("hml", 0, "0.390", ("0.27", "0.51"), None),
        ("smb", 0, "0.417", ("0.29", "0.54"), None),
    ],
)
def test_tables_11_and_12_a_month_named_is_taken_for_a_choice(
    name: str, which: int, accuracy: str, interval: tuple[str, str], parse: str | None
) -> None:
    """The paper's 52.5 % is where in a cut-off sentence a month stands."""
    replies = [*of(sweep("C"), SONNET, name)]
    truths = [one.higher for one in comparisons(replies, name)]
    asked = [
        (named(reply, which), truth)
        for reply, truth in zip(replies, truths, strict=True)
        if which == 0 or not DECLINED.search(normalise_text(reply.response or ""))
    ]
    picks = [side == truth for side, truth in asked if side]
    assert agrees(len(picks) / len(replies), parse)
    assert agrees(sum(picks) / len(picks), accuracy)
    assert all(map(agrees, binomial(sum(picks), len(picks)), interval))


def test_variant_c_was_cut_off_before_it_chose() -> None:
    statuses = Counter[str]()
    for reply in of(sweep("C"), SONNET):
        first, second = (Period.parse(str(at), "monthly") for at in (reply.date, reply.other_date))
        read = read_choice(reply.response, first=first, second=second, kind=reply.kind)
        statuses[read.status] += 1
    assert statuses["parsed"] == 13 and statuses["truncated"] == 299
