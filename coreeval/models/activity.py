"""The state of a process's model calls.

`ActiveCalls` reports what each call waits for and how fast answers arrive; `record_calls` collects
the calls of a step. `SampleClock` limits the time that a sample may take. It does not count waiting
for a turn at a model, because more samples are open than may ask at once and earlier samples are
served first: such a wait says how busy the model is, not how long the sample takes. It does not
count time for which the process was stopped or its machine asleep either.

While a process is stopped or its machine is asleep, incoming data such as an answer waits to be
read. A timeout must not count these seconds: `awake_s` leaves them out.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple
from weakref import WeakKeyDictionary

from pydantic import Field

from coreeval.models.failures import CallFailure
from coreeval.schema import Value
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.heartbeat import RoleSpeed, Wait

CallStage = Literal["turn", "budget", "answer", "resting"]
"""What a call waits for: a free place in flight, budget, the answer, or the next try."""


@dataclass
class ActiveCall:
    """A call from its request to its answer; the sender updates its stage."""

    model: str
    clock: Callable[[], float]
    place: CallStage = "turn"
    began: float = field(init=False)
    since: float = field(init=False)
    """When the current stage began."""
    sent_s: float = 0.0
    """Seconds from the last request to its end."""

    def __post_init__(self) -> None:
        self.began = self.since = self.clock()

    def move_to(self, place: CallStage) -> None:
        """Set the stage that the call is in from now on."""
        now = self.clock()
        if self.place == "answer":
            self.sent_s = now - self.since
        self.place, self.since = place, now


class _LastFailure(NamedTuple):
    throttled: bool
    reason: str


@dataclass
class _AnswerTally:
    answers: int = 0
    seconds: float = 0.0


@dataclass
class ActiveCalls:
    """All calls of a process; its model pools share it.

    Args:
        clock: Returns monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    moved_at: float = field(init=False)
    """When the last answer arrived."""

    def __post_init__(self) -> None:
        self.moved_at = self.clock()
        self._open: dict[int, ActiveCall] = {}
        self._tallies: dict[tuple[str, str], _AnswerTally] = {}
        self._troubles: dict[str, _LastFailure] = {}
        """Why a model's last request failed; removed when a request is answered."""
        self._impossible: dict[str, str] = {}
        """The first impossible count of each model; empty after it was reported."""

    def record_impossible_count(self, model: str, told: str) -> None:
        """Record that a model's endpoint reported a token count that cannot be true."""
        self._impossible.setdefault(model, told)

    def count_notes(self) -> list[str]:
        """Return one line per model that reported impossible token counts."""
        new = {model: told for model, told in self._impossible.items() if told}
        self._impossible |= dict.fromkeys(new, "")
        return [
            f"{model}: its endpoint reported an impossible token count ({told}); each such call "
            "is charged at its maximum cost"
            for model, told in new.items()
        ]

    @contextmanager
    def track(self, role: str, model: str) -> Iterator[ActiveCall]:
        """Track one call during the block; if the block raises nothing, it counts as answered."""
        call = ActiveCall(model, self.clock)
        self._open[id(call)] = call
        try:
            yield call
        finally:
            del self._open[id(call)]
        call.move_to("turn")
        self.moved_at = self.clock()
        self._troubles.pop(model, None)
        tally = self._tallies.setdefault((role, model), _AnswerTally())
        tally.answers += 1
        tally.seconds += call.sent_s

    def record_failure(self, model: str, failure: CallFailure) -> None:
        """Record why a request failed."""
        self._troubles[model] = _LastFailure(failure.kind == "throttled", failure.message)

    @property
    def in_flight(self) -> int:
        """The number of requests in flight."""
        return sum(call.place == "answer" for call in self._calls())

    def speeds(self) -> tuple[RoleSpeed, ...]:
        """Return how fast each role was answered, the slowest first."""
        found = [
            RoleSpeed(
                role=role,
                model=model,
                answers=tally.answers,
                mean_s=round(tally.seconds / tally.answers, 3),
            )
            for (role, model), tally in list(self._tallies.items())
        ]
        return tuple(sorted(found, key=lambda speed: -speed.mean_s))

    def waits(self) -> list[Wait]:
        """Return what calls are waiting for, grouped by model and cause."""
        now, groups = self.clock(), dict[tuple[CallStage, str], list[float]]()
        for call in self._calls():
            start = call.since if call.place == "answer" else call.began
            groups.setdefault((call.place, call.model), []).append(now - start)
        return [self._wait(place, model, ages) for (place, model), ages in groups.items()]

    def _wait(self, place: CallStage, model: str, ages: list[float]) -> Wait:
        trouble = self._troubles.get(model) if place in ("turn", "resting") else None
        return Wait(
            cause="throttled" if trouble and trouble.throttled else place,
            who=model,
            number=len(ages),
            seconds=round(max(ages), 1),
            reason=trouble.reason if trouble else "",
        )

    def _calls(self) -> list[ActiveCall]:
        return list(self._open.values())


TICK_S = 1.0
ASLEEP_S = 5.0
"""A tick later than this means that the process was asleep: nothing in its loop takes as long."""
OnSleep = Callable[[float], None]
"""Receives the seconds that the process was asleep."""


class _Ticker:
    """Ticks in one event loop and measures by late ticks how long the process was asleep."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.listeners: list[OnSleep] = []
        self._time = loop.time
        self._call_at = loop.call_at
        self._slept_s = 0.0
        self._wind()

    def _wind(self) -> None:
        self._due = self._time() + TICK_S
        self._call_at(self._due, self._tick)

    def _tick(self) -> None:
        late = self._late_s()
        self._slept_s += late
        self._wind()
        for listener in list(self.listeners) if late else ():
            listener(late)

    def _late_s(self) -> float:
        late = self._time() - self._due
        return late if late > ASLEEP_S else 0.0

    def now(self) -> float:
        return self._time() - self._slept_s - self._late_s()


_TICKERS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ticker] = WeakKeyDictionary()


def _ticker() -> _Ticker:
    loop = asyncio.get_running_loop()
    if loop not in _TICKERS:
        _TICKERS[loop] = _Ticker(loop)
    return _TICKERS[loop]


def awake_s() -> float:
    """Return the running loop's clock in seconds, without the time that the process was asleep."""
    return _ticker().now()


@contextmanager
def notify_of_sleep(listener: OnSleep) -> Iterator[None]:
    """Notify a listener, inside the block, of the seconds that the process was asleep.

    It is called on waking, before the callbacks that fell due in the meantime.
    """
    ticker = _ticker()
    ticker.listeners.append(listener)
    try:
        yield
    finally:
        ticker.listeners.remove(listener)


class SampleClock:
    """Runs while a sample is processed; pauses while one of its requests waits for its turn."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._waits = 0
        self._left_s = 0.0
        self.over = False
        """Set when the sample's block ends: a request may outlive it."""

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Exclude the time spent inside the block from the sample's time."""
        self._waits += 1
        if self._waits == 1 and self._is_running:
            self._left_s = (self._timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits and self._is_running:
                self._timeout.reschedule(asyncio.get_running_loop().time() + self._left_s)

    def add_seconds(self, seconds: float) -> None:
        """Give the sample back the seconds during which the process was asleep."""
        when = self._timeout.when()
        if self._is_running and when is not None:
            self._timeout.reschedule(when + seconds)

    @property
    def _is_running(self) -> bool:
        return not (self.over or self._timeout.expired())


_CLOCK: ContextVar[SampleClock | None] = ContextVar("sample_clock", default=None)


@asynccontextmanager
async def limit_sample_time(seconds: float) -> AsyncIterator[None]:
    """Limit the time that the sample run inside this block may take.

    Raises:
        TimeoutError: the sample took longer than `seconds`.
    """
    async with asyncio.timeout(seconds) as timeout:
        clock = SampleClock(timeout)
        token = _CLOCK.set(clock)
        try:
            with notify_of_sleep(clock.add_seconds):
                yield
        finally:
            clock.over = True
            _CLOCK.reset(token)


@contextmanager
def pause_sample_clock() -> Iterator[None]:
    """Pause the current sample's clock inside the block, if a sample is running."""
    clock = _CLOCK.get()
    if clock is None:
        yield
        return
    with clock.pause():
        yield


class CallRef(Value):
    """A reference from a step of a sample to one call."""

    role: str
    key: str
    """Its key in the call store."""
    model: str
    draw: int
    cached: bool
    """Whether the answer came from the call store or from another caller's request: not paid
    here."""
    paid_by: str
    """The run that paid for it, as recorded in the call store; empty if none is recorded."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    method: str
    """How the model was asked to follow the schema."""
    tries: str
    """Why earlier requests for it failed, one per line."""
    error: str
    """Why the answer is invalid; empty if it is valid."""
    usd: float | None
    record: Annotated[CallRecord | None, Field(exclude=True, repr=False)] = None
    """The complete record, for observers; it is not stored with the step."""


_CALLS: ContextVar[list[CallRef] | None] = ContextVar("calls", default=None)


@contextmanager
def record_calls() -> Iterator[list[CallRef]]:
    """Yield a list that collects the calls made inside the block, including by its tasks."""
    calls: list[CallRef] = []
    token = _CALLS.set(calls)
    try:
        yield calls
    finally:
        _CALLS.reset(token)


def add_call(call: CallRef) -> None:
    """Add a call to the list of the innermost recording block, if there is one."""
    calls = _CALLS.get()
    if calls is not None:
        calls.append(call)
