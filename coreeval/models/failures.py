"""How a call can go wrong on the wire, and which error that is in the end."""

from typing import Literal

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
]
"""`throttled` is a transient failure for being asked too much; `declined` is a refusal because of
the text, `rejected` one because of the request, `unsupported` one because of how the answer is
asked for, which may be asked for otherwise. `unreachable` is an endpoint that is not there,
`blocked` one that a proxy or an untrusted certificate stands before."""
Refused = Literal["method", "limit"]
"""The way to ask for structure, or the name of the limit of an answer's length."""
Final = CredentialError | ModelUnusable | ModelCallError
LONGEST = 300
"""Most characters of a server's message that are repeated."""


class CallFailure(Exception):
    """One request failed; its message never holds a key, and neither does what it refers to."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retry_after: float | None = None,
        billed: bool = False,
        refused: Refused | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        """Seconds that the server asked us to wait."""
        self.billed = billed
        """Whether it may cost something all the same: the model may have answered."""
        self.refused = refused
        """What the endpoint does not take, where it is `unsupported`."""

    @property
    def retryable(self) -> bool:
        """True when the same request may succeed a little later."""
        return self.kind in ("transient", "throttled", "unreachable")


def clean(message: str, secret: str) -> str:
    """Return a server's message on one line, cut, and without the key it may repeat."""
    hidden = message.replace(secret, "***") if secret else message
    line = " ".join(hidden.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def final_error(failure: CallFailure, *, model: str, endpoint: str, key_env: str) -> Final:
    """Return the error that a failure is once nothing more is tried.

    A refused key, an unknown model, an empty account and an endpoint that is not there, or that a
    proxy or a certificate bars, stop the run, since every other call would end the same way; the
    rest fails one sample. Of that, only a text that was declined is the model's own doing.
    """
    match failure.kind:
        case "credential":
            return CredentialError(
                f"{model}: the key was refused: {failure.message}",
                where=endpoint,
                hint=f"put a valid key into the environment variable {key_env}",
            )
        case "unknown" | "quota" | "unreachable" | "blocked":
            return ModelUnusable(
                f"{model}: {failure.message}", where=endpoint, hint=_HINTS[failure.kind]
            )
        case "declined":
            return NoValidAnswer(f"{model} declined: {failure.message}", kind="refused")
        case "unsupported" | "rejected":
            return RequestRejected(f"{model} at {endpoint}: {failure.message}")
        case "transient" | "throttled":
            return ModelCallError(f"{model} at {endpoint}: {failure.message}")


_HINTS = {
    "unknown": "check the model's name and base_url in the config",
    "quota": "add credit to the account: what was answered is kept",
    "unreachable": "start the server or correct base_url",
    "blocked": "check HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and ca_file: see docs/models.md",
}
