"""What a node tells of its step that no later node needs: it stays out of the state."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coreeval.graph.state import Json

_NOTES: ContextVar[Json | None] = ContextVar("notes", default=None)


@contextmanager
def record_notes() -> Iterator[Json]:
    """Yield a dictionary that fills with what is noted inside the block (its tasks included)."""
    notes: Json = {}
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def note(name: str, value: object) -> None:
    """Add something to the story of the step, plain JSON, if the step is recorded."""
    notes = _NOTES.get()
    if notes is not None:
        notes[name] = value
