"""What a refused request's status and words mean, whoever refused it."""

import re
from urllib.parse import urlsplit

from coreeval.models.failures import FailureKind

_BY_STATUS: dict[int, FailureKind] = {
    401: "credential",
    402: "quota",
    403: "credential",
    404: "unknown",
    407: "blocked",
    408: "transient",
    409: "transient",
    429: "throttled",
    503: "throttled",
    529: "throttled",
}
MAY_BE_BILLED = frozenset({408, 504})
"""Timeouts on their side: the model may have answered all the same."""
NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes of a 429 that no waiting heals."""
DECLINED = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "data_inspection_failed",
        "invalid_prompt",
    }
)
"""Codes of a 4xx that is about what the text says; any other is about the request's form."""
_METHOD = re.compile(
    r"response_format|output_config|output_format|output format|json_schema|json_object"
    r"|structured output|\btools?\b|tool_choice|grammar",
    re.IGNORECASE,
)
_LOGPROBS = re.compile(r"log_?probs?\b|log[- ]probabilit", re.IGNORECASE)
_NOT_TAKEN = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|invalid|extra|not permitted|unexpected"
    r"|not allowed|may not be|must be|not available|not implemented|instead|too complex",
    re.IGNORECASE,
)
"""How an endpoint says that it does not know a parameter."""


def kind_of(status: int) -> FailureKind:
    """Return which failure a status is, where nothing else tells more."""
    if status < 400:
        return "unknown"  # it sends us elsewhere, where no key of ours goes
    return _BY_STATUS.get(status, "transient" if status >= 500 else "rejected")


def redirect_note(status: int, location: str | None) -> str:
    """Return what to say of a response that redirects; empty for any other.

    Args:
        status: The response's status.
        location: Its Location header.
    """
    if not 300 <= status < 400:
        return ""
    host = urlsplit(location or "").netloc.rpartition("@")[2]
    return (
        f"it redirects (status {status}) to {host or 'another path'}; requests with prompts are "
        "not redirected: name the right address in base_url"
    )


def kind_told(*codes: object) -> FailureKind | None:
    """Return what the codes in an error's body say, one of which may be a status; None if nothing.

    They are what the server put there, of whatever type.
    """
    said = {str(code) for code in codes}
    if said & NO_MONEY:
        return "quota"
    return next((kind for status, kind in _BY_STATUS.items() if str(status) in said), None)


def not_taken(said: str) -> bool:
    """Tell whether the words of a 400 or 422 are about a parameter that the endpoint lacks."""
    return bool(_NOT_TAKEN.search(said))


def names_logprobs(said: str) -> bool:
    """Tell whether they name log-probabilities."""
    return bool(_LOGPROBS.search(said))


def names_method(said: str) -> bool:
    """Tell whether they name a way to ask for structure."""
    return bool(_METHOD.search(said))
