"""What was found of somebody, where, and what becomes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Action = Literal["blanked", "deleted", "reopened", "reported"]
"""A text is replaced, a row or file is deleted, a sample is asked again; or it is only told."""
Tell = Callable[[str], None]
"""Told of each place that is looked at."""

UNREAD = "file that cannot be read"
"""Kind of what may name them or not."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """Some texts of one kind in one place."""

    kind: str
    path: Path
    count: int
    action: Action
    to_do: str = ""
    """What is left to the user."""
