"""Spans as OpenTelemetry means them, as plain values: making them needs nothing of its SDK.

Trace and span ids are derived from what they stand for, so that a run that is taken up again goes
on with the traces that it began.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

Attribute = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Attribute]
_TRACE_BYTES, _SPAN_BYTES = 16, 8


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a span stands: its trace, and which it is of that."""

    trace_id: int
    span_id: int

    @classmethod
    def of(cls, *trace: str, root: str) -> Self:
        """Return the place of a trace's root.

        Args:
            trace: What the trace is about; the same gives the same trace.
            root: What tells its roots apart, where there are several.
        """
        return cls(
            trace_id=_derived(_TRACE_BYTES, *trace), span_id=_derived(_SPAN_BYTES, *trace, root)
        )

    def below(self, *parts: str) -> Self:
        """Return the place of a child that these words tell apart from other children."""
        own = _derived(_SPAN_BYTES, f"{self.trace_id:x}", f"{self.span_id:x}", *parts)
        return type(self)(trace_id=self.trace_id, span_id=own)


def _derived(size: int, *parts: str) -> int:
    """Return a number that is never 0, which stands for no id."""
    digest = hashlib.sha256("\n".join(parts).encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:size], "big") or 1


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened at the end of a span."""

    name: str
    attributes: Attributes


@dataclass(frozen=True, kw_only=True)
class Span:
    """One thing that was done, with its beginning and its end."""

    name: str
    place: Place
    parent: Place | None
    started: datetime
    ended: datetime
    attributes: Attributes
    events: Sequence[Event] = field(default=())
    error: str | None = None
    """Why it failed, empty where that is not told; None where it did not fail."""
    remote: bool = False
    """Whether it waited for somebody else, such as a model."""
