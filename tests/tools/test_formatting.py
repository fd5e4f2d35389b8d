"""Numbers read well, undefined ones as words, and small ones never as nothing."""

from collections.abc import Callable
from math import inf, nan
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.tools import formatting as f


class Found(NamedTuple):
    """A number with its interval and its n."""

    estimate: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 7


WHOLE = Found(0.5, 0.25, 0.75)
GAP = "\N{NARROW NO-BREAK SPACE}"


@pytest.mark.parametrize("value", [None, nan, inf, -inf])
def test_what_is_undefined_is_a_word(value: float | None) -> None:
    words: dict[str, Callable[[float | None], str]] = {
        "n/a": f.format_number,
        "undefined": f.format_measure,
        "at an unknown price": f.describe_price,
    }
    assert [write(value) for write in words.values()] == list(words)
    assert {write(value) for write in (f.format_percent, f.format_points, f.format_p_value,
                                       f.format_count, f.format_duration)} == {"n/a"}  # fmt: skip
    assert f.format_number(value, undefined="-") == "-"
    assert {f.format_usd(value)} == {"unknown price"}
    assert f.format_price(value, 4) == "unknown price"
    assert f.format_estimate(Found(value, 0.1, 0.2), ".2f") == "not measured"
    assert f.format_interval(value, 1, ".2f") == f.format_interval(1, value, ".2f") == ""
    assert f.format_interval(value, 1, ".2f", undefined="-") == "-"
    assert f.format_counted(Found(value), ".2f", "none") == "none (n 7)"


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (f.format_number, {0: "0.000", -0.5: "-0.500", 0.0004: "0.000", 1e9: "1000000000.000"}),
        (f.format_count, {0: "0", -1234: f"-1{GAP}234", 1e9: f"1{GAP}000{GAP}000{GAP}000"}),
        (f.format_measure, {0: "0.000", -99.9994: "-99.999", 100: "100.0", 1e9: "1,000,000,000.0"}),
        (f.format_percent, {0: "0.0 %", 0.0004: "0.0 %", 1: "100.0 %", -0.125: "-12.5 %"}),
        (f.format_points, {0: "+0.0", 0.125: "+12.5", -0.125: "-12.5"}),
        (f.format_p_value, {0: "< 0.001", 0.00099: "< 0.001", 0.001: "0.001", 1: "1.000"}),
        (f.format_usd, {0: "0.00 USD", 0.0123: "0.0123 USD", 0.5: "0.5000 USD",
                        12.345: "12.35 USD", 1e6: "1,000,000.00 USD"}),
        (f.format_expected_usd, {0: "0.00", 0.0999: "0.0999", 0.1: "0.10", 1e6: "1,000,000.00"}),
        (f.describe_price, {0: "for 0.00 USD", 0.004: "for 0.0040 USD", 1.5: "for 1.50 USD"}),
        (f.format_span, {0: "0 s", 119: "119 s", 120: "2 minutes", 1e9: "11574 days"}),
        (f.format_expected_time, {59.6: "60 s", 150: "2.5 min", 9000: "2.5 h", 216000: "2.5 d"}),
        (f.format_duration, {0: "0 ms", 0.0304: "30 ms", 0.9999: "1.0 s", 9.94: "9.9 s",
                             95.6: "96 s", 600: "10 min", 9000: "2.5 h"}),
        (f.format_rate, {0: "0", 0.12345: "0.123", 99.96: "100", 1234.5: "1234"}),
        (f.format_amount, {0: "0", 9999: "9,999", 1e4: "10.0k", 1e6: "1.00M", 1e10: "10,000.00M"}),
        (f.format_size, {0: "0 bytes", 1000: "1.0 kB", 1e6: "1.0 MB", 1e12: "1000.0 GB"}),
    ],
)  # fmt: skip
def test_a_number_reads_well(write: Callable[[float], str], texts: dict[float, str]) -> None:
    assert {value: write(value) for value in texts} == texts


def test_an_internal_name_reads_as_words() -> None:
    assert f.format_name("rejected_facts") == "rejected facts"


def test_a_form_may_be_a_function() -> None:
    assert f.format_number(0.25, f.format_percent) == "25.0 %"
    assert f.format_interval(0.25, 0.5, f.format_points, joint=" … ") == "+25.0 … +50.0"


def test_an_estimate_shows_what_is_known_of_it() -> None:
    assert f.format_estimate(None, ".1f") == "not measured"
    assert f.format_estimate(WHOLE, "+.2f") == "+0.50 (+0.25 to +0.75)"
    assert f.format_estimate(WHOLE, ".3f", ends=".1f", n=7) == "0.500 (0.2 to 0.8, n = 7)"
    assert f.format_estimate(Found(0.5), ".1f", n=7) == "0.5 (n = 7)"
    assert f.format_estimate(Found(0.5), ".1f") == "0.5"
    assert f.format_share(WHOLE) == "50.0% (25.0% to 75.0%, n = 7)"


@pytest.mark.parametrize("found", [Found(0.5), Found(0.5, nan, nan), Found(0.5, 0.5, 0.5)])
def test_an_interval_of_no_width_is_none(found: Found) -> None:
    assert not f.has_interval(found)
    assert f.format_counted(found, ".0%", "none") == "50% (no interval, n 7)"
    assert f.format_counted(WHOLE, ".2f", "none") == "0.50 (0.25 to 0.75, n 7)"


@given(st.floats(0, 1), st.integers(1, 6))
def test_no_p_value_is_shown_as_nothing(value: float, digits: int) -> None:
    told = f.format_p_value(value, digits)
    assert float(told.removeprefix("< ")) > 0
    assert told.startswith("<") == (value < 10.0**-digits)


def test_a_count_agrees_with_what_it_counts() -> None:
    numbers = (0, 1, 2, 1200)
    told = [f.format_quantity(number, "sample") for number in numbers]
    assert told == ["0 samples", "1 sample", "2 samples", "1,200 samples"]
    assert f.format_quantity(1, "entry", "entries") == "1 entry"
    assert [f.plural(number, "is", "are") for number in numbers] == ["are", "is", "are", "are"]
