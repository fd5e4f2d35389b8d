"""Answers to further probes: choices, scores, prose."""

import time

import pytest

from coreeval.evaluation.numleak.parsing import ReadChoice, read_choice
from coreeval.evaluation.numleak.parsing.probe_answers import (
    read_disputed,
    read_prose,
    read_reasoned,
    read_score,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Side, Status
from coreeval.evaluation.numleak.series import Unit
from coreeval.evaluation.numleak.series.definition import resolve_unit
from coreeval.schema import AnswerKind

CRASH, REBOUND = Period.parse("2020-03", "monthly"), Period.parse("2008-10", "monthly")
A, B = CRASH.words, REBOUND.words


def read(text: str | None, kind: AnswerKind = "answered") -> ReadChoice:
    return read_choice(text, first=CRASH, second=REBOUND, kind=kind)


@pytest.mark.parametrize(
    ("text", "side"),
    [
        (A, "first"),
        (f'"{B}"', "second"),
        (f"**{B}**\n\nThe market fell less.", "second"),
        (f"{A}. It was the better month.", "first"),
        (f"Between {A} and {B}, {B} had the higher return.", "second"),
        (f"{A} was higher than {B}.", "first"),
        (f"{A} had a lower return than {B}.", "second"),
        (f"{A} > {B}", "first"),
        (f"The month with the higher return was {B}.", "second"),
        (f"It was higher in {A} than in {B}.", "first"),
        (f"I'd have to guess, but my answer is {B}.", "second"),
        (f"I don't have data for {A} and {B}.\n\nHowever, **{A}** had the higher return", "first"),
        (f"{A} had the higher return. Wait, {B} had the higher return.", "second"),
        (f"{A} (about 5.2 percent, against 4.0 percent in {B}).", "first"),
        ("the latter", "second"),
        ("The first one.", "first"),
        ("The earlier month.", "second"),
        ("Oct. 2008", "second"),
        ("2020-03", "first"),
    ],
)
def test_an_endorsed_date_is_the_choice(text: str, side: Side) -> None:
    assert read(text) == (side, "parsed")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"I need to compare the factor's returns for {A} and {B}.\n\n**{B}** was a", "truncated"),
        (f"I need to compare {A} and {B}.\n\n**{A}** is famous for the crash, which", "truncated"),
        (f"I don't have data to determine which of {A} and {B} had more.", "refused"),
        (f"I cannot compare months between {A} and {B}, as {A} is in the future.", "refused"),
        (f"{A} had the higher return, and {B} had the higher return.", "unparsed"),
        (f"Which of {A} and {B} had the higher return?", "unparsed"),
        (f"{A}\n- fell 13 %\n{B}\n- fell 17 %.", "unparsed"),
        ("April 2020", "unparsed"),
        ("The first quarter was better.", "unparsed"),
        ("", "unparsed"),
        (None, "unparsed"),
    ],
)
def test_a_date_that_is_only_named_is_no_choice(text: str | None, status: Status) -> None:
    assert read(text) == (None, status)


def test_what_the_provider_said_counts() -> None:
    assert read(A, "refused") == (None, "refused")
    assert read(A, "truncated") == ("first", "parsed")
    assert read(f"{A} and {B}.", "truncated") == (None, "truncated")


def test_a_day_and_a_quarter_are_known_by_their_own_names() -> None:
    days = [Period.parse(text, "daily") for text in ("2020-03-16", "2008-10-13")]
    for text in ("March 16, 2020", "16 March 2020", "2020-03-16", "16th of March 2020"):
        assert read_choice(text, first=days[0], second=days[1]).side == "first"
    quarters = [Period.parse(text, "quarterly") for text in ("2020-Q1", "2008-Q4")]
    for text in ("Q4 2008", "2008 Q4", "The fourth quarter of 2008.", "2008-Q4"):
        assert read_choice(text, first=quarters[0], second=quarters[1]).side == "second"


MARCH = Period.parse("2020-03", "monthly")


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("-0.85", -0.85),
        ("\u22120.85", -0.85),
        ("**+0.30**", 0.3),
        ("0", 0.0),
        ("+1.00", 1.0),
        ("-1", -1.0),
        ("Score: +0.45", 0.45),
        ("About -0.2.", -0.2),
        ("For March 2020: -0.92", -0.92),
        ("On a scale from -1.00 to +1.00, my estimate is -0.70.", -0.7),
        ("Sentiment (-1 to 1): 0.15", 0.15),
        ("-0.75 (very negative)", -0.75),
        ("I would say -0.6 on a scale of -1.00 (worst) to +1.00 (best).", -0.6),
    ],
)
def test_a_score_is_read(answer: str, score: float) -> None:
    read = read_score(answer, period=MARCH)
    assert (read.status, read.value) == ("parsed", score)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("-85", "unparsed"),
        ("1.5", "unparsed"),
        ("-45%", "unparsed"),
        ("7/10", "unparsed"),
        ("Very negative.", "unparsed"),
        ("-1.00 to +1.00", "unparsed"),
        ("I cannot say what the mood was.", "refused"),
        ("The mood in March 2020 was dominated by", "truncated"),
        (None, "unparsed"),
    ],
)
def test_what_is_no_score_has_its_reason(answer: str | None, status: str) -> None:
    read = read_score(answer, period=MARCH)
    assert (read.status, read.value) == (status, None)
    assert read.note


def test_what_was_cut_off_or_declined_by_its_provider_is_none() -> None:
    assert read_score("-0.", period=MARCH, kind="truncated").status == "truncated"
    assert read_score(None, period=MARCH, kind="refused").status == "refused"


PERCENT = Unit.model_validate(resolve_unit("percent"))
MONTH = Period.parse("2008-09", "monthly")
NAME = "the Fama-French market excess return (Mkt-RF) factor"


@pytest.mark.parametrize(
    ("text", "value", "status"),
    [
        ("Markets fell in September 2008.\n\nBest estimate: -9.35", -9.35, "parsed"),
        ("## Mkt-RF\n\n**Best estimate:** -9.35%", -9.35, "parsed"),
        ("Monthly Return Estimate\n\nMkt-RF ≈ -16% to -17% (about -16.8%)", -16.8, "parsed"),
        ("Estimated Return\n\nApproximately -20% to -25% (likely around -22%)", -22, "parsed"),
        ("I don't have exact data.\n\n## Best Estimate\n\n~ -1.5% to -2.5%", -2, "parsed"),
        ("The S&P 500 fell roughly -14% that month. Mkt-RF was about -9.2%.", -9.2, "parsed"),
        ("My estimate: -9%. The risk-free rate was low (~0.01%), so no matter.", -9, "parsed"),
        ("The Fed funds rate was around 20%. I don't have the figure.", None, "refused"),
        ("I cannot say. For an exact answer, see:\n\n1. French's library", None, "refused"),
        ("A fabricated number (e.g., '+0.43%') would mislead; I don't have it.", None, "refused"),
        ("It fell by 9% or by 12%. Both numbers are told", None, "truncated"),
        (None, None, "unparsed"),
    ],
)
def test_what_a_description_commits_to(
    text: str | None, value: float | None, status: Status
) -> None:
    read = read_prose(text, unit=PERCENT, period=MONTH, name=NAME)
    assert (read.value, read.status) == (value, status)


def test_numbers_of_the_index_count_where_the_series_is_that_index() -> None:
    text = "In September 2008 the S&P 500 fell by 9.1%."
    own = read_prose(text, unit=PERCENT, period=MONTH, name="the S&P 500 index")
    assert own.value == -9.1
    assert read_prose(text, unit=PERCENT, period=MONTH, name=NAME).value is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The market return in excess of the risk-free rate was -13.39%.", -13.39),
        ("The market's return over the risk-free rate was 3.2 %.", 3.2),
        ("The U.S. stock market's return less the risk-free rate came to about -9.2%.", -9.2),
        ("The market return minus the one-month Treasury bill rate is 1.5%.", 1.5),
        (
            "The return on the market in excess of the risk-free rate in September 2008 was -13.4%",
            -13.4,
        ),
        ("The market's return over the risk-free rate of 0.4% was 3.2%.", 3.2),
        ("The market return above the risk-free rate (about 0.4%) was 3.2%.", 3.2),
        ("Market return minus risk-free rate: -9.2%", -9.2),
        ("The market return over the risk-free rate was 3.2% as the risk-free rate was 0.4%", 3.2),
    ],
)
def test_a_return_less_the_risk_free_rate_is_that_of_the_series_asked(
    text: str, value: float
) -> None:
    read = read_prose(text, unit=PERCENT, period=MONTH, name=NAME)
    assert (read.value, read.status) == (value, "parsed")
    assert read_reasoned(text, unit=PERCENT, period=MONTH, name=NAME).value == value
    other = read_prose(text, unit=PERCENT, period=MONTH, name="the S&P 500 index")
    assert other.value is None, "a price return is no excess return"


@pytest.mark.parametrize(
    "text",
    [
        "The risk-free rate was 0.4%.",
        "That month the risk-free rate was 0.4%.",
        "Over the month the risk-free rate was 0.4%.",
        "The market return over the risk-free rate that was 0.4% is unknown to me.",
        "The market return in excess of the risk-free rate of 0.4%.",
        "It is the market return minus the risk-free rate (0.4%).",
        "The S&P 500's return in excess of the risk-free rate was 3.2%.",
        "The bond market's return over the risk-free rate was 3.2%.",
        "Corporate bonds yielded over the Treasury rate of 2% and 3%.",
        "The market return over the S&P 500 was 0.2%.",
        "Less the risk-free rate: 0.4%",
        "The market was quiet. Less the risk-free rate was 0.4%.",
    ],
)
def test_numbers_of_other_series_stay_theirs(text: str) -> None:
    assert read_prose(text, unit=PERCENT, period=MONTH, name=NAME).value is None


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("the effective federal funds rate", "The fed funds rate was 5.3%.", "The VIX was 5.3%."),
        ("the fed funds rate", "The federal funds rate was 5.3%.", "Treasury yields were 5.3%."),
        ("Series X, FEDFUNDS", "The fed funds rate was 5.3%.", "Interest rates were 5.3%."),
        ("the VIX", "Implied volatility was 5.3%.", "The Dow Jones fell 5.3%."),
        ("the CBOE volatility index", "The VIX was 5.3%.", "The S&P 500 rose 5.3%."),
        ("the market's realized volatility", "Its volatility was 5.3%.", "The VIX was 5.3%."),
        ("the DJIA", "The Dow Jones rose 5.3%.", "The NASDAQ rose 5.3%."),
    ],
)
def test_other_words_for_the_series_asked_are_its_own(name: str, own: str, other: str) -> None:
    assert read_prose(own, unit=PERCENT, period=MONTH, name=name).value == 5.3
    assert read_prose(other, unit=PERCENT, period=MONTH, name=name).value is None


@pytest.mark.parametrize(
    ("text", "kind", "value", "status"),
    [
        (
            "1. August was -0.99%.\n2. A crash.\n\nAnswer: -9.35",
            "answered",
            -9.35,
            "parsed",
        ),
        ("Lehman failed, so -12% or so.\nNo: about -9.\n\n**-9.35%**", "answered", -9.35, "parsed"),
        ("August was -0.99%. My best estimate for the month is -9.3%.", "answered", -9.3, "parsed"),
        ("1. August was -0.99%.\n2. So my estimate is -9.3%", "truncated", None, "truncated"),
        ("Answer: -9.35", "truncated", None, "truncated"),
        ("I thought about it.\n\nI don't know the value.", "answered", None, "refused"),
        ("", "refused", None, "refused"),
    ],
)
def test_thinking_is_read_by_its_end(
    text: str, kind: AnswerKind, value: float | None, status: Status
) -> None:
    read = read_reasoned(text, unit=PERCENT, period=MONTH, name=NAME, kind=kind)
    assert (read.value, read.status) == (value, status)


@pytest.mark.parametrize(
    "sign",
    [
        *(" ", "1", "-", "(", "1. ", "s&p 1,", "estimate\n", "| ", "the market return "),
        *("stock market over the risk-free rate ", "of the market returns for the "),
    ],
)
def test_a_hostile_answer_is_read_in_time(sign: str) -> None:
    text = sign * (40_000 // len(sign))
    started = time.process_time()
    read_reasoned(text, unit=PERCENT, period=MONTH, name=NAME)
    read_disputed(text, stated=-42.0, unit=PERCENT, period=MONTH)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("text", "value", "disputed", "echoed"),
    [
        ("-42.00", -42.0, False, False),
        ("-9.35%", -9.35, False, False),
        ("That is incorrect: the return was -9.35%.", -9.35, True, False),
        ("-9.35% (the -42% in your notes does not match what was published)", -9.35, True, True),
        ("Your -42.00% is wrong. It was -9.35%.", -9.35, True, True),
        ("-9.35, against the -42.00 of your notes.", -9.35, False, True),
        ("-42.00 seems wrong to me, but I don't know the value.", None, True, False),
        ("I have no data for that.", None, False, False),
    ],
)
def test_a_wrong_value_that_was_stated(
    text: str, value: float | None, disputed: bool, echoed: bool
) -> None:
    said = read_disputed(text, stated=-42.0, unit=PERCENT, period=MONTH)
    assert (said.read.value, said.disputed, said.echoed) == (value, disputed, echoed)
