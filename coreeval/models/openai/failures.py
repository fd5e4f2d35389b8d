"""What the OpenAI SDK raises, as the failures that this program knows."""

import re

import aiohttp
import openai

from coreeval.models.connection_failures import connection_failure
from coreeval.models.failures import CallFailure, Refused, clean
from coreeval.models.retry import retry_after_seconds
from coreeval.models.statuses import (
    DECLINED,
    MAY_BE_BILLED,
    kind_of,
    kind_told,
    names_logprobs,
    names_method,
    not_taken,
    redirect_note,
)

_LIMIT = re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE)
_TOO_HIGH = re.compile(r"less than|at most|range|maximum|greater|larger|exceed", re.IGNORECASE)
"""The name is known, and its value is not taken."""


TROUBLE = (openai.OpenAIError, aiohttp.ClientError, UnicodeError)
"""What a request may raise: the SDK lets through what its transport says of words that are no
HTTP."""


def failure_of(error: Exception, secret: str) -> CallFailure:
    """Return the failure that trouble is; it holds no request, so no header and no key."""
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, secret)
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        return CallFailure("transient", clean(str(error), secret), billed=True)
    return connection_failure(error, secret)


def _status_failure(error: openai.APIStatusError, secret: str) -> CallFailure:
    kind = kind_of(error.status_code)
    if kind_told(error.code, error.type) == "quota":
        kind = "quota"
    elif kind == "rejected" and error.code in DECLINED:
        kind = "declined"
    told = _told(error)
    if kind in ("credential", "transient") and names_logprobs(told):
        kind = "rejected"  # some models answer 403, some servers 500, where no key is at fault
    refused = _refused(error, told) if kind == "rejected" else None
    return CallFailure(
        "unsupported" if refused else kind,
        clean(told, secret),
        retry_after=retry_after_seconds(error.response.headers.get("retry-after")),
        billed=error.status_code in MAY_BE_BILLED,
        refused=refused,
    )


def _told(error: openai.APIStatusError) -> str:
    """Return all that the server said: the SDK repeats it only where it stands in `message`."""
    if redirect := redirect_note(error.status_code, error.response.headers.get("location")):
        return redirect
    body, text = error.body, error.response.text
    if not text or (isinstance(body, dict) and isinstance(body.get("message"), str)):
        return error.message
    return f"{error.message} - {text}"


def _refused(error: openai.APIStatusError, told: str) -> Refused | None:
    """Tell from a 400 or 422 which way of asking the endpoint does not know."""
    said = f"{error.param or ''} {told}"
    if error.code == "context_length_exceeded" or not not_taken(said):
        return None
    if _LIMIT.search(said):
        return None if _TOO_HIGH.search(said) else "limit"
    return "method" if names_method(said) else None
