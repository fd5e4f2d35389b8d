"""How a call can go wrong on the wire, and which error that is in the end."""

from typing import Literal

from coreeval.errors import CredentialError, ModelCallError, ModelUnusable, NoValidAnswer

FailureKind = Literal[
    "transient", "unreachable", "credential", "unknown", "quota", "declined", "rejected"
]
"""`declined` is a refusal because of the text, `rejected` one because of the request."""
Final = CredentialError | ModelUnusable | ModelCallError
LONGEST = 300
"""Most characters of a server's message that are repeated."""


class CallFailure(Exception):
    """One request failed; its message never holds a key, and neither does what it refers to."""

    def __init__(
        self, kind: FailureKind, message: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        """Seconds that the server asked us to wait."""

    @property
    def retryable(self) -> bool:
        """True when the same request may succeed a little later."""
        return self.kind in ("transient", "unreachable")


def clean(message: str, secret: str) -> str:
    """Return a server's message on one line, cut, and without the key it may repeat."""
    hidden = message.replace(secret, "***") if secret else message
    line = " ".join(hidden.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def final_error(failure: CallFailure, *, model: str, endpoint: str, key_env: str) -> Final:
    """Return the error that a failure is once nothing more is tried.

    A refused key, an unknown model, an empty account and an endpoint that is not there stop the
    run, since every other call would end the same way; the rest fails one sample. Of that, only
    a text that was declined is the model's own doing.
    """
    match failure.kind:
        case "credential":
            return CredentialError(
                f"{model}: the key was refused: {failure.message}",
                where=endpoint,
                hint=f"put a valid key into the environment variable {key_env}",
            )
        case "unknown" | "quota" | "unreachable":
            return ModelUnusable(
                f"{model}: {failure.message}", where=endpoint, hint=_HINTS[failure.kind]
            )
        case "declined":
            return NoValidAnswer(f"{model} declined: {failure.message}")
        case "transient" | "rejected":
            return ModelCallError(f"{model} at {endpoint}: {failure.message}")


_HINTS = {
    "unknown": "check the model's name and base_url in the config",
    "quota": "add credit to the account, then resume the run: what was answered is kept",
    "unreachable": "start the server or correct base_url, then resume the run",
}
