"""Tells a collector what a run does: a trace for each sample, a span for each step and call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ParamSpec, Protocol

from coreeval.graph.telemetry import call_facts, facts, texts
from coreeval.graph.telemetry.call_facts import Bill
from coreeval.models.activity import CallRef
from coreeval.schema import Result, TrainEnd
from coreeval.tools.clock import Clock
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.run_records import StepRecord
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.telemetry import Attributes, Span, SpanIdentity

P = ParamSpec("P")


class Sends(Protocol):
    """Takes spans without waiting."""

    def send(self, span: Span) -> None:
        """Take a span."""
        ...


@dataclass(frozen=True, kw_only=True)
class Told:
    """What spans are made of, and where they go."""

    run: str
    """Its name: the session that all its traces belong to."""
    payer: str
    """What tells it from other runs of that name."""
    prompts: Mapping[str, str]
    """The version of each role's prompt."""
    store: RunStore
    begun: Mapping[str, str]
    """When those samples were begun that a process before this one has left open."""
    now: Clock
    content: bool
    sender: Sends


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """A sample or train item that was begun and has not ended."""

    root: SpanIdentity
    at: datetime
    bill: Bill


class Teller:
    """A listener that makes spans of what it hears.

    The trace of a sample is derived from the run and the sample, its root also from the moment when
    the sample was begun: a run that goes on after a stop or a kill goes on in the same traces, and
    a sample that is taken once more by `retry` has a second root in its trace.
    """

    def __init__(self, told: Told) -> None:
        self._told = told
        self._open: dict[str, _Begun] = {}
        self.untold = 0
        """How often no span could be made of what was heard."""
        self.trouble = ""

    def stepped(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Tell of a step and its calls; its sample is told of when it ends."""
        self._safely(self._tell_step, step, calls)

    def ended(self, subject: str, end: Result | TrainEnd) -> None:
        """Tell of a sample or a train item as a whole."""
        self._safely(self._tell_end, subject, end)

    def asked(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Tell of what a target was asked, as a trace of its own."""
        self._safely(self._tell_asking, step, calls)

    def _safely(self, tell: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Tell something; what goes wrong is counted, and does not reach the run."""
        try:
            tell(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - no run fails by what is told of it
            self.untold += 1
            self.trouble = f"{type(error).__name__}: {error}"

    def _tell_step(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        begun = self._open.get(step.sample_id) or self._begun(step)
        self._open[step.sample_id] = replace(begun, bill=begun.bill.with_calls(calls))
        place = begun.root.below(step.node, str(step.attempt), step.started_at)
        said = facts.of_step(self._told.run, step, judged_by_model=bool(calls))
        self._send(
            Span(
                name=step.node,
                place=place,
                parent=begun.root,
                started=_start(step),
                ended=_end(step),
                attributes={**said, **self._texts_of_step(step)},
                events=facts.verdict_events(step),
                error=self._error(step.error, facts.error_type(step)),
            )
        )
        self._tell_calls(step, calls, place)

    def _tell_end(self, subject: str, end: Result | TrainEnd) -> None:
        begun = self._open.pop(subject, None)
        if begun is None:
            return
        said = facts.of_root(self._told.run, subject, end, begun.bill)
        failed = facts.outcome_of(end) == "failed"
        self._send(
            Span(
                name="refresh sample" if isinstance(end, Result) else "reword train item",
                place=begun.root,
                parent=None,
                started=begun.at,
                ended=self._told.now(),
                attributes={**said, **self._texts_of_root(subject, end)},
                error=self._error(end.reason, "failed") if failed else None,
            )
        )

    def _tell_asking(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        about = (self._told.payer, step.sample_id, step.node, str(step.attempt))
        root = SpanIdentity.of(*about, root=step.started_at)
        ended = self._told.now()
        self._send(
            Span(
                name="ask target",
                place=root,
                parent=None,
                started=min([ended, *_sent_at(calls)]),
                ended=ended,
                attributes=facts.of_asking(self._told.run, step, calls),
            )
        )
        self._tell_calls(step, calls, root)

    # -- calls ----------------------------------------------------------------------------------

    def _tell_calls(self, step: StepRecord, calls: Sequence[CallRef], parent: SpanIdentity) -> None:
        for number, call in enumerate(calls):
            self._tell_call(step, call, parent, parent.below(str(number), call.key))

    def _tell_call(
        self, step: StepRecord, call: CallRef, parent: SpanIdentity, place: SpanIdentity
    ) -> None:
        """Tell of a call: when it was sent; one that was found took no time."""
        record = call.record
        started = _sent(record) if record and not call.cached else _start(step)
        took = timedelta(seconds=0.0 if call.cached else call.seconds)
        said = call_facts.of_call(self._told.run, call, self._told.prompts.get(call.role, ""))
        seen = texts.of_call(call, record) if record and self._told.content else {}
        self._send(
            Span(
                name=call.role,
                place=place,
                parent=parent,
                started=started,
                ended=started + took,
                attributes={**said, **seen},
                error=self._error(call.error, call_facts.fault_type(call)),
                remote=True,
            )
        )

    # -- shared ---------------------------------------------------------------------------------

    def _begun(self, step: StepRecord) -> _Begun:
        """Return the beginning of a sample; a process before this one may have seen it."""
        first = self._told.begun.get(step.sample_id, step.started_at)
        root = SpanIdentity.of(self._told.payer, step.sample_id, root=first)
        return _Begun(root=root, at=datetime.fromisoformat(first), bill=Bill())

    def _texts_of_step(self, step: StepRecord) -> Attributes:
        if not self._told.content:
            return {}
        found = list(step.detail.get("evidence", {}))
        return texts.of_step(step, self._told.store.evidence(found) if found else {})

    def _texts_of_root(self, subject: str, end: Result | TrainEnd) -> Attributes:
        return texts.of_root(self._told.store.sample(subject), end) if self._told.content else {}

    def _error(self, error: str, kind: str) -> str | None:
        """Return why something failed: in full, or its kind alone; None where it did not."""
        if not error:
            return None
        return error if self._told.content else kind

    def _send(self, span: Span) -> None:
        self._told.sender.send(span)


def _start(step: StepRecord) -> datetime:
    return datetime.fromisoformat(step.started_at)


def _end(step: StepRecord) -> datetime:
    return _start(step) + timedelta(seconds=step.seconds)


def _sent(record: CallRecord) -> datetime:
    return datetime.fromisoformat(record.started_at)


def _sent_at(calls: Sequence[CallRef]) -> list[datetime]:
    return [_sent(call.record) for call in calls if call.record and not call.cached]
