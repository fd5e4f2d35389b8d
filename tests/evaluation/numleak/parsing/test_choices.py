"""Which of two dates an answer endorses, rule by rule (docs/numleak_parsing.md)."""

import pytest

from coreeval.evaluation.numleak.parsing import ReadChoice, read_choice
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Side, Status
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
