"""How many requests may be in flight: as many as an endpoint bears.

Their number is halved when a fair share of recent requests was throttled, not by a single 429, and
grows back while all goes well (additive increase, multiplicative decrease; Chiu and Jain 1989).
What is a few too many costs no halving: a slot whose request was throttled is closed for a while,
then tried, and closed for twice as long where the trial is throttled too. Random faults pass such a
trial, so that they cost no more than a pause.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

WINDOW = 16
"""Fewest outcomes that say something about congestion."""
RECENT = 4 * WINDOW
"""Most outcomes that are looked at together."""
CONGESTED = 0.25
"""Share of throttled requests among them that halves the number in flight; random faults of a few
per cent stay below it (research: performance §5). Also the share of closed slots from which the
number does not grow."""
GROWTH = 8
"""After as many successes as there are in flight, one in so many is added, one at least."""
CLOSED_S = 1.0
"""How long a slot is closed where the endpoint does not say, and the last one at most."""
LONGEST_DOUBLED_S = 8.0
"""Longest that doubling makes of it: how late it is noticed that an endpoint bears more."""


@dataclass
class Slot:
    """A place for one request in flight."""

    generation: int
    was_closed_s: float = 0.0
    """How long it was closed before, where its request is the trial; else 0."""
    close_s: float = 0.0
    """How long it is closed when its request ends; 0 for not at all."""


class Slots:
    """The places at one endpoint, of which each request in flight takes one.

    Args:
        most: Most that there may be.
        opened: Called when a closed one was opened for a trial.
    """

    def __init__(self, most: int, opened: Callable[[], None]) -> None:
        self.limit = most
        self.in_flight = 0
        self._most = most
        self._opened = opened
        self._generation = 0
        """How often the limit was halved."""
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._credit = 0
        self._closed = 0
        self._on_trial: list[float] = []
        """Open again, not yet taken: how long each was closed."""

    @property
    def free(self) -> bool:
        """Whether another request may be sent."""
        return self.in_flight + self._closed < self.limit

    def take(self) -> Slot:
        """Take a free slot: one on trial where no other is left."""
        self.in_flight += 1
        return Slot(self._generation, self._on_trial.pop() if self._on_trial else 0.0)

    def leave(self, slot: Slot) -> None:
        """Give a slot back: its request has ended."""
        self.in_flight -= 1
        if slot.close_s and slot.generation == self._generation:
            self._closed += 1
            if self.limit == 1:  # whether the endpoint is there at all must not take long to see
                slot.close_s = min(slot.close_s, CLOSED_S)
            asyncio.get_running_loop().call_later(slot.close_s, self._open, slot)

    def _open(self, slot: Slot) -> None:
        if slot.generation == self._generation:  # else the halving closed it for good
            self._closed -= 1
            self._on_trial.append(slot.close_s)
            self._opened()

    def answered(self, slot: Slot) -> None:
        """Note that the request in a slot was not throttled."""
        if slot.generation != self._generation:
            return  # it was sent before the halving and says nothing about it
        self._recent.append(False)
        if self.limit < self._most and self._closed < CONGESTED * self.limit:
            self._credit += 1
            if self._credit >= self.limit:
                self._credit = 0
                self.limit = min(self._most, self.limit + max(1, self.limit // GROWTH))

    def throttled(self, slot: Slot, asked_s: float | None) -> None:
        """Note that the request in a slot was throttled, and how long the endpoint asks to wait."""
        if slot.generation != self._generation:
            return
        doubled = min(2 * slot.was_closed_s, LONGEST_DOUBLED_S)
        slot.close_s = max(asked_s or CLOSED_S, doubled)
        self._recent.append(True)
        self._credit = 0
        share = sum(self._recent) / len(self._recent)
        if len(self._recent) >= WINDOW and share >= CONGESTED and self.limit > 1:
            self._halve()

    def _halve(self) -> None:
        self.limit //= 2
        self._generation += 1
        self._recent.clear()
        self._closed = 0
        self._on_trial.clear()
