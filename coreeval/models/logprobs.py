"""The first tokens of an answer with their log-probabilities, as they are kept with its call."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from coreeval.models.reading import without_thoughts

FIRST: Final = 32
"""Tokens that are kept: a value, also with a few words before it."""
MOST: Final = 20
"""Tokens of one place that are kept: as many as OpenAI tells at most."""


class _Candidate(BaseModel):
    token: str
    logprob: float


class _Place(_Candidate):
    top_logprobs: list[_Candidate] = Field(default=[])


class _Told(BaseModel):
    content: list[_Place]


def first_tokens(told: object, text: str) -> str:
    """Return JSON of an answer's first tokens, in the form in which they came; "" for none.

    That is `{token, logprob, top_logprobs}` each, natural logarithms. Thoughts before the answer
    are passed over; what rounding makes positive is 0; what is no number is left out.

    Args:
        told: The `logprobs` of a chat completion's choice.
        text: The answer.
    """
    try:
        places = _Told.model_validate(told).content
    except ValidationError:
        return ""
    kept = [_shown(place) for place in _answering(places, text)[:FIRST] if isfinite(place.logprob)]
    return json.dumps(kept, ensure_ascii=False, allow_nan=False) if kept else ""


def _answering(places: Sequence[_Place], text: str) -> Sequence[_Place]:
    """Return the tokens from where the answer begins."""
    begin = "".join(place.token for place in places).rfind(without_thoughts(text).strip())
    at = 0
    for number, place in enumerate(places):
        at += len(place.token)
        if at > begin:
            return places[number:]
    return places


def _shown(place: _Place) -> dict[str, object]:
    beside = [_candidate(one) for one in place.top_logprobs[:MOST] if isfinite(one.logprob)]
    return {**_candidate(place), "top_logprobs": beside}


def _candidate(one: _Candidate) -> dict[str, object]:
    return {"token": _whole(one.token), "logprob": min(0.0, one.logprob)}


def _whole(token: str) -> str:
    """Return a token that can be written: half a character is shown as a question mark."""
    return token.encode("utf-8", "replace").decode()
