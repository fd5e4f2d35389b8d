"""How a call can go wrong on the wire, and which error that is in the end.

The status and the words of a refused request mean the same, whoever refused it.
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
"""`throttled` is a transient failure for being asked too much; `declined` is a refusal because of
the text, `rejected` one because of the request, `unsupported` one because of how the answer is
asked for, which may be asked for otherwise. `unreachable` is an endpoint that is not there,
`blocked` one that a proxy or an untrusted certificate stands before, `no_scores` one that does not
score given texts. `unusable` is a model on this machine that cannot be loaded, or has no memory
left. `web_page` is an endpoint that answers with HTML, `too_long` a request that is longer than the
model's context."""
RefusedOption = Literal["method", "limit"]
"""The way to ask for structure, or the name of the limit of an answer's length."""
FinalError = CredentialError | ModelUnusable | ModelCallError
LONGEST_MESSAGE = 300
"""Most characters of a server's message that are repeated."""


LONGEST_WAIT_S: Final = 120.0
"""Longest wait that a server may ask for, in Retry-After or by an allowance that is used up."""


class CallFailure(Exception):
    """One request failed; its message never holds a key, and neither does what it refers to."""

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
        """Seconds that the server asked us to wait, `LONGEST_WAIT_S` at most."""
        self.billed = billed
        """Whether it may cost something all the same: the model may have answered."""
        self.refused = refused
        """What the endpoint does not take, where it is `unsupported`."""

    @property
    def retryable(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in ("transient", "throttled", "unreachable", "web_page")


def clean_message(message: str, secret: str) -> str:
    """Return a server's message on one line, truncated, and without the key that it may repeat."""
    hidden = message.replace(secret, "***") if secret else message
    whole = hidden.encode(errors="replace").decode()  # no half of a character
    line = " ".join(whole.split())
    return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 1] + "…"


def to_final_error(failure: CallFailure, *, model: str, endpoint: str, key_env: str) -> FinalError:
    """Return the error to raise for a failure once no more tries are made.

    A refused key, an unknown model, an empty account and an endpoint that is not there, or that is
    blocked by a proxy or a certificate, stop the run, since every other call would end the same
    way. All other failures fail one sample. Of these, only a declined text is the model's own
    decision.
    """
    match failure.kind:
        case "credential":
            return CredentialError(
                f"{model}: the key was refused: {failure.message}",
                where=endpoint,
                hint=f"put a valid key in the environment variable {key_env}",
            )
        case "no_scores":
            told = f"{model}: the endpoint does not score given texts: {failure.message}"
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


TOO_LONG: Final = "the request exceeds the model's context; retrying does not help"
_HINTS = {
    "web_page": "correct base_url, which often ends in /v1; coreeval models check tries it",
    "unknown": "check the model's name and base_url in the config",
    "quota": "add credit to the account: answers are kept",
    "unreachable": "start the server or correct base_url",
    "unusable": "use a smaller model, another extra.device or a smaller extra.batch: answers are "
    "kept (coreeval docs models)",
    "blocked": "check HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and ca_file: see coreeval docs models",
    "no_scores": "it needs completions with echo and logprobs, or prompt_logprobs: vLLM and "
    "llama-cpp-python have them; or give the weights: --model hf:FOLDER",
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
"""Timeouts on their side: the model may have answered all the same."""
NO_API = frozenset({400, 404, 405, 501})
"""Statuses by which a web server says that it does not know a request to a model."""
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
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|invalid|extra|not permitted|unexpected"
    r"|not allowed|may not be|must be|not available|not implemented|instead|too complex",
    re.IGNORECASE,
)
"""How an endpoint says that it does not know a parameter."""


_CONTEXT = re.compile(
    r"context[_ ](?:length|window|size)|prompt is too long|too many (?:input )?tokens"
    r"|maximum (?:input|prompt) length",
    re.IGNORECASE,
)
_HTML = re.compile(r"\s*(?:<!--.{0,400}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
_TITLE = re.compile(r"<title[^>]{0,100}>([^<]{1,200})", re.IGNORECASE)
_PAGE_START = 4096
"""Most characters of an answer in which a page's title is looked for."""


def describe_web_page(answer: str, secret: str = "") -> str:
    """Return in words that an answer is a web page; "" if it is something else."""
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
    """Return the kind of failure for a status, used if nothing else says more."""
    if status < 400:
        return "unknown"  # it sends us elsewhere, where no key of ours goes
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
    """Return whether the message names a method of asking for structure."""
    return bool(_METHOD.search(said))
