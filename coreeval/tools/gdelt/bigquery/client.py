"""The client of Google's, opened with the user's own credentials and with deadlines."""

import os

import google.auth
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import DefaultCredentialsError
from google.auth.transport.requests import AuthorizedSession
from google.cloud.bigquery import Client
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from coreeval.config.remote_news import BigQueryConfig
from coreeval.errors import ConfigError, CredentialError

HTTP_S = 30.0
"""Most that one HTTP request may be silent; the client's own least is 120 s."""
PROJECT = "GOOGLE_CLOUD_PROJECT"
EMULATOR = "BIGQUERY_EMULATOR_HOST"
"""Google's own variables for the project, and for a stand-in that is shown no credentials."""
NO_PROJECT = "local"
"""How the project is called where nobody pays."""


class _Prompt(HTTPAdapter):
    """Waits for no answer longer than `HTTP_S`, whatever the client would."""

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: object = None,
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
        proxies: dict[str, str] | None = None,
    ) -> Response:
        allowed = min(timeout, HTTP_S) if isinstance(timeout, int | float) else HTTP_S
        return super().send(request, stream, allowed, verify, cert, proxies)


def open_client(config: BigQueryConfig, credentials: Credentials | None = None) -> Client:
    """Return a client for a config.

    Args:
        config: Which project pays, and where.
        credentials: Whose; application-default credentials where none are given.

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
            "BigQuery needs a project that pays, and the credentials name none",
            where="knowledge.bigquery.project",
            hint=f"name one there, or in the environment variable {PROJECT}",
        )
    session = AuthorizedSession(credentials, refresh_timeout=HTTP_S)  # type: ignore[no-untyped-call]
    session.max_redirects = 0  # what is asked, and the token, stay where they were sent
    session.mount("https://", _Prompt())
    session.mount("http://", _Prompt())
    return Client(
        project=project,
        credentials=credentials,
        location=config.location,
        client_options=ClientOptions(api_endpoint=endpoint),
        _http=session,
    )


def _default_credentials() -> tuple[Credentials, str | None]:
    try:
        credentials, project = google.auth.default(scopes=list(Client.SCOPE))
    except DefaultCredentialsError as error:
        raise CredentialError(
            f"there are no usable Google credentials: {str(error).splitlines()[0]}",
            where="application-default credentials",
            hint="run gcloud auth application-default login, or let GOOGLE_APPLICATION_CREDENTIALS"
            " name the key file of a service account",
        ) from None
    return credentials, project
