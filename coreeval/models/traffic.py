"""Who asks which model at this moment, what each call waits for, and how fast answers come."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from coreeval.models.failures import CallFailure
from coreeval.tools.stores.heartbeat import RoleSpeed, Wait

Place = Literal["turn", "budget", "answer", "resting"]
"""Waiting for a place in flight, for money, for the answer, for the next try."""


@dataclass
class OpenCall:
    """A call from the question to its answer; whoever sends it says where it stands."""

    model: str
    clock: Callable[[], float]
    place: Place = "turn"
    began: float = field(init=False)
    since: float = field(init=False)
    """When it came to its place."""
    sent_s: float = 0.0
    """Seconds from the last request to its end."""

    def __post_init__(self) -> None:
        self.began = self.since = self.clock()

    def at(self, place: Place) -> None:
        """Note where the call stands from now on."""
        now = self.clock()
        if self.place == "answer":
            self.sent_s = now - self.since
        self.place, self.since = place, now


class _Trouble(NamedTuple):
    throttled: bool
    reason: str


@dataclass
class _Tally:
    answers: int = 0
    seconds: float = 0.0


@dataclass
class Traffic:
    """All calls of a process; shared by the exchanges that it opens one after the other.

    Args:
        clock: Seconds, never going back.
    """

    clock: Callable[[], float] = time.monotonic
    moved_at: float = field(init=False)
    """When the last answer came."""

    def __post_init__(self) -> None:
        self.moved_at = self.clock()
        self._open: dict[int, OpenCall] = {}
        self._tallies: dict[tuple[str, str], _Tally] = {}
        self._troubles: dict[str, _Trouble] = {}
        """Why a model's last request came to nothing, until one is answered."""
        self._impossible: dict[str, str] = {}
        """The first count of each model that cannot be true; empty once it was told."""

    def counted_impossibly(self, model: str, told: str) -> None:
        """Note that a model's endpoint told a count of tokens that cannot be true."""
        self._impossible.setdefault(model, told)

    def count_notes(self) -> list[str]:
        """Return what to tell people of such counts: a line for each model, and that once."""
        new = {model: told for model, told in self._impossible.items() if told}
        self._impossible |= dict.fromkeys(new, "")
        return [
            f"{model}: its endpoint told an impossible count ({told}); each such call is charged "
            "the most that it can cost"
            for model, told in new.items()
        ]

    @contextmanager
    def call(self, role: str, model: str) -> Iterator[OpenCall]:
        """Follow one call for the block; it was answered if the block ends without an error."""
        call = OpenCall(model, self.clock)
        self._open[id(call)] = call
        try:
            yield call
        finally:
            del self._open[id(call)]
        call.at("turn")
        self.moved_at = self.clock()
        self._troubles.pop(model, None)
        tally = self._tallies.setdefault((role, model), _Tally())
        tally.answers += 1
        tally.seconds += call.sent_s

    def refused(self, model: str, failure: CallFailure) -> None:
        """Note why a request came to nothing."""
        self._troubles[model] = _Trouble(failure.kind == "throttled", failure.message)

    @property
    def sent(self) -> int:
        """The requests in flight."""
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
        """Return what calls wait for, those of one model for one cause together."""
        now, groups = self.clock(), dict[tuple[Place, str], list[float]]()
        for call in self._calls():
            start = call.since if call.place == "answer" else call.began
            groups.setdefault((call.place, call.model), []).append(now - start)
        return [self._wait(place, model, ages) for (place, model), ages in groups.items()]

    def _wait(self, place: Place, model: str, ages: list[float]) -> Wait:
        trouble = self._troubles.get(model) if place in ("turn", "resting") else None
        return Wait(
            cause="throttled" if trouble and trouble.throttled else place,
            who=model,
            number=len(ages),
            seconds=round(max(ages), 1),
            reason=trouble.reason if trouble else "",
        )

    def _calls(self) -> list[OpenCall]:
        return list(self._open.values())
