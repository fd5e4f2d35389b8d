"""What the OpenAI SDK raises, as the failures that this program knows."""

import aiohttp
import openai

from coreeval.models.failures import CallFailure, FailureKind, clean
from coreeval.models.retry import retry_after_seconds

_BY_STATUS: dict[int, FailureKind] = {
    401: "credential",
    402: "quota",
    403: "credential",
    404: "unknown",
    408: "transient",
    409: "transient",
    429: "transient",
}
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached"}
_DECLINED = {
    "content_filter",
    "content_policy_violation",
    "data_inspection_failed",
    "invalid_prompt",
}
"""Codes of a 4xx that is about what the text says; any other is about the request's form."""


def failure_of(error: openai.OpenAIError, secret: str) -> CallFailure:
    """Return the failure that an SDK error is; it holds no request, so no header and no key."""
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, secret)
    if isinstance(error, openai.APIConnectionError):
        return _connection_failure(error, secret)
    return CallFailure("transient", clean(str(error), secret))


def _status_failure(error: openai.APIStatusError, secret: str) -> CallFailure:
    default: FailureKind = "transient" if error.status_code >= 500 else "rejected"
    kind = _BY_STATUS.get(error.status_code, default)
    if {error.code, error.type} & _NO_MONEY:
        kind = "quota"
    elif kind == "rejected" and error.code in _DECLINED:
        kind = "declined"
    return CallFailure(
        kind,
        clean(error.message, secret),
        retry_after=retry_after_seconds(error.response.headers.get("retry-after")),
    )


def _connection_failure(error: openai.APIConnectionError, secret: str) -> CallFailure:
    """Tell an endpoint that is not there from a connection that broke.

    The aiohttp transport reports both as a timeout, so the chain of causes is what can be trusted.
    """
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    absent = next((one for one in chain if isinstance(one, aiohttp.ClientConnectorError)), None)
    if absent:
        return CallFailure("unreachable", clean(f"nothing answers there: {absent}", secret))
    return CallFailure("transient", clean(f"the connection failed: {chain[-1]!r}", secret))
