"""The entropy of a value's first tokens, out of the most probable ones at each place.

NumLeak, appendix R: Shannon's entropy of the token of the sign and of the first token with digits,
over the five most probable tokens, the remaining mass being one more.
"""

import re
from collections.abc import Sequence
from math import exp, isclose, log2
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.replies import Token

TOP: Final = 5
"""Most probable tokens of a place that count; more would not compare with appendix R."""
DECISIONS: Final = 2
"""A value begins with two: its sign, and its first digits."""
_TOO_MUCH: Final = 1.01
"""Probabilities of one place that add up to more are none; rounding moves them far less."""
_MINUS: Final = "-\u2010\u2011\u2012\u2013\u2014\u2212"
_NUMBER: Final = re.compile(
    rf"(?<![\w.,])(?<!\d[-/])(?P<sign>[{_MINUS}+])?\s?[$€£¥]?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)"
)


class ReadOut(NamedTuple):
    """What the tokens of one answer tell."""

    bits: float | None
    """Mean entropy of both decisions; None where it cannot be told."""
    why: str = ""
    """Why not."""
    signed: bool = False
    """Whether the sign has a token of its own."""


def read_out(tokens: Sequence[Token], value: float | None) -> ReadOut:
    """Return the mean entropy of the two decisions that a value begins with, in bits.

    A sign that is not written is decided in the token of the digits, and one token may hold both:
    its entropy is that of both decisions then. So a plus that one model writes and another does not
    makes no difference, as it would in the mean over tokens.

    Args:
        tokens: The first ones of the answer.
        value: What was read from it; None where nothing was.
    """
    if value is None:
        return ReadOut(None, "no value was read")
    places = _value_tokens(tokens, value)
    if not places:
        return ReadOut(None, "its value is not among the first tokens as it was read")
    found = [entropy(place) for place in places]
    if None in found:
        return ReadOut(None, "no probabilities beside its tokens that add up to one")
    bits = sum(each for each in found if each is not None) / DECISIONS
    return ReadOut(bits, signed=len(places) == DECISIONS)


def entropy(token: Token) -> float | None:
    """Return Shannon's entropy of one place, in bits.

    What the tokens told leave over to 1 is one more outcome; the token that was said counts also
    where it is not among the most probable ones. None where no other token was told, or where
    probabilities add up to more than 1.
    """
    if not token.top:
        return None
    told = sorted(token.top, key=lambda one: -one[1])[:TOP]
    if token.text not in (text for text, _ in told):
        told.append((token.text, token.logprob))
    shares = [exp(min(0.0, logprob)) for _, logprob in told]
    if sum(shares) > _TOO_MUCH:
        return None
    rest = max(0.0, 1.0 - sum(shares))
    return max(0.0, -sum(share * log2(share) for share in (*shares, rest) if share > 0))


def _value_tokens(tokens: Sequence[Token], value: float) -> list[Token]:
    """Return the tokens with the sign, if it is written, and with the first digit of a value.

    The value's number is the first of its size: what is said before it, quotes and blanks are
    passed over; a fall may be told in words.
    """
    text = "".join(token.text for token in tokens)
    for match in _NUMBER.finditer(text):
        if isclose(float(match["digits"].replace(",", "")), abs(value), rel_tol=1e-9):
            starts = [match.start("digits")]
            starts += [match.start("sign")] if match["sign"] else []
            at = sorted({_token_at(tokens, start) for start in starts})
            return [tokens[each] for each in at]
    return []


def _token_at(tokens: Sequence[Token], place: int) -> int:
    """Return which token has the character at a place."""
    end = 0
    for number, token in enumerate(tokens):
        end += len(token.text)
        if end > place:
            return number
    return len(tokens) - 1
