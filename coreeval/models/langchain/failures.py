"""What providers' packages raise, as the failures that this program knows."""

from collections.abc import Mapping

import openai
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from openai.types import CompletionUsage

from coreeval.models.chat import ai_message
from coreeval.models.connection_failures import connection_failure
from coreeval.models.counts import ImpossibleCount
from coreeval.models.failures import CallFailure, FailureKind, clean
from coreeval.models.retry import retry_after_seconds
from coreeval.models.statuses import (
    DECLINED,
    NO_MONEY,
    kind_of,
    names_method,
    not_taken,
    redirect_note,
)
from coreeval.models.usage import usage_of


def failure_of(error: Exception, secret: str) -> CallFailure:
    """Return the failure that an error is, by its status where it has one.

    What nothing is known about may heal: it is tried again.
    """
    response = getattr(error, "response", None)
    status = _status(error, response)
    if status is None:
        return _without_status(error, secret)
    kind = _kind(error, status)
    said = redirect_note(status, _header(response, "location")) or str(error)
    return CallFailure(
        kind,
        clean(said, secret),
        retry_after=retry_after_seconds(_header(response, "retry-after")),
        refused="method" if kind == "unsupported" else None,
    )


def cut_short(error: Exception) -> AIMessage | None:
    """Return the answer that OpenAI's SDK keeps in an error because it met the length limit."""
    if not isinstance(error, openai.LengthFinishReasonError):
        return None
    done = error.completion
    said = done.choices[0].message.content or ""
    return ai_message(said, finish="length", model=done.model, usage=_counted(done.usage))


def _counted(usage: CompletionUsage | None) -> UsageMetadata | ImpossibleCount | None:
    if usage is None:
        return None
    return usage_of(prompt=usage.prompt_tokens, completion=usage.completion_tokens)


def _without_status(error: Exception, secret: str) -> CallFailure:
    told = clean(f"{type(error).__name__}: {error}", secret)
    if "content filter" in str(error):
        return CallFailure("declined", told, billed=True)
    if type(error) is ConnectionError:  # its subclasses say that a connection broke
        return CallFailure("unreachable", told)
    failure = connection_failure(error, secret)
    if failure.kind != "transient" or isinstance(error, openai.APIConnectionError):
        return failure
    return CallFailure("transient", told, billed=True)


def _kind(error: Exception, status: int) -> FailureKind:
    codes = {str(getattr(error, name, "")) for name in ("code", "type")}
    kind = kind_of(status)
    if codes & NO_MONEY:
        return "quota"
    if kind == "rejected" and codes & DECLINED:
        return "declined"
    said = str(error)
    if kind == "rejected" and names_method(said) and not_taken(said):
        return "unsupported"
    return kind


def _status(error: Exception, response: object) -> int | None:
    """Return the HTTP status of an error, wherever its package keeps it."""
    places = (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(response, "status_code", None),
        _of_boto(response),
    )
    return next((one for one in places if isinstance(one, int) and 300 <= one < 600), None)


def _of_boto(response: object) -> object:
    """Return the status where Amazon's SDK has it."""
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    return metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None


def _header(response: object, name: str) -> str | None:
    headers = getattr(response, "headers", None)
    found = headers.get(name) if isinstance(headers, Mapping) else None
    return found if isinstance(found, str) else None
