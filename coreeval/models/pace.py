"""How fast a model may be asked: requests in flight, requests and tokens a minute, pauses.

The number of requests in flight follows the endpoint (`slots`). What waits is served by the rank of
its sample, the one that was begun first before the others: samples are finished rather than
started, whatever role asks.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from coreeval.models.failures import CallFailure
from coreeval.models.limits import allowances
from coreeval.models.sample_clock import waiting
from coreeval.models.slots import Slot, Slots

RANK: ContextVar[int] = ContextVar("rank", default=1 << 60)
"""Place in the queue of whoever asks: the number of its sample."""
LONGEST_PAUSE_S = 60.0
"""Longest pause that an endpoint may ask for."""


@dataclass
class Rate:
    """A budget that refills evenly over a minute; what was overdrawn is waited for."""

    per_minute: float
    clock: Callable[[], float]
    most: float = field(init=False)
    level: float = field(init=False)
    at: float = field(init=False)

    def __post_init__(self) -> None:
        self.most = max(1.0, self.per_minute)
        self.level, self.at = self.most, self.clock()

    def wait_s(self) -> float:
        """Return the seconds until something may be taken."""
        now = self.clock()
        gained = (now - self.at) * self.per_minute / 60
        self.level, self.at = min(self.most, self.level + gained), now
        return max(0.0, (1 - self.level) * 60 / self.per_minute)

    def take(self, amount: float) -> None:
        """Take an amount, which may be negative: an estimate that is put right."""
        self.level -= amount


class Turn:
    """A request's permission to be sent; it is told how the request ended."""

    def __init__(self, pace: "Pace", slot: Slot, tokens: int) -> None:
        self._pace = pace
        self.slot = slot
        self.tokens = tokens
        self.sent_at = pace.clock()

    def answered(self, limits: Mapping[str, str], tokens: int) -> None:
        """Note an answer, what its headers say about limits, and the tokens that it took."""
        self._pace.lost_in_a_row = 0
        self._pace.slots.answered(self.slot)
        self._pace.correct(tokens - self.tokens)
        self._pace.heed(limits, self.sent_at)

    def failed(self, failure: CallFailure) -> None:
        """Note a failure."""
        if failure.kind == "throttled":
            asked = failure.retry_after
            capped = None if asked is None else min(asked, LONGEST_PAUSE_S)
            self._pace.slots.throttled(self.slot, capped)
        else:
            self._pace.slots.answered(self.slot)
        self._pace.correct(-self.tokens)


class Pace:
    """One for each model at an endpoint, shared by all roles that it plays.

    Args:
        most: Most requests in flight.
        requests_per_minute: Most requests a minute; None for no limit of ours.
        tokens_per_minute: Most tokens a minute, of prompts and answers.
        clock: Seconds, never going back.
    """

    def __init__(
        self,
        *,
        most: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.clock = clock or time.monotonic
        self.slots = Slots(most, opened=self._serve)
        self._paused_until = 0.0
        self.lost_in_a_row = 0
        """Questions given up since one was answered."""
        self._requests = Rate(requests_per_minute, self.clock) if requests_per_minute else None
        self._tokens = Rate(tokens_per_minute, self.clock) if tokens_per_minute else None
        self._waiting: list[tuple[int, int, asyncio.Future[Slot], int]] = []
        self._arrivals = itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[Turn]:
        """Wait for a turn to send a request of about so many tokens; it ends with the block."""
        slot = await self._admitted(tokens)
        try:
            yield Turn(self, slot, tokens)
        finally:
            self.slots.leave(slot)
            self._serve()

    async def _admitted(self, tokens: int) -> Slot:
        if not self._waiting and self._wait_s() == 0.0:
            return self._let_in(tokens)
        place: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (RANK.get(), next(self._arrivals), place, tokens))
        self._serve()
        try:
            with waiting():
                return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._let_out(place.result(), tokens)  # it was let in and never came
            self._serve()
            raise

    def _let_in(self, tokens: int) -> Slot:
        for rate, amount in ((self._requests, 1), (self._tokens, tokens)):
            if rate is not None:
                rate.take(amount)
        return self.slots.take()

    def _let_out(self, slot: Slot, tokens: int) -> None:
        """Undo letting somebody in who sent nothing."""
        self.slots.leave(slot)
        for rate, amount in ((self._requests, 1), (self._tokens, tokens)):
            if rate is not None:
                rate.take(-amount)

    def _serve(self) -> None:
        """Let in who may go now, and set the alarm for who may later."""
        while self._waiting:
            if self._waiting[0][2].done():  # cancelled while it waited
                heapq.heappop(self._waiting)
                continue
            seconds = self._wait_s()
            if seconds:
                self._wake_in(seconds)
                return
            _, _, place, tokens = heapq.heappop(self._waiting)
            place.set_result(self._let_in(tokens))

    def _wait_s(self) -> float:
        """Return the seconds until the next may go: 0 for now, infinity for when one ends."""
        if not self.slots.free:
            return float("inf")
        rates = [rate.wait_s() for rate in (self._requests, self._tokens) if rate is not None]
        return max(0.0, self._paused_until - self.clock(), *rates)

    def _wake_in(self, seconds: float) -> None:
        if self._alarm:
            self._alarm.cancel()
            self._alarm = None
        if seconds != float("inf"):
            self._alarm = asyncio.get_running_loop().call_later(seconds + 0.001, self._serve)

    def correct(self, tokens: int) -> None:
        """Put right an estimate that was short by so many tokens."""
        if self._tokens is not None:
            self._tokens.take(tokens)

    def heed(self, limits: Mapping[str, str], sent_at: float) -> None:
        """Pause where the endpoint says that nothing is left until a moment.

        It looked at its limits when the request came in, so seconds count from then.
        """
        sent = datetime.now(UTC) - timedelta(seconds=self.clock() - sent_at)
        empty = [one.reset_s for one in allowances(limits, now=sent) if one.remaining <= 0]
        if empty:
            pause = min(max(empty), LONGEST_PAUSE_S)
            self._paused_until = max(self._paused_until, sent_at + pause)
