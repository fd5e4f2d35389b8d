"""What is wrong before anything is sent: the extra, the credentials, the project, the gateway."""

import builtins
import json
from pathlib import Path

import pytest
from google.api_core.exceptions import Forbidden, Unauthorized
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import RefreshError, TransportError
from pydantic import ValidationError

from coreeval.config.knowledge import BigQueryConfig
from coreeval.errors import ConfigError, CredentialError
from coreeval.tools.gdelt.bigquery.bigquery_source import open_bigquery
from coreeval.tools.gdelt.bigquery.client import explain_error, open_client
from coreeval.tools.gdelt.bigquery.request import BigQueryRefusal
from tests.support.lures import bystander, lure


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Google credentials, that is no machine of Google's."""
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nobody")
def test_no_credentials() -> None:
    with pytest.raises(CredentialError, match="no usable Google credentials") as caught:
        open_bigquery(BigQueryConfig(project="p"))
    assert "gcloud auth application-default login" in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("nobody")
def test_a_key_file_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text(json.dumps({"type": "service_account", "private_key": "s3cret"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    with pytest.raises(CredentialError) as caught:
        open_bigquery(BigQueryConfig(project="p"))
    assert "s3cret" not in str(caught.value)


@pytest.mark.usefixtures("nobody")
def test_no_project() -> None:
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
    with pytest.raises(ConfigError, match="BigQuery needs a billing project") as caught:
        open_bigquery(BigQueryConfig(), credentials=anonymous)
    assert caught.value.where == "knowledge.bigquery.project"


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without_google(name: str, *rest: object) -> object:
        if name.endswith("bigquery.client"):
            raise ModuleNotFoundError("No module named 'google.cloud'", name="google.cloud")
        return found(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_google)
    with pytest.raises(ConfigError, match=r"google\.cloud") as caught:
        open_bigquery(BigQueryConfig(project="p"))
    assert "coreeval[bigquery]" in caught.value.hint


@pytest.mark.parametrize(
    "endpoint",
    ["http://gateway.example", "https://me:pass@gateway.example", "https://g.example?key=1", "x"],
)
def test_a_gateway_that_a_token_must_not_be_sent_to(endpoint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        BigQueryConfig(endpoint=endpoint)
    (error,) = caught.value.errors()
    assert error["loc"] == ("endpoint",) and "me:pass" not in error["msg"]


def test_tokens_that_cannot_be_had() -> None:
    ended = explain_error(RefreshError("invalid_grant: Token has been expired"), "p")  # type: ignore[no-untyped-call]
    assert isinstance(ended, CredentialError)
    refused = explain_error(Unauthorized("Invalid Credentials"), "p")  # type: ignore[no-untyped-call]
    assert isinstance(refused, CredentialError) and "gcloud auth" in refused.hint
    offline = explain_error(TransportError("no route", retryable=True), "p")  # type: ignore[no-untyped-call]
    assert isinstance(offline, BigQueryRefusal) and offline.reason == "unavailable"


def test_long_and_unstructured_messages() -> None:
    told = explain_error(Forbidden("x\n" * 999), "p")  # type: ignore[no-untyped-call]
    assert isinstance(told, CredentialError)
    assert "\n" not in told.message and len(told.message) < 400


def test_bigquery_leads_nowhere() -> None:
    with bystander() as aside, lure(aside.url) as named:
        client = open_client(
            BigQueryConfig(project="p", endpoint=named.url),
            AnonymousCredentials(),  # type: ignore[no-untyped-call]
        )
        with pytest.raises(Exception, match="307"):
            client.query("SELECT 1", job_retry=None, timeout=5)
        assert named.asked and aside.asked == []
