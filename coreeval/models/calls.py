"""Which calls a step made: a list that the asker appends to while a step listens."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated

from pydantic import Field

from coreeval.schema import Value
from coreeval.tools.stores.call_records import CallRecord


class CallRef(Value):
    """One call as a step of a sample refers to it."""

    role: str
    key: str
    """Where the call store keeps it."""
    model: str
    draw: int
    cached: bool
    """True when it came from the call store or was shared with another asker: not paid here."""
    paid_by: str
    """The run that paid for it, as the call store was told; empty where it was not."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    method: str
    """How the model was asked to keep to the schema."""
    tries: str
    """Why earlier requests for it came to nothing, a line each."""
    error: str
    """Why it is no answer; empty where it is one."""
    usd: float | None
    record: Annotated[CallRecord | None, Field(exclude=True, repr=False)] = None
    """The whole of it, for whoever listens; it is not kept with the step."""


_CALLS: ContextVar[list[CallRef] | None] = ContextVar("calls", default=None)


@contextmanager
def record_calls() -> Iterator[list[CallRef]]:
    """Yield a list that fills with the calls made inside the block (its tasks included)."""
    calls: list[CallRef] = []
    token = _CALLS.set(calls)
    try:
        yield calls
    finally:
        _CALLS.reset(token)


def note_call(call: CallRef) -> None:
    """Add a call to the list of the innermost block that records, if there is one."""
    calls = _CALLS.get()
    if calls is not None:
        calls.append(call)
