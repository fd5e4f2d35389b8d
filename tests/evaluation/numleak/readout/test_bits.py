"""Entropy of a value's first tokens, on tables made by hand.

The paper's means of 0.21, 0.78 and 1.14 bits (Table 16) cannot be recomputed: the records of its
entropy probe are not published.
"""

from math import log

import pytest

from coreeval.evaluation.numleak.readout.bits import entropy, read_out
from coreeval.evaluation.numleak.replies import Token
from tests.support.logprobs import FLAT, PEAKED, token, tokens

HALVES, QUARTERS = (0.5, 0.5), (0.25, 0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("shares", "bits"),
    [
        ((1.0, 1e-30), 0.0),
        (HALVES, 1.0),
        (QUARTERS, 2.0),
        ((0.5, 0.25), 1.5),  # a quarter is left over: one more outcome
        ((0.5, 0.25, 0.125, 0.0625, 0.03125), 1.9375),
        ((0.5, 0.5000001), 1.0),  # rounding: nothing is left over
        ((0.25, 0.25, 0.25, 0.125, 0.0625, 0.0625), 2.375),  # the sixth is in the rest
    ],
)
def test_bits_of_one_place(shares: tuple[float, ...], bits: float) -> None:
    assert entropy(token("3", shares)) == pytest.approx(bits, abs=1e-6)


def test_the_token_that_was_said_counts_where_it_is_not_among_the_most_probable() -> None:
    drawn = Token(text="9", logprob=log(0.25), top=(("1", log(0.5)),))
    assert entropy(drawn) == pytest.approx(1.5)
    twice = Token(text="1", logprob=log(0.5), top=(("1", log(0.5)),))
    assert entropy(twice) == pytest.approx(1.0)


def test_what_is_no_distribution_has_no_entropy() -> None:
    assert entropy(Token(text="3", logprob=-0.1)) is None
    assert entropy(token("3", (0.9, 0.9))) is None
    never = Token(text="3", logprob=0.0, top=(("3", 0.0), ("4", float("-inf"))))
    assert entropy(never) == 0.0


def by_hand(*said: tuple[str, tuple[float, ...]]) -> tuple[Token, ...]:
    return tuple(token(text, shares) for text, shares in said)


DOT, SURE = (".", (1.0, 1e-30)), (1.0, 1e-30)


@pytest.mark.parametrize(
    ("said", "value", "bits"),
    [
        ((("-", HALVES), ("3", QUARTERS), DOT, ("12", QUARTERS)), -3.12, 1.5),
        ((("+", SURE), ("3", QUARTERS), DOT, ("12", HALVES)), 3.12, 1.0),
        ((("3", QUARTERS), DOT, ("12", QUARTERS)), 3.12, 1.0),  # the sign is decided in it
        ((("-3", QUARTERS), DOT, ("12", QUARTERS)), -3.12, 1.0),
        (((' "', HALVES), (" ", HALVES), ("\u2212", SURE), ("3", HALVES)), -3.0, 0.5),
        ((("It", FLAT), (" was", FLAT), (" 3", HALVES), ("%", FLAT)), 3.0, 0.5),
        ((("200", FLAT), ("8", FLAT), (": ", FLAT), ("3", HALVES)), 3.0, 0.5),
        ((("$", FLAT), ("1", HALVES), (",", FLAT), ("234", FLAT)), 1234.0, 0.5),
        ((("a fall of ", FLAT), ("3", HALVES), ("%", FLAT)), -3.0, 0.5),
    ],
)
def test_the_two_decisions_that_a_value_begins_with(
    said: tuple[tuple[str, tuple[float, ...]], ...], value: float, bits: float
) -> None:
    found = read_out(by_hand(*said), value)
    assert found.bits == pytest.approx(bits, abs=1e-6) and not found.why


def test_whether_a_plus_is_written_makes_no_difference() -> None:
    signs, digits = (0.75, 0.25), (0.5, 0.5)
    joint = tuple(a * b for a in signs for b in digits)
    written = read_out(by_hand(("+", signs), ("3", digits)), 3.0).bits
    assert written == pytest.approx(read_out(by_hand(("3", joint)), 3.0).bits)


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("I cannot say.", None, "no value was read"),
        ("230 basis points", 2.3, "not among the first tokens"),
        ("It was Q3, and", 3.0, "not among the first tokens"),
        ("", 3.0, "not among the first tokens"),
    ],
)
def test_an_answer_without_its_value_has_none(text: str, value: float | None, why: str) -> None:
    found = read_out(tokens(text, PEAKED), value)
    assert found.bits is None and why in found.why


def test_a_place_that_tells_nothing_of_others_has_none() -> None:
    alone = tuple(Token(text=text, logprob=-0.1) for text in ("-", "3"))
    assert "no probabilities" in read_out(alone, -3.0).why
