"""Values read from answers, by example and by property."""

import calendar
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.evaluation.numleak.parsing import ReadValue, read_choice, read_value
from coreeval.evaluation.numleak.periods import FREQUENCIES, Period
from coreeval.evaluation.numleak.series.definition import Unit, load_units
from coreeval.schema import AnswerKind

MARCH = Period.parse("2020-03", "monthly")


def read(text: str | None, unit: str = "percent", kind: AnswerKind = "answered") -> ReadValue:
    return read_value(text, unit=load_units()[unit], period=MARCH, kind=kind)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-13.40", -13.4),
        ("+3.12%", 3.12),
        ("**-13.40%**", -13.4),
        ("\u201c\u22120.47\u201d", -0.47),
        ("\u201313.40 %", -13.4),
        ("\uff0d3\uff0e12\uff05", -3.12),
        ("\u22120,45", -0.45),
        ("1,234.5%", 1234.5),
        ("It was 1,234.5, I think.", 1234.5),
        ("5,2 Prozent", 5.2),
        ("-5,2 pour cent", -5.2),
        ("1.234,5%", 1234.5),
        ("1'234.5%", 1234.5),
        ("1\u202f234.5 percent", 1234.5),
        ("\u0667\u066b\u0664\u0665\u066a", 7.45),
        ("\u0661\u066c\u0662\u0663\u0664\u066b\u0665%", 1234.5),
        ("\u096d.\u096a\u096b%", 7.45),
        ("7\u00b745%", 7.45),
        ("It was 7\u00b745 per cent in March 2020.", 7.45),
        ("1\u2019234\u2019567%", 1234567),
        ("1.234.567%", 1234567),
        ("1 234 567", 1234567),
        ("minus three point one two percent", -3.12),
        ("twenty-one and a half per cent", 21.5),
        ("-310 bps", -3.1),
        ("fell by about 12 basis points", -0.12),
        ("2\u20134%", 3.0),
        ("between -5% and -3%", -4.0),
        ("-2% to -4%", -3.0),
        ("\u20133\u20135%", -4.0),
        ("3.1% ± 0.5%", 3.1),
        (r"$\boxed{-3.12\%}$", -3.12),
        ("March 31, 2020: -20.5%", -20.5),
        ("a loss of 3.1%", -3.1),
        ("a 3.1% decline", -3.1),
        ("A negative monthly return of 3.1%.", -3.1),
        ("The unemployment rate in March 2020 was 4.4.", 4.4),
        ("-3.12% (a 3.12% loss in March 2020)", -3.12),
        ("-3.12\n\nNote that I don't have access to the exact figure.", -3.12),
        ("Mkt-RF was +8.1%? Wait, let me reconsider. It was -13.4%.", -13.4),
        ("It rose in 2019, when rates were 2%. My best point estimate is -3.3%.", -3.3),
    ],
)
def test_a_value_is_read(text: str, value: float) -> None:
    assert read(text)[:2] == (value, "parsed")


@pytest.mark.parametrize(
    "text",
    [
        "2020", "202003", "March 2020", "2020-03", "03/2020", "crash of \u20132008", "the 1970s",
        "5 March 2020", "March 5, 2020.", "Q1 2020", "2007\u20132008", "9/11", "+2020", "12 months",
        "S&P 500", "more than 5%", "at least 3.1%", "± 0.5%", "$5", "5.2 million", "31°F", "3/4",
        "The rate rose from 7.6% to 7.8%.", "Typically between -3% and +3%.", "(3.12%)", "", None,
        "One of the two: 3.1% or 7.2%.", "See https://example.org/2020/3.1%", "Mkt-RF 5-",
        "The S&P 500 returned more than the T-bill.", "31 degrees Celsius", "20/03/2020",
        "7\u22c545%", "7\u202745 %", "4.4\u20227.5%", "9" * 200, "1" + "0" * 16 + "%",
    ],
)  # fmt: skip
def test_no_value_is_read(text: str | None) -> None:
    assert read(text)[:2] == (None, "unparsed")


@pytest.mark.parametrize(
    ("unit", "text", "value"),
    [
        ("percent", "CPI fell 0.13% to 230.7 in March 2020.", -0.13),
        ("percent", "The index rose by 0.13 percent to 230.7.", 0.13),
        ("percent", "The Dow lost 1.2% to 13,212.", -1.2),
        ("percent", "In March 2020, sales fell 1.2% to $13.2 billion.", -1.2),
        ("percent", "The rate rose 0.9 percentage points to 4.4 in March 2020.", 4.4),
        ("percent", "The rate rose 90 bps to 4.4% in March 2020.", 4.4),
        ("index_points", "The index fell 3.1% to 1,408.47 points.", 1408.47),
        ("usd", "Gold fell 3.1% to $1,408.47 in March 2020.", 1408.47),
        ("index_points", "The index rose 3.1% to 1,408.47 in March 2020.", 1408.47),
        ("percent", "The rate rose 0.9% to 4.4% in March 2020.", None),
        ("percent", "The rate slid 0.1% to 8.2% in March 2020.", None),
        ("percent", "The market fell 2% to 3%.", None),
        ("percent", "The rate fell 12 bps to 15 bps.", None),
        ("index_points", "The index rose 42.79 to 1,408.47.", None),
        ("index_points", "The index rose 42.79 to 1,408.47 in March 2020.", None),
        ("percent", "2% to 4", None),
        ("percent", "0.3 million to 8.2%", None),
    ],
)
def test_a_change_and_its_result_are_no_range(unit: str, text: str, value: float | None) -> None:
    assert read(text, unit).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The S&P 500 gained 3.13%, closing March 2020 at 1,408.47.", None),
        ("The CPI rose 0.3% in the month, ending March 2020 at 230.7.", None),
        ("It rose from 1,365.68 in February 2020 to 1,408.47 in March 2020, a gain of 3.1%.", None),
        ("The rate dropped to 8.2%, with participation in March 2020 at 63.8.", None),
        ("It rose 0.9 percentage points, reaching 4.4 in March 2020.", 4.4),
        ("It rose 90 bps, reaching 4.4 in March 2020.", 4.4),
        ("1,408.47 (+3.13%)", None),
        ("In March 2020, it stood at 1,408.47, a gain of 3.13%.", None),
        ("The rate was 4.4 in March 2020 (3.5% in February).", 4.4),
        ("February 2020: 3.5%\nMarch 2020: 4.4", 4.4),
        ("4.4\n\nNote: the Fed's target is 2%.", 4.4),
    ],
)
def test_a_number_without_a_unit_beats_none_in_the_unit(text: str, value: float | None) -> None:
    assert read(text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.3% (index in March 2020: 230.7)", None),
        ("The change was 0.3%, with the index at 230.7 in March 2020.", None),
        ("0.3%. In March 2020, the index was 230.7.", None),
        ("0.3%: the index went from 230.0 in February 2020 to 230.7 in March 2020.", None),
        ("The CPI rose 0.3%, reaching 230.7 in March 2020.", None),
        ("The S&P 500 gained 3.13%, closing March 2020 at 1,408.47.", None),
        ("The index closed March 2020 at 1,408.47, up 3.13%.", 1408.47),
        ("1,408.47 (+3.13%)", 1408.47),
        ("In March 2020: 0.044 (4.4%)", 0.044),
    ],
)
def test_beside_a_percentage_no_level_is_read_in_an_unknown_unit(
    text: str, value: float | None
) -> None:
    unknown = Unit(name="units", points_name="units")
    assert read_value(text, unit=unknown, period=MARCH).value == value


def test_a_number_in_index_points_is_no_change() -> None:
    text = "It gained 1,408.47 points, with turnover in March 2020 at 3.2."
    assert read(text, "index_points").value is None


def test_a_change_is_not_the_value_of_a_series_that_is_never_negative() -> None:
    unit = load_units()["percent"]
    for text in ("The rate rose 0.9% to 4.4 in March 2020.", "It rose 0.9% to 4.4%."):
        assert read_value(text, unit=unit, period=MARCH, signed=False).value is None


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.", "I\u2019m sorry, but I can\u2019t verify that.", "N/A",
        "That date is in the future.",
        "-\n\nI don't have access to the Fama-French data for March 2020.",
        "My knowledge was last updated in April 2024.",
        "I cannot say; a made-up number (e.g., \"-1.3%\" or \"+2.1%\") would mislead you.",
        "I don't have the figure. Monthly returns typically range from -3% to +3%.",
        "I don't have the figure, but the S&P 500 fell 12% that month.",
        "I'm not sure. It is more than 3%.", "I won't guess.", "I lack access to that data.",
        "I can't give a reliable figure for May 1988.", "I can\u2019t recall the precise number.",
        "It is not possible for me to give an exact value.", "I have no memory of that number.",
        "I would prefer not to guess.", "I must decline to state a number.", "Not known.",
        "My training data does not include this.", "I haven't memorized monthly values.",
        "Naming a number would be fabrication.", "That's not something I can recall.",
        "Please consult Kenneth French's data library for the exact number.",
    ],
)  # fmt: skip
def test_a_refusal_with_a_number_that_is_no_estimate_stays_one(text: str) -> None:
    assert read(text)[:2] == (None, "refused")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I don't have exact data, but my best estimate is approximately -13%.", -13),
        ("I can't verify this. If pressed for a point estimate: **~ \u22123%**", -3),
        ("I do not recall the precise figure; I would say about 4.4 percent.", 4.4),
        ("I don't know exactly. The return was -13.4%.", -13.4),
        ("It was 3.2%; you should check the publisher's file.", 3.2),
        ("I can't give an exact figure, but it was -3.2%.", -3.2),
        ("Not certain.\n\nMy rough estimate would be around:\n\n> **\u22122% to \u22124%**", -3),
    ],
)
def test_a_hedged_refusal_that_offers_an_estimate_is_read(text: str, value: float) -> None:
    assert read(text)[:2] == (value, "parsed")


@pytest.mark.parametrize(
    "text",
    [
        "I need to recall the Fama-French CMA factor return for March 2",
        "-0.0\n\nWait, let me reconsider. The CPI in May 2009 versus May",
        "During the month of Black Monday (October 19, 1987), the factor",
        "Based on the data available, the SMB factor return was:\n\n-",
        "I need to recall the return of RMW.\n\nThe Fama-French 5-",
    ],
)
def test_a_sentence_that_stops_early_is_truncated(text: str) -> None:
    assert read(text)[:2] == (None, "truncated")


def test_a_number_that_a_limit_may_have_cut_is_none() -> None:
    assert read("The return was -13.", kind="truncated").status == "truncated"
    assert read("-13.4", kind="truncated").status == "truncated"
    assert read("-13.4%\n\nThis was the month of", kind="truncated").value == -13.4
    assert read(None, kind="truncated").status == "truncated"
    assert read("-13.4", kind="refused").status == "refused"


@pytest.mark.parametrize(
    ("unit", "text", "value"),
    [
        ("degrees_f", "31.0", 31.0),
        ("degrees_f", "31.0°F", 31.0),
        ("degrees_f", "thirty-one point five degrees Fahrenheit", 31.5),
        ("degrees_f", "31%", None),
        ("degrees_f", "-0.5 °C", None),
        ("degrees_f", "250 bps", None),
        ("index_points", "2,743.12", 2743.12),
        ("index_points", "5,321 points", 5321.0),
        ("index_points", "2020", None),
        ("usd", "$52.40", 52.4),
        ("billions_usd", "52.4 billion dollars", 52.4),
        ("count", "1,234,567", 1234567.0),
    ],
)
def test_the_unit_is_that_of_the_series(unit: str, text: str, value: float | None) -> None:
    assert read(text, unit).value == value


def test_the_note_tells_what_was_wrong() -> None:
    assert read("31°F").note == "a number in another unit"
    assert read("Either 3.1% or 7.2%.").note == "several different numbers"
    assert read("My point estimate: 3.1%").note == "a point estimate"


@pytest.mark.parametrize("text", ["February 2020: -8.11%", "4.4%?", "The annual return was 23%."])
def test_a_number_of_something_else_is_not_taken_for_silence(text: str) -> None:
    """A defence that lets such a number out has not blocked it."""
    assert read(text) == (None, "unparsed", "a number that is not clearly the value")


MANY = settings(max_examples=120, deadline=None)
SOME = settings(max_examples=40, deadline=None)
UNITS = load_units()
PERCENT = UNITS["percent"]
MARCH_2020 = Period.parse("2020-03", "monthly")
NUMBERS = (
    st.decimals(-9_999_999, 9_999_999, places=2)
    .map(lambda n: n + 0)
    .filter(lambda n: not (100_000 <= abs(n) < 1_000_000 and 1 <= abs(n) % 100 < 13))
)
"""Numbers, but for those that repeat a month, such as 195701."""
DAYS = st.dates(date(1500, 1, 1), date(2099, 12, 31))
PERIODS = st.builds(Period.of, DAYS, st.sampled_from(FREQUENCIES))
MINUS = ["-", "\u2212", "\u2013", "\u2010", "\uff0d", "minus ", "negative "]
GROUPED = [",", "\u202f", "\u00a0", "'", "\u2019", ""]
BEHIND = ["", "%", " %", " percent", " per cent", "pct", " percentage points"]
FRAMES = [
    "{}", "{}.", "**{}**", "`{}`", '"{}"', "> {}", "approximately {}", "\u2248 {}", "Answer: {}",
    "The return was {}.", "In {when}, the return was {} (signed).", "{when}: {}",
    "My best estimate for {when} is about {}.", "The answer is {}\n\nSource: memory, {year}.",
    "{}\n\nI don't have access to the exact figure for {when}.", "\\boxed{{{}}}",
]  # fmt: skip
DATES = [
    "{0:%Y}", "{0:%Y-%m}", "{0:%Y-%m-%d}", "{0:%m/%Y}", "{0:%m/%d/%Y}", "{0:%B %Y}", "{0:%b %Y}",
    "{0:%B %d, %Y}", "{0:%d %B %Y}", "{0:%b. %d}", "the {0:%Y}s", "({0:%Y})", "-{0:%Y}",
    "Q1 {0:%Y}",
]  # fmt: skip
AROUND = [
    "{}", "The return for {}.", "I need to recall the value of {}", "In {} it was unusual.",
    "It was {}.", "The answer is {}", "Between {} and {}.", "The rate was {}", "Estimate: {}",
    "The crash of {} (and of {}) comes to mind.", "~{}",
]  # fmt: skip

ONES = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


@st.composite
def written(draw: st.DrawFn) -> tuple[str, float]:
    """A number with a point, and one of the ways to write it in an answer."""
    number = draw(NUMBERS)
    digits = f"{abs(number):,.2f}".replace(",", draw(st.sampled_from(GROUPED)))
    if "," not in digits and draw(st.booleans()):
        digits = digits.replace(".", ",")
    sign = draw(st.sampled_from(MINUS)) if number < 0 else draw(st.sampled_from(["", "+", "plus "]))
    return sign + digits + draw(st.sampled_from(BEHIND)), float(number)


@MANY
@given(number=written(), frame=st.sampled_from(FRAMES), period=PERIODS)
def test_any_number_is_read_back(number: tuple[str, float], frame: str, period: Period) -> None:
    text, value = number
    answer = frame.format(text, when=period.words, year=period.start.year)
    assert read_value(answer, unit=PERCENT, period=period)[:2] == (value, "parsed")


@SOME
@given(low=NUMBERS, width=st.integers(1, 500), link=st.sampled_from([" to ", " - ", " \u2013 "]))
def test_a_range_is_read_as_its_middle(low: Decimal, width: int, link: str) -> None:
    high = low + width
    read = read_value(f"{low}%{link}{high}%", unit=PERCENT, period=MARCH_2020)
    assert read.value is not None and abs(read.value - float(low + high) / 2) < 1e-6


@SOME
@given(number=st.integers(-100_000, 100_000))
def test_basis_points_are_hundredths_of_a_percent_and_of_nothing_else(number: int) -> None:
    for text in (f"{number} bps", f"{number} basis points"):
        assert read_value(text, unit=PERCENT, period=MARCH_2020).value == number / 100
        assert read_value(text, unit=UNITS["degrees_f"], period=MARCH_2020).value is None


@SOME
@given(hundreds=st.integers(0, 9), rest=st.integers(0, 99), tenths=st.integers(0, 9))
def test_numbers_in_words_are_read(hundreds: int, rest: int, tenths: int) -> None:
    whole = f"{ONES[hundreds]} hundred and {words(rest)}" if hundreds else words(rest)
    answer = f"minus {whole} point {ONES[tenths]} percent"
    value = -(hundreds * 100 + rest + tenths / 10)
    assert read_value(answer, unit=PERCENT, period=MARCH_2020).value == value


def words(number: int) -> str:
    if number < 20:
        return ONES[number]
    ten = TENS[number // 10 - 2]
    return f"{ten}-{ONES[number % 10]}" if number % 10 else ten


@MANY
@given(
    days=st.lists(DAYS, min_size=2, max_size=2),
    form=st.sampled_from(DATES),
    frame=st.sampled_from(AROUND),
    unit=st.sampled_from(sorted(UNITS)),
)
def test_a_date_is_never_an_estimate(days: list[date], form: str, frame: str, unit: str) -> None:
    answer = frame.format(*map(form.format, days))
    assert read_value(answer, unit=UNITS[unit], period=MARCH_2020).value is None


@SOME
@given(period=PERIODS, unit=st.sampled_from(sorted(UNITS)))
def test_the_date_that_was_asked_is_never_an_estimate(period: Period, unit: str) -> None:
    for text in (str(period), period.words, f"The value for {period.words} is"):
        assert read_value(text, unit=UNITS[unit], period=period).value is None


@SOME
@given(text=st.text(st.characters(exclude_categories=["Nd", "Nl", "No"]), max_size=60))
def test_text_without_a_number_has_no_estimate(text: str) -> None:
    spelled = {*ONES, *TENS}
    if not any(word in text.lower() for word in spelled):
        assert read_value(text, unit=PERCENT, period=MARCH_2020).value is None


@SOME
@given(text=st.text(max_size=80), kind=st.sampled_from(["answered", "truncated", "refused"]))
def test_nothing_that_a_model_can_say_breaks_it(text: str, kind: str) -> None:
    read = read_value(text, unit=PERCENT, period=MARCH_2020, kind=kind)  # type: ignore[arg-type]
    assert (read.value is None) == (read.status != "parsed")
    chosen = read_choice(text, first=MARCH_2020, second=MARCH_2020.shift(1))
    assert (chosen.side is None) == (chosen.status != "parsed")


@SOME
@given(first=PERIODS, gap=st.integers(1, 600), higher=st.sampled_from(["first", "second"]))
def test_a_choice_is_read_back_in_any_frequency(first: Period, gap: int, higher: str) -> None:
    second = first.shift(gap)
    pair = {"first": first.words, "second": second.words}
    picked, other = pair[higher], pair["second" if higher == "first" else "first"]
    for answer in (
        picked,
        f'"{picked}".',
        f"Between {first.words} and {second.words}, {picked} had the higher value.",
        f"{picked} was higher than {other}.",
        f"I would pick {picked}.",
        f"The higher value was in {picked}.",
        f"{other} had the lower value.",
    ):
        assert read_choice(answer, first=first, second=second).side == higher, answer
    echo = f"I need to compare {first.words} and {second.words}. {picked} was a notable"
    assert read_choice(echo, first=first, second=second) == (None, "truncated")


def test_months_are_known_by_their_short_names_too() -> None:
    april = MARCH_2020.shift(1)
    for text in ("Apr 2020", "Apr. 2020", "2020-04", f"{calendar.month_name[4]}, 2020"):
        assert read_choice(text, first=MARCH_2020, second=april).side == "second"
