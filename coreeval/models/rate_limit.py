"""Limits the requests to a model: requests in flight, requests and tokens per minute, pauses.

Waiting requests are served by the rank of their sample, earlier samples first, so that samples are
finished before new ones start.

The number of requests in flight adapts to the endpoint. It is halved when a certain share of recent
requests was throttled, not by a single 429, and grows again while requests succeed (additive
increase, multiplicative decrease; Chiu and Jain 1989). A few throttled requests do not halve it:
the slot of a throttled request is closed for a while, then tried, and closed for twice as long if
the trial is throttled, too. After a chance failure the trial succeeds, so the failure costs only a
pause.
"""

import asyncio
import heapq
import itertools
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from coreeval.models.activity import pause_sample_clock
from coreeval.models.failures import LONGEST_WAIT_S, CallFailure

WINDOW = 16
"""The fewest outcomes from which congestion is measured."""
RECENT = 4 * WINDOW
"""The most recent outcomes that are considered."""
CONGESTED = 0.25
"""The share of throttled requests among them from which the number in flight is halved; chance
failures of a few per cent stay below it (research: performance §5). Also the share of closed slots
from which the number does not grow."""
GROWTH = 8
"""After as many successes as requests in flight, the number grows by this fraction, by one at
least."""
CLOSED_S = 1.0
"""Seconds for which a slot is closed if the endpoint names no time; the limit for the last open
slot."""
LONGEST_DOUBLED_S = 8.0
"""The longest closing time after doubling: how late a rise of the endpoint's limit is noticed."""


@dataclass
class Slot:
    """A slot for one request in flight."""

    generation: int
    was_closed_s: float = 0.0
    """Seconds for which it was closed before, if its request is a trial; otherwise 0."""
    close_s: float = 0.0
    """Seconds for which it is closed when its request ends; 0 for not at all."""


class ConcurrencyLimiter:
    """The slots of one endpoint; each request in flight takes one.

    Args:
        most: The most slots.
        opened: Called when a closed slot was opened for a trial.
    """

    def __init__(self, most: int, opened: Callable[[], None]) -> None:
        self.limit = most
        self.in_flight = 0
        self._most = most
        self._on_open = opened
        self._generation = 0
        """How often the limit was halved."""
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._credit = 0
        self._closed = 0
        self._on_trial: list[float] = []
        """Reopened slots that are not taken yet: for how long each was closed."""

    @property
    def free(self) -> bool:
        """Whether another request may be sent."""
        return self.in_flight + self._closed < self.limit

    def take(self) -> Slot:
        """Take a free slot; use a trial slot if no other is left."""
        self.in_flight += 1
        return Slot(self._generation, self._on_trial.pop() if self._on_trial else 0.0)

    def release(self, slot: Slot) -> None:
        """Release a slot when its request has ended."""
        self.in_flight -= 1
        if slot.close_s and slot.generation == self._generation:
            self._closed += 1
            if self.limit == 1:  # an unreachable endpoint must be noticed soon
                slot.close_s = min(slot.close_s, CLOSED_S)
            asyncio.get_running_loop().call_later(slot.close_s, self._open, slot)

    def _open(self, slot: Slot) -> None:
        if slot.generation == self._generation:  # otherwise the halving removed it
            self._closed -= 1
            self._on_trial.append(slot.close_s)
            self._on_open()

    def record_success(self, slot: Slot) -> None:
        """Record that the request in a slot was not throttled."""
        if slot.generation != self._generation:
            return  # it was sent before the halving
        self._recent.append(False)
        if self.limit < self._most and self._closed < CONGESTED * self.limit:
            self._credit += 1
            if self._credit >= self.limit:
                self._credit = 0
                self.limit = min(self._most, self.limit + max(1, self.limit // GROWTH))

    def record_throttling(self, slot: Slot, asked_s: float | None) -> None:
        """Record that the request in a slot was throttled, and the requested wait."""
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


_REMAINING = re.compile(
    r"x-ratelimit-remaining-(?P<openai>[a-z-]+)"
    r"|anthropic-ratelimit-(?P<anthropic>[a-z-]+)-remaining"
)
_COUNT = re.compile(r"[0-9]{1,18}")
_PART = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,18})?)(?P<unit>ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Allowance:
    """The remainder of one limit, and the seconds until it is full again."""

    remaining: int
    reset_s: float


def parse_allowances(headers: Mapping[str, str], *, now: datetime | None = None) -> list[Allowance]:
    """Return the allowances in the headers; headers that cannot be read are ignored.

    Args:
        headers: Headers by lower-case name: OpenAI's `x-ratelimit-remaining-requests` and
            `x-ratelimit-reset-requests` ("6m0s"), Anthropic's `anthropic-ratelimit-requests-…` with
            a time in RFC 3339.
        now: The current time, for tests.
    """
    found = []
    for name, value in headers.items():
        match = _REMAINING.fullmatch(name)
        if match is None or not _COUNT.fullmatch(value):
            continue
        reset = headers.get(_reset_name(match), "")
        seconds = (
            _parse_duration(reset)
            if match["openai"]
            else _seconds_until_reset(reset, now or datetime.now(UTC))
        )
        if seconds is not None:
            found.append(Allowance(int(value), seconds))
    return found


def _reset_name(match: re.Match[str]) -> str:
    if match["openai"]:
        return f"x-ratelimit-reset-{match['openai']}"
    return f"anthropic-ratelimit-{match['anthropic']}-reset"


def _parse_duration(text: str) -> float | None:
    parts = list(_PART.finditer(text))
    if not parts or "".join(part.group() for part in parts) != text:
        return None
    return sum(float(part["number"]) * _SECONDS[part["unit"]] for part in parts)


def _seconds_until_reset(text: str, now: datetime) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


RANK: ContextVar[int] = ContextVar("rank", default=1 << 60)
"""The caller's place in the queue: the number of its sample."""


@dataclass
class MinuteLimit:
    """A budget that refills evenly over a minute; it may be overdrawn and then has to recover."""

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
        """Take an amount; a negative one corrects an estimate."""
        self.level -= amount


class Permit:
    """A request's permission to be sent; it receives the outcome."""

    def __init__(self, limiter: "RateLimiter", slot: Slot, tokens: int) -> None:
        self._limiter = limiter
        self.slot = slot
        self.tokens = tokens
        self.sent_at = limiter.clock()

    def record_answer(self, limits: Mapping[str, str], tokens: int) -> None:
        """Record an answer, the limits in its headers, and the tokens that it used."""
        self._limiter.failures_in_a_row = 0
        self._limiter.slots.record_success(self.slot)
        self._limiter.correct_tokens(tokens - self.tokens)
        self._limiter.apply_headers(limits, self.sent_at)

    def record_failure(self, failure: CallFailure) -> None:
        """Record a failure."""
        if failure.kind == "throttled":
            self._limiter.slots.record_throttling(self.slot, failure.retry_after)
        else:
            self._limiter.slots.record_success(self.slot)
        self._limiter.correct_tokens(-self.tokens)


class RateLimiter:
    """The limiter of a model at an endpoint, shared by all its roles.

    Args:
        most: The most requests in flight.
        requests_per_minute: The most requests per minute; None for no configured limit.
        tokens_per_minute: The most tokens of prompts and answers per minute.
        clock: Returns monotonic seconds.
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
        self.slots = ConcurrencyLimiter(most, opened=self._serve)
        self._paused_until = 0.0
        self.failures_in_a_row = 0
        """The number of failed requests since the last answer."""
        self._requests = (
            MinuteLimit(requests_per_minute, self.clock) if requests_per_minute else None
        )
        self._tokens = MinuteLimit(tokens_per_minute, self.clock) if tokens_per_minute else None
        self._waiting: list[tuple[int, int, asyncio.Future[Slot], int]] = []
        self._arrivals = itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def acquire(self, tokens: int) -> AsyncIterator[Permit]:
        """Wait for a turn to send a request of about `tokens` tokens; it ends with the block."""
        slot = await self._wait_for_slot(tokens)
        try:
            yield Permit(self, slot, tokens)
        finally:
            self.slots.release(slot)
            self._serve()

    async def _wait_for_slot(self, tokens: int) -> Slot:
        if not self._waiting and self._wait_s() == 0.0:
            return self._take_slot(tokens)
        place: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (RANK.get(), next(self._arrivals), place, tokens))
        self._serve()
        try:
            with pause_sample_clock():
                return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._return_slot(place.result(), tokens)  # it was admitted and did not run
            self._serve()
            raise

    def _take_slot(self, tokens: int) -> Slot:
        for rate, amount in ((self._requests, 1), (self._tokens, tokens)):
            if rate is not None:
                rate.take(amount)
        return self.slots.take()

    def _return_slot(self, slot: Slot, tokens: int) -> None:
        """Undo the admission of a caller that sent nothing."""
        self.slots.release(slot)
        for rate, amount in ((self._requests, 1), (self._tokens, tokens)):
            if rate is not None:
                rate.take(-amount)

    def _serve(self) -> None:
        """Admit the callers that may send now, and set the alarm for the next."""
        while self._waiting:
            if self._waiting[0][2].done():  # cancelled while it waited
                heapq.heappop(self._waiting)
                continue
            seconds = self._wait_s()
            if seconds:
                self._wake_in(seconds)
                return
            _, _, place, tokens = heapq.heappop(self._waiting)
            place.set_result(self._take_slot(tokens))

    def _wait_s(self) -> float:
        """Return the seconds until the next request may be sent; infinity if no slot is free."""
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

    def correct_tokens(self, tokens: int) -> None:
        """Correct an estimate that was too low by `tokens` tokens."""
        if self._tokens is not None:
            self._tokens.take(tokens)

    def apply_headers(self, limits: Mapping[str, str], sent_at: float) -> None:
        """Pause if the endpoint says that nothing is left until a certain time.

        The endpoint computed its limits when the request arrived, so seconds count from then.
        """
        sent = datetime.now(UTC) - timedelta(seconds=self.clock() - sent_at)
        empty = [one.reset_s for one in parse_allowances(limits, now=sent) if one.remaining <= 0]
        if empty:
            pause = min(max(empty), LONGEST_WAIT_S)
            self._paused_until = max(self._paused_until, sent_at + pause)
