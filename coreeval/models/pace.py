"""How fast a model may be asked: requests in flight, requests and tokens a minute, pauses.

The number of requests in flight follows the endpoint. It is halved when a fair share of recent
requests was throttled, not by a single 429, and grows back while all goes well (additive increase,
multiplicative decrease; Chiu and Jain 1989). What waits is served by the rank of its sample, the
one that was begun first before the others: samples are finished rather than started, whatever role
asks.
"""

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from coreeval.models.failures import CallFailure
from coreeval.models.limits import Allowance, allowances

RANK: ContextVar[int] = ContextVar("rank", default=1 << 60)
"""Place in the queue of whoever asks: the number of its sample."""
WINDOW = 16
"""Fewest outcomes that say something about congestion."""
CONGESTED = 0.25
"""Share of throttled requests among them that halves the number in flight; random faults of a few
per cent stay below it (research: performance §5)."""
GROWTH = 8
"""After as many successes as there are in flight, one in so many is added, one at least."""
LONGEST_PAUSE_S = 60.0
"""Longest pause that rate-limit headers may ask for."""


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

    def __init__(self, pace: "Pace", generation: int, tokens: int) -> None:
        self._pace = pace
        self.generation = generation
        self.tokens = tokens

    def answered(self, limits: Mapping[str, str], tokens: int) -> None:
        """Note an answer, what its headers say about limits, and the tokens that it took."""
        self._pace.lost_in_a_row = 0
        self._pace.note(self, throttled=False, tokens=tokens)
        self._pace.heed(allowances(limits))

    def failed(self, failure: CallFailure) -> None:
        """Note a failure."""
        self._pace.note(self, throttled=failure.kind == "throttled", tokens=0)


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
        self._clock = clock or time.monotonic
        self.most = most
        self.limit = most
        self.in_flight = 0
        self._generation = 0
        self._recent: deque[bool] = deque(maxlen=2 * WINDOW)
        self._credit = 0
        self._paused_until = 0.0
        self.lost_in_a_row = 0
        """Questions given up since one was answered."""
        self._requests = Rate(requests_per_minute, self._clock) if requests_per_minute else None
        self._tokens = Rate(tokens_per_minute, self._clock) if tokens_per_minute else None
        self._waiting: list[tuple[int, int, asyncio.Future[None], int]] = []
        self._arrivals = itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[Turn]:
        """Wait for a turn to send a request of about so many tokens; it ends with the block."""
        await self._admitted(tokens)
        try:
            yield Turn(self, self._generation, tokens)
        finally:
            self.in_flight -= 1
            self._serve()

    async def _admitted(self, tokens: int) -> None:
        if not self._waiting and self._wait_s() == 0.0:
            self._let_in(tokens)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (RANK.get(), next(self._arrivals), place, tokens))
        self._serve()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._let_out(tokens)  # it was let in and never came
            self._serve()
            raise

    def _let_in(self, tokens: int) -> None:
        self.in_flight += 1
        for rate, amount in ((self._requests, 1), (self._tokens, tokens)):
            if rate is not None:
                rate.take(amount)

    def _let_out(self, tokens: int) -> None:
        """Undo letting somebody in who sent nothing."""
        self.in_flight -= 1
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
            self._let_in(tokens)
            place.set_result(None)

    def _wait_s(self) -> float:
        """Return the seconds until the next may go: 0 for now, infinity for when one ends."""
        if self.in_flight >= self.limit:
            return float("inf")
        rates = [rate.wait_s() for rate in (self._requests, self._tokens) if rate is not None]
        return max(0.0, self._paused_until - self._clock(), *rates)

    def _wake_in(self, seconds: float) -> None:
        if self._alarm:
            self._alarm.cancel()
            self._alarm = None
        if seconds != float("inf"):
            self._alarm = asyncio.get_running_loop().call_later(seconds + 0.001, self._serve)

    def note(self, turn: Turn, *, throttled: bool, tokens: int) -> None:
        """Take notice of how a request ended."""
        if self._tokens is not None:
            self._tokens.take(tokens - turn.tokens)
        if turn.generation != self._generation:
            return  # it was sent before the last change and says nothing about it
        self._recent.append(throttled)
        if throttled:
            self._credit = 0
            if len(self._recent) >= WINDOW and self._share() >= CONGESTED:
                self._change(max(1, self.limit // 2))
        elif self.limit < self.most:
            self._credit += 1
            if self._credit >= self.limit:
                self._credit = 0
                self.limit = min(self.most, self.limit + max(1, self.limit // GROWTH))

    def _share(self) -> float:
        return sum(self._recent) / len(self._recent)

    def _change(self, limit: int) -> None:
        self.limit, self._credit = limit, 0
        self._generation += 1
        self._recent.clear()

    def heed(self, told: list[Allowance]) -> None:
        """Pause where the endpoint says that nothing is left until a moment."""
        empty = [one.reset_s for one in told if one.remaining <= 0]
        if empty:
            pause = min(max(empty), LONGEST_PAUSE_S)
            self._paused_until = max(self._paused_until, self._clock() + pause)
