"""A benchmark as texts to compare."""

from dataclasses import dataclass

from coreeval.schema import BadRow


@dataclass(frozen=True, slots=True)
class Entry:
    """One item."""

    id: str
    text: str
    """Its fields, a line each."""
    answer: str | None = None
    """Its label or reference; None where it has none."""


@dataclass(frozen=True)
class Texts:
    """The items of one split, and what was none."""

    name: str
    """What the user called it."""
    entries: tuple[Entry, ...]
    bad_rows: tuple[BadRow, ...] = ()
