"""Failures of requests, and the errors that they become.

The status and message of a rejected request mean the same for every provider.
"""

import re
from typing import Final, Literal
from urllib.parse import urlsplit

from coreeval.errors import (
    CredentialError,
    ModelCallError,
    ModelUnusable,
    NoValidAnswer,
    RequestRejected,
)

FailureKind = Literal[
    "transient",
    "throttled",
    "unreachable",
    "blocked",
    "credential",
    "unknown",
    "quota",
    "unsupported",
    "declined",
    "rejected",
    "unusable",
    "no_scores",
    "web_page",
    "too_long",
]
"""`throttled`: a transient failure because of too many requests. `declined`: refused because of the
text. `rejected`: refused because of the request. `unsupported`: refused because of an option;
another one may work. `unreachable`: nothing answers at the endpoint. `blocked`: a proxy or an
untrusted certificate prevents access. `no_scores`: the endpoint does not score texts sent to it.
`unusable`: a model on this machine cannot be loaded or is out of memory. `web_page`: the endpoint
answers with HTML. `too_long`: the request is longer than the model's context."""
RefusedOption = Literal["method", "limit"]
"""The method of structured output, or the name of the token limit."""
FinalError = CredentialError | ModelUnusable | ModelCallError
LONGEST_MESSAGE = 300
"""The most characters of a server's message that are repeated."""


LONGEST_WAIT_S: Final = 120.0
"""The longest wait that a server may ask for, by Retry-After or an exhausted rate limit."""


class CallFailure(Exception):
    """A request failed; neither its message nor the objects that it refers to contain a key."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retry_after: float | None = None,
        billed: bool = False,
        refused: RefusedOption | None = None,
        answered: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.answered = answered
        """The HTTP status of the server's answer, if it is known."""
        self.message = message
        self.retry_after = None if retry_after is None else min(retry_after, LONGEST_WAIT_S)
        """Seconds that the server asked to wait, at most `LONGEST_WAIT_S`."""
        self.billed = billed
        """Whether it may be billed anyway: the model may have answered."""
        self.refused = refused
        """The option that the endpoint rejects, if the failure is `unsupported`."""

    @property
    def retryable(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in ("transient", "throttled", "unreachable", "web_page")


def clean_message(message: str, secret: str) -> str:
    """Return a server's message on one line, truncated, and without the key that it may repeat."""
    hidden = message.replace(secret, "***") if secret else message
    whole = hidden.encode(errors="replace").decode()  # no part of a character
    line = " ".join(whole.split())
    return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 1] + "…"


def to_final_error(failure: CallFailure, *, model: str, endpoint: str, key_env: str) -> FinalError:
    """Return the error to raise for a failure once no more tries are made.

    A refused key, an unknown model, an empty account and an unreachable or blocked endpoint stop
    the run, because every other call would end the same way. All other failures fail one sample. Of
    these, only a declined text is the model's own decision.
    """
    match failure.kind:
        case "credential":
            return CredentialError(
                f"{model}: the key was refused: {failure.message}",
                where=endpoint,
                hint=f"put a valid key in the environment variable {key_env}",
            )
        case "no_scores":
            told = f"{model}: the endpoint does not score texts sent to it: {failure.message}"
            return ModelUnusable(told, where=endpoint, hint=_HINTS[failure.kind])
        case "unknown" | "quota" | "unreachable" | "blocked" | "unusable" | "web_page":
            return ModelUnusable(
                f"{model}: {failure.message}", where=endpoint, hint=_HINTS[failure.kind]
            )
        case "declined":
            return NoValidAnswer(f"{model} declined: {failure.message}", kind="refused")
        case "too_long":
            return RequestRejected(f"{model}: {TOO_LONG}: {failure.message}")
        case "unsupported" | "rejected":
            return RequestRejected(f"{model} at {endpoint}: {failure.message}")
        case "transient" | "throttled":
            return ModelCallError(f"{model} at {endpoint}: {failure.message}")


TOO_LONG: Final = "the request exceeds the model's context; retrying will not help"
_HINTS = {
    "web_page": "correct base_url, which often ends in /v1; coreeval models check tests it",
    "unknown": "check the model's name and base_url in the config",
    "quota": "add credit to the account; answers are kept",
    "unreachable": "start the server or correct base_url",
    "unusable": "use a smaller model, another extra.device or a smaller extra.batch; answers are "
    "kept (coreeval docs models)",
    "blocked": "check HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and ca_file: see coreeval docs models",
    "no_scores": "use an endpoint that supports completions with echo and logprobs, or "
    "prompt_logprobs, such as vLLM or llama-cpp-python; or use local weights: --model hf:FOLDER",
}


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
"""Timeouts on the server's side: the model may have answered anyway."""
NO_API = frozenset({400, 404, 405, 501})
"""Statuses of a web server that does not have a model endpoint."""
NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes of a 429 that waiting does not resolve."""
DECLINED = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "data_inspection_failed",
        "invalid_prompt",
    }
)
"""Codes of a 4xx about the content of the text; all others are about the form of the request."""
_METHOD = re.compile(
    r"response_format|output_config|output_format|output format|json_schema|json_object"
    r"|structured output|\btools?\b|tool_choice|grammar",
    re.IGNORECASE,
)
_LOGPROBS = re.compile(r"log_?probs?\b|log[- ]probabilit", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|invalid|extra|not permitted|unexpected"
    r"|not allowed|may not be|must be|not available|not implemented|instead|too complex",
    re.IGNORECASE,
)
"""How endpoints say that they do not know a parameter."""


_CONTEXT = re.compile(
    r"context[_ ](?:length|window|size)|prompt is too long|too many (?:input )?tokens"
    r"|maximum (?:input|prompt) length",
    re.IGNORECASE,
)
_HTML = re.compile(r"\s*(?:<!--.{0,400}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
_TITLE = re.compile(r"<title[^>]{0,100}>([^<]{1,200})", re.IGNORECASE)
_PAGE_START = 4096
"""The number of characters of an answer that are searched for a page title."""


def describe_web_page(answer: str, secret: str = "") -> str:
    """Return a description of an answer that is a web page; "" if it is not."""
    start = answer.removeprefix("\ufeff")[:_PAGE_START]
    if not _HTML.match(start):
        return ""
    title = _TITLE.search(start)
    named = f", {clean_message(title[1], secret)[:60]!r}" if title and title[1].strip() else ""
    return f"it answers with a web page (HTML){named}: this is not the address of a model"


def names_context(said: str) -> bool:
    """Return whether the message of a 4xx says that the request is longer than the context."""
    return bool(_CONTEXT.search(said))


def kind_from_status(status: int) -> FailureKind:
    """Return the kind of failure for a status, used if nothing more specific is known."""
    if status < 400:
        return "unknown"  # a redirect, which is not followed because of the key
    return _BY_STATUS.get(status, "transient" if status >= 500 else "rejected")


def describe_redirect(status: int, location: str | None) -> str:
    """Return a description of a redirect, or "" for any other response.

    Args:
        status: The response's status.
        location: Its Location header.
    """
    if not 300 <= status < 400:
        return ""
    host = urlsplit(location or "").netloc.rpartition("@")[2]
    return (
        f"it redirects (status {status}) to {host or 'another path'}; CoreEval does not follow "
        "redirects with prompts: set the right address in base_url"
    )


def kind_from_codes(*codes: object) -> FailureKind | None:
    """Return the kind of failure for the codes in an error's body; None if they are not known.

    The codes come from the server and may be of any type; one of them may be an HTTP status.
    """
    said = {str(code) for code in codes}
    if said & NO_MONEY:
        return "quota"
    return next((kind for status, kind in _BY_STATUS.items() if str(status) in said), None)


def names_unsupported(said: str) -> bool:
    """Return whether the message of a 400 or 422 is about a parameter that the endpoint lacks."""
    return bool(_UNSUPPORTED.search(said))


def names_logprobs(said: str) -> bool:
    """Return whether the message names log-probabilities."""
    return bool(_LOGPROBS.search(said))


def names_method(said: str) -> bool:
    """Return whether the message names a method of structured output."""
    return bool(_METHOD.search(said))
