"""Spans of a run in OpenInference's conventions, for OpenTelemetry collectors.

Each sample is a trace; each step and call is a span. `observe_run` opens the connection if the
config or the environment enables it, and reports on the delivery.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ParamSpec, Protocol

from coreeval.config import Config
from coreeval.graph import span_attributes
from coreeval.graph.monitor import Progress
from coreeval.graph.run_context import RunContext
from coreeval.graph.span_attributes import CallBill
from coreeval.models.activity import CallRef
from coreeval.models.tracing import TRACING
from coreeval.schema import Result, TrainEnd
from coreeval.tools.clock import Clock
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from coreeval.tools.telemetry import Attributes, Span, SpanIdentity, find_destination, redact_url

if TYPE_CHECKING:
    from coreeval.tools.otlp import SpanDelivery


P = ParamSpec("P")


class SpanSink(Protocol):
    """A destination that takes spans without waiting."""

    def send(self, span: Span) -> None:
        """Send a span."""
        ...


@dataclass(frozen=True, kw_only=True)
class SpanSettings:
    """The inputs and the destination of spans."""

    run: str
    """The run's name: the session that all its traces belong to."""
    payer: str
    """Distinguishes the run from others with the same name."""
    prompts: Mapping[str, str]
    """The version of each role's prompt."""
    store: RunStore
    begun: Mapping[str, str]
    """Start times of samples that an earlier process left open, by sample."""
    now: Clock
    content: bool
    sender: SpanSink


@dataclass(frozen=True, kw_only=True)
class _OpenTrace:
    """A sample or train item that has begun but not ended."""

    root: SpanIdentity
    at: datetime
    bill: CallBill


class SpanRecorder:
    """An observer that turns a run's events into spans.

    The trace id of a sample is derived from the run and the sample, its root span also from the
    time at which the sample began. A run that is resumed after a stop or a kill therefore continues
    the same traces, and a sample that is repeated by `retry` has a second root in its trace.
    """

    def __init__(self, told: SpanSettings) -> None:
        self._settings = told
        self._open: dict[str, _OpenTrace] = {}
        self.failure_count = 0
        """The number of events for which no span could be built."""
        self.trouble = ""

    def on_step(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Record a step and its calls; the sample's span follows when it ends."""
        self._guard(self._tell_step, step, calls)

    def on_end(self, subject: str, end: Result | TrainEnd) -> None:
        """Record a sample or a train item as a whole."""
        self._guard(self._tell_end, subject, end)

    def on_target_questions(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Record a batch of questions to a target as a separate trace."""
        self._guard(self._tell_asking, step, calls)

    def _guard(self, tell: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Record something; errors are counted and do not reach the run."""
        try:
            tell(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - no run fails by what is told of it
            self.failure_count += 1
            self.trouble = f"{type(error).__name__}: {error}"

    def _tell_step(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        begun = self._open.get(step.sample_id) or self._open_trace(step)
        self._open[step.sample_id] = replace(begun, bill=begun.bill.with_calls(calls))
        place = begun.root.below(step.node, str(step.attempt), step.started_at)
        said = span_attributes.step_attributes(
            self._settings.run, step, judged_by_model=bool(calls)
        )
        self._send(
            Span(
                name=step.node,
                place=place,
                parent=begun.root,
                started=_step_start(step),
                ended=_step_end(step),
                attributes={**said, **self._texts_of_step(step)},
                events=span_attributes.list_verdict_events(step),
                error=self._error(step.error, span_attributes.find_error_type(step)),
            )
        )
        self._tell_calls(step, calls, place)

    def _tell_end(self, subject: str, end: Result | TrainEnd) -> None:
        begun = self._open.pop(subject, None)
        if begun is None:
            return
        said = span_attributes.root_attributes(self._settings.run, subject, end, begun.bill)
        failed = span_attributes.find_outcome(end) == "failed"
        self._send(
            Span(
                name="refresh sample" if isinstance(end, Result) else "reword train item",
                place=begun.root,
                parent=None,
                started=begun.at,
                ended=self._settings.now(),
                attributes={**said, **self._texts_of_root(subject, end)},
                error=self._error(end.reason, "failed") if failed else None,
            )
        )

    def _tell_asking(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        about = (self._settings.payer, step.sample_id, step.node, str(step.attempt))
        root = SpanIdentity.of(*about, root=step.started_at)
        ended = self._settings.now()
        self._send(
            Span(
                name="ask target",
                place=root,
                parent=None,
                started=min([ended, *_list_call_starts(calls)]),
                ended=ended,
                attributes=span_attributes.asking_attributes(self._settings.run, step, calls),
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
        """Record a call with the time it was sent; a cached call took no time."""
        record = call.record
        started = _call_start(record) if record and not call.cached else _step_start(step)
        took = timedelta(seconds=0.0 if call.cached else call.seconds)
        said = span_attributes.call_attributes(
            self._settings.run, call, self._settings.prompts.get(call.role, "")
        )
        seen = span_attributes.call_texts(call, record) if record and self._settings.content else {}
        self._send(
            Span(
                name=call.role,
                place=place,
                parent=parent,
                started=started,
                ended=started + took,
                attributes={**said, **seen},
                error=self._error(call.error, span_attributes.find_fault_type(call)),
                remote=True,
            )
        )

    # -- shared ---------------------------------------------------------------------------------

    def _open_trace(self, step: StepRecord) -> _OpenTrace:
        """Return the start of a sample's trace; an earlier process may have begun it."""
        first = self._settings.begun.get(step.sample_id, step.started_at)
        root = SpanIdentity.of(self._settings.payer, step.sample_id, root=first)
        return _OpenTrace(root=root, at=datetime.fromisoformat(first), bill=CallBill())

    def _texts_of_step(self, step: StepRecord) -> Attributes:
        if not self._settings.content:
            return {}
        found = list(step.detail.get("evidence", {}))
        return span_attributes.step_texts(
            step, self._settings.store.history.evidence(found) if found else {}
        )

    def _texts_of_root(self, subject: str, end: Result | TrainEnd) -> Attributes:
        return (
            span_attributes.root_texts(self._settings.store.sample(subject), end)
            if self._settings.content
            else {}
        )

    def _error(self, error: str, kind: str) -> str | None:
        """Return an error in full, or only its kind; None if there was no error."""
        if not error:
            return None
        return error if self._settings.content else kind

    def _send(self, span: Span) -> None:
        self._settings.sender.send(span)


def _step_start(step: StepRecord) -> datetime:
    return datetime.fromisoformat(step.started_at)


def _step_end(step: StepRecord) -> datetime:
    return _step_start(step) + timedelta(seconds=step.seconds)


def _call_start(record: CallRecord) -> datetime:
    return datetime.fromisoformat(record.started_at)


def _list_call_starts(calls: Sequence[CallRef]) -> list[datetime]:
    return [_call_start(call.record) for call in calls if call.record and not call.cached]


TELEMETRY_STAGE = "telemetry"


def check_telemetry(config: Config) -> str | None:
    """Return where a run's spans are sent; None if they are not sent.

    Raises:
        ConfigError: telemetry is enabled and spans cannot be sent.
    """
    return find_destination(config.telemetry, os.environ)


@contextmanager
def observe_run(run_context: RunContext) -> Iterator[RunContext]:
    """Yield the run_context with a span recorder, if telemetry is enabled, until the block ends.

    Raises:
        ConfigError: telemetry is enabled and spans cannot be sent.
    """
    url = check_telemetry(run_context.config)
    if url is None:
        yield run_context
        return
    from coreeval.tools.otlp import OtlpSender  # OpenTelemetry's SDK, needed by few runs

    sender = OtlpSender(url, project=run_context.config.name)
    recorder = SpanRecorder(
        SpanSettings(
            run=run_context.manifest.run,
            payer=run_context.payer,
            prompts=run_context.manifest.prompts,
            store=run_context.store,
            begun=run_context.store.history.open_start_times(),
            now=run_context.now,
            content=run_context.config.telemetry.content,
            sender=sender,
        )
    )
    said = _start_note(url, content=run_context.config.telemetry.content)
    run_context.watch(Progress(stage=TELEMETRY_STAGE, note=said))
    try:
        yield replace(run_context, observer=recorder)
    finally:
        began = time.monotonic()
        delivery = sender.close()
        TRACING.waited_s = time.monotonic() - began
        if note := _end_note(url, delivery, recorder):
            run_context.watch(Progress(stage=TELEMETRY_STAGE, note=note))


def _start_note(url: str, *, content: bool) -> str:
    held = "with texts, prompts and answers" if content else "ids, names and numbers, but no texts"
    return f"spans are sent to {redact_url(url)} ({held})"


def _end_note(url: str, delivery: "SpanDelivery", recorder: SpanRecorder) -> str:
    """Return a note on spans that did not arrive; empty if all did."""
    lost = delivery.lost + recorder.failure_count
    if not lost:
        return ""
    why = recorder.trouble or delivery.trouble or "the endpoint is down, or slower than the run"
    return f"{lost} of {delivery.sent + lost} spans did not arrive at {redact_url(url)} ({why})"
