"""Opens Google's client with the user's credentials and with deadlines; converts its errors.

Refusals by BigQuery are classified by who can fix them.
"""

import os
import re
from collections.abc import Mapping
from typing import TypeVar

import google.auth
from google.api_core import exceptions as api
from google.api_core.client_options import ClientOptions
from google.auth import exceptions as auth
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import DefaultCredentialsError
from google.auth.transport.requests import AuthorizedSession, Request
from google.cloud.bigquery import Client
from requests import exceptions as network

from coreeval.config.knowledge import BigQueryConfig
from coreeval.errors import BudgetSpent, ConfigError, CoreEvalError, CredentialError
from coreeval.schema import NoEvidence
from coreeval.tools.bounded_session import BoundedAdapter, ResponseRejected, StraightSession
from coreeval.tools.gdelt.bigquery.request import BigQueryRefusal

HTTP_S = 30.0
"""The most seconds of silence in one HTTP request; the client itself allows at least 120 s."""
MOST_BODY_BYTES = 32 << 20
MOST_PARTS = 2_000_000
"""The most bytes and commas of a decompressed response: a page of 5,000 rows with 6 KiB and 400
commas per row (own choice)."""
PROJECT = "GOOGLE_CLOUD_PROJECT"
EMULATOR = "BIGQUERY_EMULATOR_HOST"
"""Google's environment variables for the project, and for an emulator, which gets no
credentials."""
NO_PROJECT = "local"
"""The project's name if no payment is needed."""


def open_client(config: BigQueryConfig, credentials: Credentials | None = None) -> Client:
    """Return a client for a config.

    Args:
        config: The project that pays, and the location.
        credentials: The credentials to use; application-default credentials if None.

    Raises:
        CredentialError: there are no credentials.
        ConfigError: neither the config nor the credentials name a project.
    """
    project = config.project or os.environ.get(PROJECT)
    endpoint = config.endpoint or os.environ.get(EMULATOR)
    if credentials is None and endpoint and endpoint.startswith("http://"):
        credentials, project = AnonymousCredentials(), project or NO_PROJECT  # type: ignore[no-untyped-call]
    if credentials is None:
        credentials, theirs = _default_credentials()
        project = project or theirs
    if not project:
        raise ConfigError(
            "BigQuery needs a billing project, but the credentials name none",
            where="knowledge.bigquery.project",
            hint=f"set knowledge.bigquery.project or the environment variable {PROJECT}",
        )
    session = _Session(
        credentials,
        refresh_timeout=HTTP_S,
        auth_request=Request(_bound(StraightSession())),
    )  # type: ignore[no-untyped-call]
    return Client(
        project=project,
        credentials=credentials,
        location=config.location,
        client_options=ClientOptions(api_endpoint=endpoint),
        _http=_bound(session),
    )


class _Session(StraightSession, AuthorizedSession):
    """A session with credentials that does not follow redirects."""


S = TypeVar("S", bound=StraightSession)


def _bound(session: S) -> S:
    """Return a session whose responses are limited in size and time."""
    bounds = BoundedAdapter(
        most_bytes=MOST_BODY_BYTES, most_parts=MOST_PARTS, silent_s=HTTP_S, most_s=HTTP_S
    )
    session.mount("https://", bounds)
    session.mount("http://", bounds)
    return session


def _default_credentials() -> tuple[Credentials, str | None]:
    try:
        credentials, project = google.auth.default(scopes=list(Client.SCOPE))
    except DefaultCredentialsError as error:
        raise CredentialError(
            f"there are no usable Google credentials: {str(error).splitlines()[0]}",
            where="application-default credentials",
            hint="run gcloud auth application-default login, or set "
            "GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account",
        ) from None
    return credentials, project


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
"""The meaning of Google's error reasons; all others mean that the service is unavailable."""
TRANSIENT = {"rateLimitExceeded", "backendError", "internalError", "badGateway"}
"""The reasons after which the same request may be sent again."""
LONGEST_MESSAGE = 300
"""The most characters of Google's message that are shown."""
_CONNECTION = (network.ConnectionError, network.Timeout, network.ChunkedEncodingError)
_RULES = "https://cloud.google.com/bigquery/docs/error-messages"


def is_transient(error: BaseException) -> bool:
    """Return whether sending the same request again may help."""
    if isinstance(error, network.SSLError):
        return False
    if isinstance(error, _CONNECTION):
        return True
    if isinstance(error, auth.GoogleAuthError):
        return bool(error.retryable)
    if not isinstance(error, api.GoogleAPICallError):
        return False
    return _reason_and_message(error)[0] in TRANSIENT or error.code in (429, 500, 502, 503, 504)


def explain_error(error: Exception, project: str) -> CoreEvalError | BigQueryRefusal:
    """Convert an error of the client into the corresponding error or refusal."""
    if isinstance(error, api.GoogleAPICallError) and error.code and 300 <= error.code < 400:
        told = "BigQuery cannot be reached: it redirects, and CoreEval does not follow redirects"
        return BigQueryRefusal("unavailable", told)
    if isinstance(error, api.GoogleAPICallError):
        reason, message = _reason_and_message(error)
        return classify_reason(reason, message, project, status=error.code)
    if isinstance(error, auth.GoogleAuthError) and not error.retryable:
        return CredentialError(
            f"Google refused the credentials: {_shorten(error)}",
            where="application-default credentials",
            hint="sign in again: gcloud auth application-default login",
        )
    if isinstance(error, ResponseRejected):
        return BigQueryRefusal("unavailable", f"cannot read BigQuery's answer: {error}")
    return BigQueryRefusal("unavailable", f"BigQuery cannot be reached: {type(error).__name__}")


def classify_reason(
    reason: str, message: str, project: str, *, status: int | None = None
) -> CoreEvalError | BigQueryRefusal:
    """Return the error or refusal that corresponds to Google's reason."""
    where = f"BigQuery, project {project}"
    text = _shorten(message)
    if reason == "bytesBilledLimitExceeded":
        return BudgetSpent(
            f"the request would read more than allowed: {text}",
            where=where,
            hint="run the command again, or shorten knowledge.window; this was not billed",
        )
    if status == 401 or reason == "authError":
        return CredentialError(
            f"Google refused the credentials: {text}",
            where=where,
            hint="sign in again: gcloud auth application-default login",
        )
    if _is_disabled(reason, message):
        return ConfigError(
            "the BigQuery API is not enabled in this project",
            where=where,
            hint=f"gcloud services enable bigquery.googleapis.com --project {project}",
        )
    if reason in ("billingNotEnabled", "billingDisabled"):
        return ConfigError(
            f"billing is not set up for this project: {text}",
            where=where,
            hint="link a billing account, or set another knowledge.bigquery.project",
        )
    if reason == "notFound" and "project" in message.lower():
        return ConfigError(
            f"there is no such project: {text}",
            where=where,
            hint="correct knowledge.bigquery.project",
        )
    if reason in ("accessDenied", "forbidden") or (status == 403 and reason not in REASONS):
        return CredentialError(
            f"these credentials lack permission: {text}",
            where=where,
            hint="grant roles/bigquery.jobUser on the project; the tables themselves are public",
        )
    known = REASONS.get(reason) or ("throttled" if status == 429 else "unavailable")
    said = f"{text or 'no explanation'} ({reason or status}; see {_RULES})"
    return BigQueryRefusal(
        known, said, note=f"{reason if reason in REASONS else known}; see {_RULES}"
    )


def _is_disabled(reason: str, message: str) -> bool:
    return reason in ("accessNotConfigured", "SERVICE_DISABLED") or (
        "has not been used in project" in message or "it is disabled" in message
    )


def _reason_and_message(error: api.GoogleAPICallError) -> tuple[str, str]:
    """Return Google's reason and message, without the request's address."""
    first = error.errors[0] if error.errors else {}
    if not isinstance(first, Mapping):
        return "", str(error.message)
    message = str(first.get("message") or error.message)
    return str(first.get("reason", "")), re.sub(r"^[A-Z]+ https?://\S+ ", "", message)


def _shorten(told: object) -> str:
    text = " ".join(str(told).split())
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
