"""What BigQuery says no with, and who can do something about it.

What the user alone can mend stops the run: credentials, permission, project, billing, the cap. All
else gives the queries a reason, so that the next source can answer them: `throttled` (asked too
often, or the day's quota is used up), `rejected` (the statement is not taken: Google changed a
table, or it needs more than BigQuery gives), `unavailable` (it fails, is too slow, or nobody
answers).
"""

import re
from collections.abc import Mapping

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from requests import exceptions as network

from coreeval.errors import BudgetSpent, ConfigError, CoreEvalError, CredentialError
from coreeval.schema import NoEvidence
from coreeval.tools.gdelt.bigquery.outcome import Refused

REASONS: dict[str, NoEvidence] = {
    "rateLimitExceeded": "throttled",
    "jobRateLimitExceeded": "throttled",
    "quotaExceeded": "throttled",
    "userRateLimitExceeded": "throttled",
    "invalidQuery": "rejected",
    "invalid": "rejected",
    "notFound": "rejected",
    "resourcesExceeded": "rejected",
    "billingTierLimitExceeded": "rejected",
    "responseTooLarge": "rejected",
    "notImplemented": "rejected",
    "badRequest": "rejected",
}
"""Google's words for why; all others mean that it is not available."""
TRANSIENT = {"rateLimitExceeded", "backendError", "internalError", "badGateway"}
"""Reasons for which the same request may be sent again."""
LONGEST = 300
"""Characters of Google's message that are shown."""
_CONNECTION = (network.ConnectionError, network.Timeout, network.ChunkedEncodingError)
_RULES = "https://cloud.google.com/bigquery/docs/error-messages"


def is_transient(error: BaseException) -> bool:
    """Tell whether the same request may be answered if it is sent again."""
    if isinstance(error, network.SSLError):
        return False
    if isinstance(error, _CONNECTION):
        return True
    if isinstance(error, auth.GoogleAuthError):
        return bool(error.retryable)
    if not isinstance(error, api.GoogleAPICallError):
        return False
    return _told(error)[0] in TRANSIENT or error.code in (429, 500, 502, 503, 504)


def explained(error: Exception, project: str) -> CoreEvalError | Refused:
    """Return an error of the client as what it means here."""
    if isinstance(error, api.GoogleAPICallError) and error.code and 300 <= error.code < 400:
        told = "BigQuery cannot be reached: it redirects, which is not followed"
        return Refused("unavailable", told)
    if isinstance(error, api.GoogleAPICallError):
        reason, message = _told(error)
        return refusal(reason, message, project, status=error.code)
    if isinstance(error, auth.GoogleAuthError) and not error.retryable:
        return CredentialError(
            f"Google refuses the credentials: {_short(error)}",
            where="application-default credentials",
            hint="sign in again: gcloud auth application-default login",
        )
    return Refused("unavailable", f"BigQuery cannot be reached: {type(error).__name__}")


def refusal(
    reason: str, message: str, project: str, *, status: int | None = None
) -> CoreEvalError | Refused:
    """Return what a reason of Google's means: an error of the user's, or a refusal."""
    where = f"BigQuery, project {project}"
    text = _short(message)
    if reason == "bytesBilledLimitExceeded":
        return BudgetSpent(
            f"the request would read more than it may: {text}",
            where=where,
            hint="raise knowledge.bigquery.max_gb or shorten knowledge.window; nothing was billed",
        )
    if status == 401 or reason == "authError":
        return CredentialError(
            f"Google refuses the credentials: {text}",
            where=where,
            hint="sign in again: gcloud auth application-default login",
        )
    if _disabled(reason, message):
        return ConfigError(
            "the BigQuery API is not enabled in this project",
            where=where,
            hint=f"gcloud services enable bigquery.googleapis.com --project {project}",
        )
    if reason in ("billingNotEnabled", "billingDisabled"):
        return ConfigError(
            f"billing is not set up for this project: {text}",
            where=where,
            hint="link a billing account, or name another knowledge.bigquery.project",
        )
    if reason == "notFound" and "project" in message.lower():
        return ConfigError(
            f"there is no such project: {text}",
            where=where,
            hint="correct knowledge.bigquery.project",
        )
    if reason in ("accessDenied", "forbidden") or (status == 403 and reason not in REASONS):
        return CredentialError(
            f"these credentials may not do that: {text}",
            where=where,
            hint="grant roles/bigquery.jobUser on the project; the tables themselves are public",
        )
    known = REASONS.get(reason) or ("throttled" if status == 429 else "unavailable")
    return Refused(known, f"{text or 'no explanation'} ({reason or status}; see {_RULES})")


def _disabled(reason: str, message: str) -> bool:
    return reason in ("accessNotConfigured", "SERVICE_DISABLED") or (
        "has not been used in project" in message or "it is disabled" in message
    )


def _told(error: api.GoogleAPICallError) -> tuple[str, str]:
    """Return Google's word for the reason and its message, without the address asked."""
    first = error.errors[0] if error.errors else {}
    if not isinstance(first, Mapping):
        return "", str(error.message)
    message = str(first.get("message") or error.message)
    return str(first.get("reason", "")), re.sub(r"^[A-Z]+ https?://\S+ ", "", message)


def _short(told: object) -> str:
    text = " ".join(str(told).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
