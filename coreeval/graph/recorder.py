"""Step records: when each node ran, how long it took, its calls and its result.

`build_recorder` wraps a node; a `RunObserver` receives the same steps and ends, for example to
export them as spans.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from coreeval.graph.node_context import collect_details
from coreeval.graph.state import REWORDING_NODES, Json, SampleNode, SampleState, SampleUpdate, Wrap
from coreeval.models.activity import CallRef, record_calls
from coreeval.models.running_steps import track_step
from coreeval.models.sample_cost import count_step_cost
from coreeval.schema import Result, TrainEnd, Verdict
from coreeval.tools.clock import Clock
from coreeval.tools.stores.call_records import is_recorded
from coreeval.tools.stores.heartbeat import Wait
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord


class RunObserver(Protocol):
    """An observer of steps and ends; it returns quickly, and its errors never reach the run."""

    def on_step(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Receive a step of a sample or a train item, with its calls, before it is stored."""
        ...

    def on_end(self, subject: str, end: Result | TrainEnd) -> None:
        """Receive the stored end of a sample or a train item."""
        ...

    def on_target_questions(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Receive the questions of one batch to a target."""
        ...


class NullObserver:
    """An observer that ignores everything."""

    def on_step(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Ignore a step."""

    def on_end(self, subject: str, end: Result | TrainEnd) -> None:
        """Ignore an end."""

    def on_target_questions(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Ignore the questions."""


NULL_OBSERVER: RunObserver = NullObserver()


class InFlight:
    """The node of each sample and its start time, as shown in a heartbeat.

    Args:
        now: Returns the time of day.
        clock: Returns monotonic seconds.
    """

    def __init__(self, now: Clock, clock: Callable[[], float] = time.monotonic) -> None:
        self._now, self._clock = now, clock
        self._places: dict[str, dict[str, str]] = {}
        self.moved_at = self._clock()
        """Time of the last start of a step or end of a sample."""

    def find_time(self, seconds: float) -> str:
        """Return the time of day so many seconds from now, in UTC, to the minute."""
        then = self._now().astimezone(UTC) + timedelta(seconds=seconds)
        return then.isoformat(timespec="minutes")

    def enter(self, sample_id: str, node: str) -> None:
        """Record that a sample entered a node."""
        self.moved_at = self._clock()
        since = self._now().isoformat(timespec="seconds")
        self._places[sample_id] = {"node": node, "since": since}

    def leave(self, sample_id: str) -> None:
        """Record that a sample is no longer in progress."""
        self.moved_at = self._clock()
        self._places.pop(sample_id, None)

    def positions(self) -> dict[str, dict[str, str]]:
        """Return for each sample id its node and the time it entered the node."""
        return dict(self._places)

    def list_waits(self) -> list[Wait]:
        """Return the steps that samples are in, grouped by step."""
        now, ages = self._now(), dict[str, list[float]]()
        for place in self.positions().values():
            since = datetime.fromisoformat(place["since"])
            ages.setdefault(place["node"], []).append((now - since).total_seconds())
        return [
            Wait(
                cause="news" if node == "retrieve" else "step",
                who=node,
                number=len(each),
                seconds=round(max(0.0, *each), 1),
            )
            for node, each in ages.items()
        ]


def build_recorder(
    store: RunStore,
    in_flight: InFlight,
    now: Clock,
    payer: str,
    observer: RunObserver = NULL_OBSERVER,
    before: RunStore | None = None,
) -> Wrap:
    """Return a wrapper that records each node of the sample graph of the run `payer`.

    `before` is the store of a pass of the same run whose calls were paid there.
    """

    def wrap(name: str, node: SampleNode) -> SampleNode:
        async def recorded(state: SampleState) -> SampleUpdate:
            in_flight.enter(state["sample_id"], name)
            started, clock = now(), time.perf_counter()
            update, error = SampleUpdate(), ""
            with (
                track_step() as running,
                record_calls() as calls,
                collect_details() as notes,
                count_step_cost(state.get("spent_usd", 0.0)) as costs,
            ):
                try:
                    update = await node(state)
                except BaseException as failure:
                    error = f"{type(failure).__name__}: {failure}"
                    raise
                finally:
                    step = StepRecord(
                        sample_id=state["sample_id"],
                        attempt=0 if name in REWORDING_NODES else state.get("attempt", 1),
                        node=name,
                        started_at=started.isoformat(timespec="microseconds"),
                        seconds=round(time.perf_counter() - clock, 6),
                        error=error,
                        detail=_detail(update) | notes,
                        calls=tuple(build_call_row(call, payer, before) for call in calls),
                        verdicts=_verdicts(update),
                    )
                    if not running.is_blocked:  # otherwise it runs again after its batch
                        observer.on_step(step, calls)
                        store.history.record(step)
            return {**update, "spent_usd": sum(costs)}

        return recorded

    return wrap


def _detail(update: SampleUpdate) -> Json:
    return {name: value for name, value in update.items() if name not in {"verdicts", "tried"}}


def _verdicts(update: SampleUpdate) -> tuple[Verdict, ...]:
    return tuple(Verdict.model_validate(verdict) for verdict in update.get("verdicts", ()))


def build_call_row(call: CallRef, payer: str, before: RunStore | None = None) -> CallRow:
    """Return a call in the form that the run store keeps.

    A call found in the call store was paid by this run if it was sent for this run: before a kill,
    or for another sample. If an earlier pass has the call, it was paid there. Recorded answers
    were paid when they were recorded.
    """
    found = is_recorded(call.model) or (
        call.cached
        and (call.paid_by != payer or (before is not None and before.history.has_call(call.key)))
    )
    return CallRow(
        key=call.key,
        role=call.role,
        model=call.model,
        draw=call.draw,
        cached=found,
        prompt_tokens=call.prompt_tokens,
        cached_tokens=call.cached_tokens,
        completion_tokens=call.completion_tokens,
        seconds=call.seconds,
        method=call.method,
        tries=call.tries,
        error=call.error,
        usd=call.usd,
    )
