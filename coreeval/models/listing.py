"""Asks an endpoint for its models: this is free and reveals most mistakes before a run.

No standard defines this response, so only certain faults are reported: nothing answers, a web page
answers, the key is refused, the list is one path level further down, or a complete list lacks the
model. Anything else is accepted.
"""

from collections.abc import Sequence
from fnmatch import fnmatch
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ValidationError

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError, CredentialError, ModelUnusable, suggest_name
from coreeval.models.failures import (
    NO_API,
    CallFailure,
    FinalError,
    clean_message,
    describe_web_page,
    to_final_error,
)
from coreeval.models.http import find_proxy, load_trusted_certificates, to_connection_failure
from coreeval.tools.formatting import list_first
from coreeval.tools.http import BoundedClient

_PATIENCE_S = 5.0
_LONGEST_S = 30.0
"""The timeout for the list, in seconds."""
_DEPLOYED = ".azure.com"
"""Hosts that list deployable models, although requests name a deployment."""
_TAILS = ("/chat/completions", "/completions", "/messages", "/models")
"""What base_url has too much if it is copied from an example request."""
_SHOWN = 5


class _ModelEntry(BaseModel):
    id: str


class _ModelList(BaseModel):
    data: list[_ModelEntry]
    has_more: bool = False


def check_listed(config: ModelConfig, base_url: str, key: str) -> None:
    """Check that an endpoint answers, accepts the key and offers the model.

    Args:
        config: The model.
        base_url: Its endpoint.
        key: The key to send; a provider's package may use another that it does not expose.

    Raises:
        ModelUnusable: nothing or a web page answers at the endpoint, or it lacks the model.
        CredentialError: the endpoint refuses the key.
        ConfigError: base_url lacks its /v1, or its proxy or certificates are misconfigured.
    """
    root = base_url.rstrip("/")
    with BoundedClient(
        most_s=_LONGEST_S,
        proxy=find_proxy(root),
        verify=load_trusted_certificates(config.ca_file),
        trust_env=False,
        timeout=_PATIENCE_S,
        headers=_headers(config, key),
    ) as client:
        _check_endpoint(config, root, client, key)


def _check_endpoint(config: ModelConfig, root: str, client: httpx2.Client, key: str) -> None:
    if config.provider not in ("openai", "anthropic"):
        _get(config, client, root, key)
        return
    answer = _get(config, client, _list_url(config, root), key)
    if answer is None:
        return
    if answer.status_code == 200 and describe_web_page(answer.text):
        _suggest_endpoint(config, root, client, key)
        _refuse_web_page(config, root, client, key)
    if answer.status_code == 401:
        raise _credential_error(config, root)
    if answer.status_code == 407:
        raise _final_error(config, CallFailure("blocked", "the proxy blocks requests (status 407)"))
    if answer.status_code == 404:
        _suggest_endpoint(config, root, client, key)
    _check_name(config, root, _read_names(answer), key)


def _refuse_web_page(config: ModelConfig, root: str, client: httpx2.Client, key: str) -> None:
    """Raise an error if an empty request, which is free, is answered with a web page, too.

    Some servers show a page only in place of the list.
    """
    try:
        answer = client.post(_question_url(config, root), json={})
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return
    knows_none = answer.status_code == 200 or answer.status_code in NO_API
    if knows_none and (page := describe_web_page(answer.text, key)):
        raise _final_error(config, CallFailure("web_page", page))


def _question_url(config: ModelConfig, root: str) -> str:
    if config.provider == "anthropic":
        return f"{root.removesuffix('/v1')}/v1/messages"
    return f"{root}/chat/completions"


def _headers(config: ModelConfig, key: str) -> dict[str, str]:
    if config.provider == "openai":
        return {"Authorization": f"Bearer {key}"}
    if config.provider == "anthropic":
        both = {"Authorization": f"Bearer {key}", "x-api-key": key}
        return {**both, "anthropic-version": "2023-06-01"}
    return {}


def _list_url(config: ModelConfig, root: str) -> str:
    if config.provider == "anthropic":
        return f"{root.removesuffix('/v1')}/v1/models?limit=1000"
    return f"{root}/models"


def _get(config: ModelConfig, client: httpx2.Client, url: str, key: str) -> httpx2.Response | None:
    """Return a response, or None if the server answers with nothing useful."""
    try:
        return client.get(url)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = to_connection_failure(error, key)
    if failure.kind in ("unreachable", "blocked"):
        raise _final_error(config, failure)
    return None


def _final_error(config: ModelConfig, failure: CallFailure) -> FinalError:
    return to_final_error(
        failure,
        model=config.model,
        endpoint=config.base_url or "",
        key_env=config.key_variable,
    )


def _credential_error(config: ModelConfig, root: str) -> CredentialError:
    return CredentialError(
        f"{config.model}: the key in {config.key_variable} is missing or was refused",
        where=root,
        hint=f"put a valid key in the environment variable {config.key_variable}",
    )


# -- another place ------------------------------------------------------------------------------


def _suggest_endpoint(config: ModelConfig, root: str, client: httpx2.Client, key: str) -> None:
    """Suggest the right endpoint if it is near the configured one."""
    for place in _nearby(root):
        answer = _get(config, client, _list_url(config, place), key)
        if answer is not None and _read_names(answer):
            raise ConfigError(
                f"{config.model}: there is no endpoint at {root}, but there is one at {place}",
                where=f"base_url of {config.model}",
                hint=f"set base_url: {place}",
            )


def _nearby(root: str) -> list[str]:
    trimmed = next((root.removesuffix(tail) for tail in _TAILS if root.endswith(tail)), root)
    places = [trimmed] if trimmed.endswith("/v1") else [trimmed, f"{trimmed}/v1"]
    parts = urlsplit(root)
    usual = f"{parts.scheme}://{parts.netloc}/v1"
    return [place for place in dict.fromkeys([*places, usual]) if place != root]


# -- the model ----------------------------------------------------------------------------------


def _read_names(answer: httpx2.Response) -> list[str]:
    """Return the model names if the list is complete, otherwise none."""
    if answer.status_code != 200:
        return []
    try:
        listed = _ModelList.model_validate_json(answer.content)
    except ValidationError:
        return []
    return [] if listed.has_more else [one.id for one in listed.data]


def _check_name(config: ModelConfig, root: str, names: Sequence[str], key: str) -> None:
    hosted = (urlsplit(root).hostname or "").endswith(_DEPLOYED)
    if not names or hosted or any(_is_listed(config.name, name) for name in names):
        return
    shown = [clean_message(name, key) for name in names]
    raise ModelUnusable(
        f"{config.model}: the endpoint has no model {config.name!r}",
        where=root,
        hint=suggest_name(config.name, shown, f"it has {list_first(shown, _SHOWN)}"),
    )


def _is_listed(name: str, listed: str) -> bool:
    """Return whether a name matches a listed one, given how servers shorten and extend names.

    `llama3` is `llama3:latest`, `gpt-x:online` a variant of `gpt-x`, `gemini-x` short for
    `models/gemini-x`, and `openai/*` a gateway's pattern for all models of a provider.
    """
    asked, known = name.casefold(), listed.casefold()
    same = {known, known.removesuffix(":latest"), known.rpartition("/")[2]}
    return asked in same or asked.rpartition(":")[0] == known or fnmatch(asked, known)
