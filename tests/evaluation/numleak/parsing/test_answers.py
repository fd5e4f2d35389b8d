"""Answers in the words of today's models, each with the value that a careful person reads.

A line of `answers.jsonl` is one answer: what was `asked`, the `response`, and the `expected` value
(null: no value can be told). Answers that are not read so are in docs/numleak_parsing.md, "Limits".
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from coreeval.evaluation.numleak.parsing import read_value
from coreeval.evaluation.numleak.parsing.statements import ValueQuery
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.series.catalogue import find_definition
from coreeval.evaluation.numleak.series.definition import load_units, name_unit
from coreeval.evaluation.numleak.series.own_values import PLAIN_UNIT

FILE: Final = Path(__file__).with_name("answers.jsonl")
BUILT_IN: Final = {
    **dict.fromkeys(("sp500", "unrate", "mkt_rf", "cpi_yoy"), "2020-03"),
    "macro_gdp": "2009-Q2",
}
"""The date asked about, by built-in series."""


class Asked(NamedTuple):
    """A series of one's own, and the date asked about."""

    name: str
    unit: str | None
    date: str
    frequency: Frequency
    signed: bool = False


OWN: Final[Mapping[str, Asked]] = {
    "gdp": Asked("the U.S. gross domestic product, GDP, level", "billions_usd", "2020", "annual"),
    "cpi_index": Asked(
        "the consumer price index (CPI-U), CPI, level", "index_points", "2020-03", "monthly"
    ),
    "cpi_unknown": Asked(
        "the consumer price index (CPI-U), CPI, level", None, "2020-03", "monthly"
    ),
    "spx": Asked("the S&P 500 index, S&P 500, closing level", None, "2020-03-16", "daily"),
    "spx_points": Asked(
        "the S&P 500 index, S&P 500, closing level", "index_points", "2020-03-16", "daily"
    ),
    "oslo": Asked("Oslo, mean temperature", "degrees_c", "2020-01", "monthly", signed=True),
    "visitors": Asked("Iceland, number of foreign visitors", "count", "2019", "annual"),
    "gold": Asked("gold, gold, price", "usd", "2020-03", "monthly"),
    "oil": Asked("WTI crude oil, price per barrel", "usd", "2008-07", "monthly"),
    "eurusd": Asked("the exchange rate EUR/USD, EUR/USD, rate", None, "2015-03-16", "daily"),
    "pop": Asked("the population of Germany", "millions of persons", "2020", "annual"),
    "births": Asked("Japan, number of births", "count", "2019", "annual"),
    "yield10": Asked("the 10-year Treasury yield", "percent", "2020-03-09", "daily"),
    "jobs": Asked("nonfarm payroll employment, change", None, "2020-03", "monthly", signed=True),
}


@cache
def query(asked: str) -> ValueQuery:
    if asked in OWN:
        own = OWN[asked]
        unit = PLAIN_UNIT if own.unit is None else load_units().get(own.unit) or name_unit(own.unit)
        return ValueQuery(unit, Period.parse(own.date, own.frequency), own.name, own.signed)
    found = find_definition(asked, base=Path())
    name = ", ".join((found.name, *found.aliases, found.quantity))
    period = Period.parse(BUILT_IN[asked], found.frequency)
    return ValueQuery(found.unit, period, name, found.sign == "signed")


LINES: Final[list[Mapping[str, Any]]] = [
    json.loads(line) for line in FILE.read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['asked']}: {line['response']}")
def test_an_answer_is_read_as_by_a_careful_person(line: Mapping[str, Any]) -> None:
    read = read_value(line["response"], **query(line["asked"])._asdict())
    assert read.value == line["expected"], read
