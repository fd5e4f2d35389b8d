"""Log-probabilities of made answers, as chat completions have them and as replies keep them."""

import re
from collections.abc import Sequence
from math import log

from coreeval.evaluation.numleak.replies import Token
from tests.support.llm_server import Reply

PEAKED = (0.97, 0.01, 0.005)
"""Shares of the most probable tokens where a value is known by heart."""
FLAT = (0.3, 0.25, 0.2, 0.1, 0.05)
"""The same where it is made up."""


def pieces(text: str) -> list[str]:
    """Return a text as a tokenizer may cut it: signs, up to three digits, all else apart."""
    return re.findall(r"\d{1,3}|\s*[^\d\s]|\s+", text)


def token(text: str, shares: Sequence[float]) -> Token:
    """Return a token with these shares of it and of made others."""
    named = [text, *(f"<{number}>" for number in range(1, len(shares)))]
    top = tuple((name, log(share)) for name, share in zip(named, shares, strict=True))
    return Token(text=text, logprob=log(shares[0]), top=top)


def tokens(text: str, shares: Sequence[float]) -> tuple[Token, ...]:
    """Return the tokens of an answer, all of them as sure."""
    return tuple(token(piece, shares) for piece in pieces(text))


def content(said: Sequence[Token]) -> list[dict[str, object]]:
    """Return tokens as chat completions have them."""
    return [
        {
            "token": one.text,
            "logprob": one.logprob,
            "bytes": list(one.text.encode()),
            "top_logprobs": [{"token": text, "logprob": value} for text, value in one.top],
        }
        for one in said
    ]


def reply(text: str, shares: Sequence[float]) -> Reply:
    """Return an answer of a server that tells log-probabilities."""
    return Reply(content=text, logprobs={"content": content(tokens(text, shares))})
