"""What the OpenAI SDK raises, as the failures that this program knows."""

import re

import openai

from coreeval.models.connection_failures import connection_failure
from coreeval.models.failures import CallFailure, Refused, clean
from coreeval.models.retry import retry_after_seconds
from coreeval.models.statuses import DECLINED, NO_MONEY, kind_of, names_method, not_taken

_LIMIT = re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE)
_TOO_HIGH = re.compile(r"less than|at most|range|maximum|greater|larger|exceed", re.IGNORECASE)
"""The name is known, and its value is not taken."""


def failure_of(error: openai.OpenAIError, secret: str) -> CallFailure:
    """Return the failure that an SDK error is; it holds no request, so no header and no key."""
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, secret)
    if isinstance(error, openai.APIConnectionError):
        return connection_failure(error, secret)
    return CallFailure("transient", clean(str(error), secret), billed=True)


def _status_failure(error: openai.APIStatusError, secret: str) -> CallFailure:
    kind = kind_of(error.status_code)
    if {error.code, error.type} & NO_MONEY:
        kind = "quota"
    elif kind == "rejected" and error.code in DECLINED:
        kind = "declined"
    refused = _refused(error) if kind == "rejected" else None
    return CallFailure(
        "unsupported" if refused else kind,
        clean(error.message, secret),
        retry_after=retry_after_seconds(error.response.headers.get("retry-after")),
        refused=refused,
    )


def _refused(error: openai.APIStatusError) -> Refused | None:
    """Tell from a 400 or 422 which way of asking the endpoint does not know."""
    said = f"{error.param or ''} {error.message}"
    if error.code == "context_length_exceeded" or not not_taken(said):
        return None
    if _LIMIT.search(said):
        return None if _TOO_HIGH.search(said) else "limit"
    return "method" if names_method(said) else None
