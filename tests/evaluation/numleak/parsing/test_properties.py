"""Whatever the number and however it is written, it is read back; whatever the date, it is not."""

import calendar
from datetime import date
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.evaluation.numleak.parsing import read_choice, read_value
from coreeval.evaluation.numleak.periods import FREQUENCIES, Period
from coreeval.evaluation.numleak.series.units import known_units

MANY = settings(max_examples=120, deadline=None)
SOME = settings(max_examples=40, deadline=None)
UNITS = known_units()
PERCENT = UNITS["percent"]
MARCH = Period.parse("2020-03", "monthly")
NUMBERS = st.decimals(-9_999_999, 9_999_999, places=2).map(lambda n: n + 0)
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
    read = read_value(f"{low}%{link}{high}%", unit=PERCENT, period=MARCH)
    assert read.value is not None and abs(read.value - float(low + high) / 2) < 1e-6


@SOME
@given(number=st.integers(-100_000, 100_000))
def test_basis_points_are_hundredths_of_a_percent_and_of_nothing_else(number: int) -> None:
    for text in (f"{number} bps", f"{number} basis points"):
        assert read_value(text, unit=PERCENT, period=MARCH).value == number / 100
        assert read_value(text, unit=UNITS["degrees_f"], period=MARCH).value is None


@SOME
@given(hundreds=st.integers(0, 9), rest=st.integers(0, 99), tenths=st.integers(0, 9))
def test_numbers_in_words_are_read(hundreds: int, rest: int, tenths: int) -> None:
    whole = f"{ONES[hundreds]} hundred and {words(rest)}" if hundreds else words(rest)
    answer = f"minus {whole} point {ONES[tenths]} percent"
    value = -(hundreds * 100 + rest + tenths / 10)
    assert read_value(answer, unit=PERCENT, period=MARCH).value == value


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
    assert read_value(answer, unit=UNITS[unit], period=MARCH).value is None


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
        assert read_value(text, unit=PERCENT, period=MARCH).value is None


@SOME
@given(text=st.text(max_size=80), kind=st.sampled_from(["answered", "truncated", "refused"]))
def test_nothing_that_a_model_can_say_breaks_it(text: str, kind: str) -> None:
    read = read_value(text, unit=PERCENT, period=MARCH, kind=kind)  # type: ignore[arg-type]
    assert (read.value is None) == (read.status != "parsed")
    chosen = read_choice(text, first=MARCH, second=MARCH.shifted(1))
    assert (chosen.side is None) == (chosen.status != "parsed")


@SOME
@given(first=PERIODS, gap=st.integers(1, 600), higher=st.sampled_from(["first", "second"]))
def test_a_choice_is_read_back_in_any_frequency(first: Period, gap: int, higher: str) -> None:
    second = first.shifted(gap)
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
    april = MARCH.shifted(1)
    for text in ("Apr 2020", "Apr. 2020", "2020-04", f"{calendar.month_name[4]}, 2020"):
        assert read_choice(text, first=MARCH, second=april).side == "second"
