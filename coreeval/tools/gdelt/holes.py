"""Stretches of GDELT's archive that are known to be empty, whoever asks."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from coreeval.schema import Window

QUARTER = timedelta(minutes=15)
"""GDELT publishes a batch each quarter of an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A stretch without files; `end` is the first batch that is there again."""

    start: datetime
    end: datetime
    reason: str
    feeds: tuple[str, ...]
    """The feeds that are known to lack it."""

    @property
    def batches(self) -> int:
        """How many batches of each feed are missing."""
        return (self.end - self.start) // QUARTER


HOLES = (
    Hole(
        start=datetime(2025, 6, 14, 18, tzinfo=UTC),
        end=datetime(2025, 7, 2, 2, tzinfo=UTC),
        reason="GDELT published no GKG, Events and Mentions files in these days",
        feeds=("gkg", "gkg_translated", "events", "mentions"),
    ),
)
"""As probed file by file in October 2026 (research: gdelt §4)."""


def holes_in(window: Window) -> tuple[Hole, ...]:
    """Return the known holes that a window touches."""
    return tuple(hole for hole in HOLES if hole.start < window.end and window.start < hole.end)


def hole_at(moment: datetime, feed: str) -> Hole | None:
    """Return the known hole of a feed that a moment falls into."""
    inside = (hole for hole in HOLES if hole.start <= moment < hole.end)
    return next((hole for hole in inside if feed in hole.feeds), None)
