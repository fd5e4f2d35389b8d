"""What each status and message of an endpoint means."""

import httpx2
import openai
import pytest

from coreeval.models.failures import CallFailure, FailureKind, Refused
from coreeval.models.openai.failures import failure_of

SECRET = "sk-do-not-show"


def failure(
    status: int, error: dict[str, object] | None = None, headers: dict[str, str] | None = None
) -> CallFailure:
    """Return what a response with a status and an `error` object becomes."""
    request = httpx2.Request("POST", "http://127.0.0.1:9/v1/chat/completions")
    response = httpx2.Response(status, request=request, headers=headers)
    told = error or {}
    raised = openai.APIStatusError(str(told.get("message", "no")), response=response, body=told)
    return failure_of(raised, SECRET)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, None, "rejected"),
        (400, "content_filter", "declined"),
        (401, None, "credential"),
        (402, None, "quota"),
        (403, None, "credential"),
        (404, None, "unknown"),
        (408, None, "transient"),
        (409, None, "transient"),
        (413, None, "rejected"),
        (422, "invalid_prompt", "declined"),
        (429, None, "throttled"),
        (429, "insufficient_quota", "quota"),
        (429, "rate_limit_exceeded", "throttled"),
        (500, None, "transient"),
        (502, None, "transient"),
        (503, None, "throttled"),
        (504, None, "transient"),
        (529, None, "throttled"),
    ],
)
def test_what_a_status_means(status: int, code: str | None, kind: FailureKind) -> None:
    found = failure(status, {"message": "no", "code": code})
    assert found.kind == kind
    assert found.retryable == (kind in ("transient", "throttled"))


def test_the_type_of_an_error_can_say_that_there_is_no_money() -> None:
    assert failure(429, {"message": "no", "type": "insufficient_quota"}).kind == "quota"


def test_how_long_to_wait_is_taken_over() -> None:
    assert failure(429, headers={"Retry-After": "7"}).retry_after == 7
    assert failure(429).retry_after is None


def test_a_message_is_one_short_line_without_the_key() -> None:
    said = failure(500, {"message": f"key {SECRET}\n" + "x" * 999}).message
    assert said.startswith("key *** xxx") and len(said) <= 300


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("Unsupported parameter: 'response_format'", "method"),
        ("response_format.type: json_schema is not supported by this model", "method"),
        ("Invalid value: 'json_schema'. Supported values are: 'json_object' and 'text'.", "method"),
        ("tools is not supported in this model. For a full list of supported features", "method"),
        ("tool_choice: Extra inputs are not permitted", "method"),
        ("Failed to parse grammar: unexpected end of input", "method"),
        ("Structured output is not available for this model", "method"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "limit",
        ),
        ("Unrecognized request argument supplied: max_completion_tokens", "limit"),
        ("This model's maximum context length is 4096 tokens", None),
        ("temperature: unsupported value", None),
        ("messages: unknown role", None),
        ("bad", None),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_which_way_of_asking_an_endpoint_does_not_know(
    status: int, message: str, refused: Refused | None
) -> None:
    found = failure(status, {"message": message})
    assert found.refused == refused
    assert found.kind == ("unsupported" if refused else "rejected")


@pytest.mark.parametrize(
    "message",
    [
        "`max_tokens` must be less than or equal to `8192`",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "max_tokens is too large: 9000. This model supports at most 8192 completion tokens.",
    ],
)
def test_a_limit_that_is_too_high_is_not_a_name_that_is_not_known(message: str) -> None:
    """Another name would not help, and would be remembered for this model for ever."""
    assert failure(400, {"message": message, "param": "max_tokens"}).refused is None


def test_the_parameter_that_is_named_beside_the_message_counts() -> None:
    assert failure(400, {"message": "unsupported", "param": "response_format"}).refused == "method"


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, None), (403, None), (429, None), (500, None), (400, "content_filter")],
)
def test_only_a_request_that_is_rejected_is_asked_otherwise(status: int, code: str | None) -> None:
    found = failure(status, {"message": "unsupported response_format", "code": code})
    assert found.refused is None


def test_a_text_that_is_too_long_is_no_question_of_the_way() -> None:
    error: dict[str, object] = {
        "message": "max_tokens must be lower: the context is exceeded",
        "code": "context_length_exceeded",
    }
    assert failure(400, error).refused is None
