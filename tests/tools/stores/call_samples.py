"""Calls for tests of the call store, and run files from before something was kept."""

from dataclasses import replace

from coreeval.tools.stores.call_records import SHARED, CallRecord, call_key, call_request

INSTRUCTIONS = "You label texts. " * (SHARED // 10)
"""Long enough to be kept once for all requests."""


def request(text: str = "hello", draw: int = 0, *, system: str = "") -> str:
    instructions = [{"role": "system", "content": system}] if system else []
    return call_request(
        provider="openai",
        endpoint="http://127.0.0.1/v1",
        model="m",
        parameters={"temperature": 0.0},
        schema={"name": "x", "schema": {}},
        messages=[*instructions, {"role": "user", "content": text}],
        draw=draw,
    )


def record(
    text: str = "hello",
    answer: str = '{"a": "\u00e9\U0001f600"}',
    *,
    system: str = "",
    **changes: object,
) -> CallRecord:
    asked = request(text, system=system)
    made = CallRecord(
        key=call_key(asked),
        draw=0,
        role="extractor",
        request=asked,
        response=answer,
        valid=True,
        prompt_tokens=12,
        cached_tokens=4,
        completion_tokens=3,
        model_returned="m-2026",
        finish_reason="stop",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1,
        method="json_schema",
        tries="no answer within 1 s\nbusy",
        usd=0.25,
        logprobs='[{"token": "{", "logprob": -0.5, "top_logprobs": []}]',
    )
    return replace(made, **changes)  # type: ignore[arg-type]
