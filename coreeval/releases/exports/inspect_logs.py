"""Inspect logs of a run: one evaluation per target and arm, with steps and calls as events."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from inspect_ai.event import Event, InfoEvent, ModelEvent, SpanBeginEvent, SpanEndEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    StopReason,
)
from inspect_ai.scorer import Score

from coreeval.agents.document_terms import SNIPPET_CHARS
from coreeval.releases.exports.material import Material, task_slug
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.schema import Evidence
from coreeval.tasks.kinds import find_kind, title_fields
from coreeval.tools.chunks import chunks
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, SampleResult, StepRecord
from coreeval.tools.text import join_fields
from coreeval.tools.workspace import RunFiles, Workspace

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
}
_SETTINGS = ("temperature", "top_p", "max_tokens", "seed")
_UNSAFE = re.compile(r"\A[A-Za-z]:|%[0-9A-F]{2}|[\\\x00-\x1f\x7f-\x9f]")
"""Parts of an id that are unsafe in a path, or look like an id that was encoded for that reason."""
_ENCODED = re.compile(r"[%/:\\\x00-\x1f\x7f-\x9f]")


def build_sample(store: RunStore, calls: CallStore | None, ended: SampleResult) -> EvalSample:
    """Return a sample with its history; without a call store, prompts and answers are left out."""
    sample, result = ended.sample, ended.result
    steps = store.history.steps(sample.id)
    label = sample.label_text
    asked, written = _sample_text(sample.fields, label), _sample_text(result.updated or {}, label)
    messages: list[ChatMessage] = [ChatMessageUser(content=asked)]
    output = ModelOutput()
    if result.updated:
        reply = ChatMessageAssistant(content=written, source="generate")
        messages.append(reply)
        output = ModelOutput(choices=[ChatCompletionChoice(message=reply, stop_reason="stop")])
    return EvalSample(
        id=_name_sample(sample.id),
        epoch=1,
        input=asked,
        target=find_kind(sample.fields, label).gold(sample.fields, label),
        messages=messages,
        output=output,
        scores=_scores(ended, steps),
        metadata={
            **result.model_dump(mode="json", exclude={"updated", "facts"}),
            "split": sample.split,
            "facts": [fact.model_dump(mode="json") for fact in store.facts(sample.id)],
        },
        events=list(_Story(store, calls, sample.id, steps).events()) if steps else [],
        model_usage=_sum_step_usage(steps),
        uuid=sample.id,
        **_times(steps),
    )


def _name_sample(sample_id: str) -> str:
    """Return a sample's id in a log, where it is part of a packed file's path.

    An id that leads out of the folder into which someone unpacks the log is percent-encoded.
    """
    is_inside = all(part.strip(". ") for part in sample_id.split("/"))
    if is_inside and not _UNSAFE.search(sample_id):
        return sample_id
    return _ENCODED.sub(lambda found: f"%{ord(found[0]):02X}", sample_id)


def _sample_text(fields: dict[str, str], label: str) -> str:
    """Join the texts of a sample into one; several fields are prefixed with their titles."""
    return join_fields(title_fields(fields, label))


def _scores(ended: SampleResult, steps: list[StepRecord]) -> dict[str, Score]:
    """Return whether the sample was accepted, and the last verdict of each check and judge."""
    result = ended.result
    right = "C" if result.outcome == "accepted" else "I"
    accepted = Score(value=right, answer=result.outcome, explanation=result.reason)
    verdicts = {
        verdict.name: Score(value="C" if verdict.passed else "I", explanation=verdict.reason)
        for step in steps
        for verdict in step.verdicts
    }
    return {"accepted": accepted, **verdicts}


def _sum_step_usage(steps: list[StepRecord]) -> dict[str, ModelUsage]:
    """Return the usage of the sample's calls, without those answered from the call store."""
    used = dict[str, ModelUsage]()
    for call in (call for step in steps for call in step.calls if not call.cached):
        used[call.model] = used.get(call.model, ModelUsage()) + _tokens(call)
    return used


def _tokens(call: CallRow) -> ModelUsage:
    return ModelUsage(
        input_tokens=call.prompt_tokens - call.cached_tokens,
        output_tokens=call.completion_tokens,
        total_tokens=call.prompt_tokens + call.completion_tokens,
        input_tokens_cache_read=call.cached_tokens,
        total_cost=call.usd,
    )


def _times(steps: list[StepRecord]) -> dict[str, Any]:
    """Return when a sample began and ended, from its steps."""
    if not steps:
        return {}
    begun, ended = _start_time(steps[0]), max(map(_end_time, steps))
    return {
        "started_at": begun.isoformat(),
        "completed_at": ended.isoformat(),
        "total_time": (ended - begun).total_seconds(),
        "working_time": sum(step.seconds for step in steps),
    }


def _start_time(step: StepRecord) -> datetime:
    return datetime.fromisoformat(step.started_at)


def _end_time(step: StepRecord) -> datetime:
    return _start_time(step) + timedelta(seconds=step.seconds)


class _Story:
    """The events of one sample."""

    def __init__(
        self, store: RunStore, calls: CallStore | None, sample_id: str, steps: list[StepRecord]
    ) -> None:
        self._calls, self._steps, self._root = calls, steps, sample_id
        self._begun = _start_time(steps[0])
        offered = (known for step in steps for known in step.detail.get("evidence", ()))
        self._evidence = store.history.evidence(list(dict.fromkeys(offered)))

    def events(self) -> Iterator[Event]:
        """Yield the span of the sample, with one span for each step inside it."""
        root = self._root
        yield SpanBeginEvent(id=root, name="refresh", type="agent", **self._at(root, self._begun))
        for step in self._steps:
            yield from self._step(step)
        yield SpanEndEvent(id=root, **self._at(root, max(map(_end_time, self._steps))))

    def _step(self, step: StepRecord) -> Iterator[Event]:
        span, began = f"{self._root}#{step.attempt}:{step.node}", _start_time(step)
        here = self._at(span, began)
        yield SpanBeginEvent(
            id=span,
            parent_id=self._root,
            name=f"{step.node} (attempt {step.attempt})" if step.attempt else step.node,
            type="agent",
            **here,
        )
        for call in step.calls:
            yield self._call(call, span, began)
        for source, data in _outcome_events(step, self._evidence):
            yield InfoEvent(source=source, data=data, **self._at(span, _end_time(step)))
        yield SpanEndEvent(id=span, **self._at(span, _end_time(step)))

    def _call(self, call: CallRow, span: str, began: datetime) -> ModelEvent:
        record = self._calls.get(call.key) if self._calls else None
        return ModelEvent(
            model=call.model,
            role=call.role,
            input=_messages(record),
            tools=[],
            tool_choice="none",
            config=_settings(record),
            output=_output(call, record),
            retries=len(call.tries.splitlines()) or None,
            error=call.error or None,
            cache="read" if call.cached else None,
            completed=began + timedelta(seconds=call.seconds),
            working_time=call.seconds,
            **self._at(span, began),
        )

    def _at(self, span: str, moment: datetime) -> dict[str, Any]:
        """Return the position of an event: its span, its time, and seconds since the beginning."""
        since = (moment - self._begun).total_seconds()
        return {"span_id": span, "timestamp": moment, "working_start": max(since, 0.0)}


def _outcome_events(step: StepRecord, evidence: dict[str, Evidence]) -> Iterator[tuple[str, Any]]:
    """Yield the results of a step besides its calls, each with the name of its kind."""
    if offered := [evidence[key] for key in step.detail.get("evidence", ()) if key in evidence]:
        yield "evidence", [_news(item) for item in offered]
    if rest := {key: value for key, value in step.detail.items() if key != "evidence"}:
        yield "did", rest
    for verdict in step.verdicts:
        yield "verdict", verdict.model_dump(mode="json")
    if step.error:
        yield "error", step.error


def _news(item: Evidence) -> dict[str, str]:
    return {
        "id": item.id,
        "published_at": item.published_at.isoformat(),
        "published_precision": item.published_precision,
        "url": item.url,
        "title": item.title,
        "snippet": item.snippet[:SNIPPET_CHARS],
    }


def _messages(record: CallRecord | None) -> list[ChatMessage]:
    if record is None:
        return []
    makers = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant}
    return [
        makers.get(message["role"], ChatMessageUser)(content=message["content"])
        for message in json.loads(record.request)["messages"]
    ]


def _settings(record: CallRecord | None) -> GenerateConfig:
    said = json.loads(record.request)["parameters"] if record else {}
    return GenerateConfig(**{name: said[name] for name in _SETTINGS if name in said})


def _output(call: CallRow, record: CallRecord | None) -> ModelOutput:
    reply = ChatMessageAssistant(content=record.response if record else "", source="generate")
    stop = _STOPS.get(record.finish_reason if record else "", "unknown")
    return ModelOutput(
        model=call.model,
        choices=[ChatCompletionChoice(message=reply, stop_reason=stop)],
        usage=_tokens(call),
    )


SAMPLES_AT_A_TIME = 500
"""Samples per log, which the API needs in memory at once."""


def write_logs(material: Material, folder: Path) -> int:
    """Write the logs of a run, up to 500 samples in each, and return the number of samples."""
    files = RunFiles(material.path)
    manifest, count = read_manifest(files.manifest), 0
    folder.mkdir()
    with (
        RunStore.open(files.require_store(), now=utc_now) as store,
        _open_calls(manifest) as calls,
    ):
        for number, chunk in enumerate(chunks(store.sample_results(), SAMPLES_AT_A_TIME)):
            samples = [build_sample(store, calls, ended) for ended in chunk]
            log = _build_log(material, manifest, samples, number)
            name = f"{material.moment:%Y-%m-%dT%H-%M-%S+00-00}_{task_slug(material.name)}-refresh"
            write_eval_log(log, folder / f"{name}_{log.eval.task_id}.eval")
            count += len(samples)
    return count


@contextmanager
def _open_calls(manifest: Manifest) -> Iterator[CallStore | None]:
    """Open the call store for the block; None if it is missing, as opening would create it."""
    path = Workspace(Path(manifest.workspace)).calls
    if not has_store(path):
        yield None
        return
    with closing(open_calls(path)) as store:
        yield store


def _build_log(
    material: Material, manifest: Manifest, samples: list[EvalSample], number: int
) -> EvalLog:
    return EvalLog(
        status="success",
        eval=_build_spec(material, manifest, samples, number),
        plan=EvalPlan(steps=[EvalPlanStep(solver="coreeval_refresh", params={})]),
        results=_results(samples),
        stats=EvalStats(
            started_at=manifest.created_at,
            completed_at=manifest.ended_at,
            model_usage=_sum_usage(samples),
        ),
        samples=samples,
    )


def _build_spec(
    material: Material, manifest: Manifest, samples: list[EvalSample], number: int
) -> EvalSpec:
    return EvalSpec(
        run_id=_stable_id(manifest.payer),
        eval_id=_stable_id(f"{manifest.payer}#{number}"),
        task_id=_stable_id(f"{manifest.payer}#{number}"),
        created=manifest.created_at,
        task=f"{task_slug(material.name)}-refresh",
        task_version=manifest.fingerprints.code,
        dataset=EvalDataset(
            name=material.name,
            location=material.config.dataset.path,
            samples=len(samples),
            sample_ids=[sample.id for sample in samples],
        ),
        model=find_writer(manifest),
        config=EvalConfig(),
        metadata={
            "run": manifest.run,
            "task": manifest.task,
            "window": manifest.window.model_dump(mode="json"),
            "models": manifest.models,
            "prompts": manifest.prompts,
            "fingerprints": manifest.fingerprints.model_dump(mode="json"),
        },
    )


def find_writer(manifest: Manifest) -> str:
    """Return the model that wrote the new texts (the composer's)."""
    said = manifest.models.get("composer") or manifest.models.get("default")
    return str(said["model"]) if isinstance(said, dict) else "none"


def _stable_id(text: str) -> str:
    """Return an id that is the same on every export of the same run."""
    return hashlib.sha256(text.encode()).hexdigest()[:22]


def _results(samples: list[EvalSample]) -> EvalResults:
    names = dict.fromkeys(name for sample in samples for name in sample.scores or {})
    return EvalResults(
        total_samples=len(samples),
        completed_samples=len(samples),
        scores=[_share(name, samples) for name in names],
    )


def _share(name: str, samples: list[EvalSample]) -> EvalScore:
    found = [(sample.scores or {}).get(name) for sample in samples]
    values = [score.value for score in found if score]
    return EvalScore(
        name=name,
        scorer=name,
        scored_samples=len(values),
        unscored_samples=len(samples) - len(values),
        metrics={"accuracy": EvalMetric(name="accuracy", value=values.count("C") / len(values))},
    )


def _sum_usage(samples: list[EvalSample]) -> dict[str, ModelUsage]:
    used = dict[str, ModelUsage]()
    for model, tokens in (pair for sample in samples for pair in sample.model_usage.items()):
        used[model] = used.get(model, ModelUsage()) + tokens
    return used
