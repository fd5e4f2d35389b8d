"""What Anthropic's SDK raises, as the failures that this program knows."""

import re

import anthropic

from coreeval.models.connection_failures import connection_failure
from coreeval.models.failures import CallFailure, FailureKind, clean
from coreeval.models.retry import retry_after_seconds
from coreeval.models.statuses import MAY_BE_BILLED, kind_of, names_method, not_taken, redirect_note

_SPENT = (anthropic.ContractSpendLimitReachedError, anthropic.EnforcedSpendLimitReachedError)
"""A 429 each that no waiting heals."""
_NO_MONEY = re.compile(r"credit balance is too low|usage limits?\b.*\bregain", re.IGNORECASE)
"""How a 400 says that the account is empty, or has spent what it allows itself."""
_BLOCKED = re.compile(r"content filtering policy", re.IGNORECASE)
_EFFORT = re.compile(r"\beffort\b", re.IGNORECASE)
"""A parameter that stands beside the schema but is another matter."""


def failure_of(error: anthropic.AnthropicError, secret: str) -> CallFailure:
    """Return the failure that an SDK error is; it holds no request, so no header and no key."""
    if isinstance(error, anthropic.APIStatusError):
        return _status_failure(error, secret)
    if isinstance(error, anthropic.APIConnectionError):
        return connection_failure(error, secret)
    return CallFailure("transient", clean(str(error), secret), billed=True)


def _status_failure(error: anthropic.APIStatusError, secret: str) -> CallFailure:
    said = error.api_message if isinstance(error.api_message, str) else error.message
    said = redirect_note(error.status_code, error.response.headers.get("location")) or said
    kind = _kind(error, said)
    return CallFailure(
        kind,
        clean(said, secret),
        retry_after=retry_after_seconds(error.response.headers.get("retry-after")),
        billed=error.status_code in MAY_BE_BILLED,
        refused="method" if kind == "unsupported" else None,
    )


def _kind(error: anthropic.APIStatusError, said: str) -> FailureKind:
    if isinstance(error, _SPENT):
        return "quota"
    kind = kind_of(error.status_code)
    return _kind_of_rejected(said) if kind == "rejected" else kind


def _kind_of_rejected(said: str) -> FailureKind:
    """Tell what a 4xx is about by its words: its type is the same for all of them."""
    if _NO_MONEY.search(said):
        return "quota"
    if _BLOCKED.search(said):
        return "declined"
    if names_method(said) and not_taken(said) and not _EFFORT.search(said):
        return "unsupported"
    return "rejected"
