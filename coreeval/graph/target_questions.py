"""Questions to targets about samples: stored answers are reused, and only the rest is asked.

The texts of the arms and of the train split come in chunks that a run can hold.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from coreeval.config import TargetConfig
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.embedded_targets import (
    OfflineTarget,
    TrainingData,
    fit_target,
    predict_samples,
)
from coreeval.evaluation.targets import (
    TargetConnection,
    TargetQuestion,
    ask_target,
    hash_question,
    questions_about,
)
from coreeval.graph.monitor import Progress
from coreeval.graph.recorder import build_call_row
from coreeval.graph.run_context import RunContext
from coreeval.graph.train_split import list_reworded_test
from coreeval.models import CallRef, ModelClient, close_models, open_model_pool, record_calls
from coreeval.runs.arms import accepted_fields, original_fields, semantic_fields
from coreeval.schema import Arm, Prediction, Sample, Task
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult, StepRecord
from coreeval.tools.trust import load_trusted_endpoints

Chunk = tuple[str, Sequence[Sample]]
"""The name of a source, and samples with the source's texts in their fields."""
Chunks = Callable[[], Iterable[Chunk]]
"""Gives the chunks, the same at each call: a few hundred samples each, so that memory does not grow
with their number."""


async def put_to_target(
    job: RunContext, target: TargetConfig, chunks: Chunks, *, stage: str = "evaluate"
) -> None:
    """Ask a target about samples of any split with every template, and store its answers.

    Answers in the store are not asked for again; `RunStore.answers` returns them by source.
    Returns early if the run is told to stop.

    Args:
        job: The run that pays and keeps the answers.
        target: The target to ask.
        chunks: The samples; ids are distinct within a source.
        stage: The stage shown as progress.

    Raises:
        RunError: some questions failed; the answers to the others are stored.
        CoreEvalError: the target cannot be used.
    """
    tally = await asyncio.to_thread(_Tally, job, target, chunks, stage)
    if target.is_embedded:
        await asyncio.to_thread(_put_to_embedded, job, target, chunks, tally)
    else:
        await _put_to_model(job, target, chunks, tally)


class _Tally:
    """Counts a target's answers and shows them."""

    def __init__(self, job: RunContext, target: TargetConfig, chunks: Chunks, stage: str) -> None:
        self._job, self.stage = job, stage
        self._kinds = Counter[str]()
        templates = 1 if target.is_embedded else len(job.task.templates)
        self.total = sum(len(samples) * templates for _, samples in chunks())
        self.done = 0
        job.tell(stage, note=target.model)

    def count_stored(self, number: int) -> None:
        """Count answers that were already in the store."""
        self.done += number
        self._kinds["known"] += number

    def count_answer(self, prediction: Prediction) -> None:
        """Count a new answer."""
        self.done += 1
        self._kinds[prediction.kind] += 1
        counts = {kind: number for kind, number in self._kinds.items() if number}
        self._job.watch(Progress(stage=self.stage, done=self.done, total=self.total, counts=counts))


# -- embedded targets -----------------------------------------------------------------------------


def _put_to_embedded(job: RunContext, target: TargetConfig, chunks: Chunks, tally: _Tally) -> None:
    fitted: OfflineTarget | None = None
    for source, samples in itertools.takewhile(lambda _: not job.stop.asked, chunks()):
        known = job.store.answer_keys(target.model, source, "", [one.id for one in samples])
        missing = [sample for sample in samples if (sample.id, 0) not in known]
        tally.count_stored(len(samples) - len(missing))
        if missing:
            fitted = fitted or _fit_target(job, target)
            found = predict_samples(fitted, missing, source=source)
            job.store.add_predictions(found)
            for prediction in found:
                tally.count_answer(prediction)


def _fit_target(job: RunContext, target: TargetConfig) -> OfflineTarget:
    dataset = job.config.dataset
    rows = iter_benchmark(dataset, job.task, split=dataset.train_split)
    seen = TrainingData(
        train=[row for row in rows if isinstance(row, Sample)],
        test=lambda: [ended.sample for ended in job.store.sample_results()],
    )
    return fit_target(target.model, job.task, seen, seed=job.config.run.seed)


# -- models ---------------------------------------------------------------------------------------


async def _put_to_model(
    job: RunContext, target: TargetConfig, chunks: Chunks, tally: _Tally
) -> None:
    """Ask an LLM through the call store."""
    calls = await asyncio.to_thread(open_calls, job.workspace.calls, job.payer)
    line, numbered = TargetConnection(lambda: job.stop.asked), enumerate(chunks())
    try:
        client = open_model_pool(
            job.config,
            calls,
            trusted=load_trusted_endpoints(job.workspace),
            active_calls=job.active_calls,
        ).open_client(target, "target", max_draws=1, settle=True)
        while line.is_open and (chunk := await asyncio.to_thread(next, numbered, None)):
            number, (source, samples) = chunk
            missing = await asyncio.to_thread(_find_unanswered, job, target, source, samples)
            tally.count_stored(len(samples) * len(job.task.templates) - len(missing))
            with record_calls() as made:
                answers = await _ask_unanswered(
                    job, target.model, client, line, source, missing, tally
                )
            await asyncio.to_thread(job.store.add_predictions, answers)
            if made:
                record_asking(job, build_step(job, target.model, number, source, made), made)
    finally:
        await close_models()
        await asyncio.to_thread(calls.close)
        job.tell_counts(tally.stage)
    if line.troubles and not job.stop.asked:
        left = tally.total - tally.done
        raise line.error_for_unanswered(target.model, left, tally.total, where="models.targets")


def iter_open_questions(
    job: RunContext, target: TargetConfig, chunks: Chunks
) -> Iterator[TargetQuestion]:
    """Yield the questions that a target would be asked now."""
    for source, samples in chunks():
        yield from _find_unanswered(job, target, source, samples)


def _find_unanswered(
    job: RunContext, target: TargetConfig, source: str, samples: Sequence[Sample]
) -> list[TargetQuestion]:
    """Return the questions about samples that have no answer in the store."""
    found: list[TargetQuestion] = []
    for task, part in _group_by_task(job, samples):
        version, ids = hash_question(task), [sample.id for sample in part]
        known = job.store.answer_keys(target.model, source, version, ids)
        found += [
            asked
            for asked in questions_about(part, task)
            if (asked.sample.id, asked.template) not in known
        ]
    return found


def _group_by_task(
    job: RunContext, samples: Iterable[Sample]
) -> Iterator[tuple[Task, list[Sample]]]:
    """Yield consecutive samples with the same task; several stance targets make several tasks."""
    for task, part in itertools.groupby(samples, key=job.load_task_of):
        yield task, list(part)


async def _ask_unanswered(
    job: RunContext,
    target: str,
    client: ModelClient,
    line: TargetConnection,
    source: str,
    missing: Sequence[TargetQuestion],
    tally: _Tally,
) -> Sequence[Prediction]:
    answers: list[Prediction] = []
    for task, part in itertools.groupby(missing, key=lambda asked: job.load_task_of(asked.sample)):
        answers += await ask_target(
            target,
            list(part),
            source=source,
            task=task,
            client=client,
            line=line,
            concurrency=job.config.run.concurrency,
            heard=tally.count_answer,
        )
    return answers


def record_asking(job: RunContext, step: StepRecord, made: Sequence[CallRef]) -> None:
    """Record a batch of questions to a target and notify observers."""
    job.observer.on_target_questions(step, made)
    job.store.history.record(step)


def build_step(
    job: RunContext, target: str, number: int, source: str, made: Sequence[CallRef]
) -> StepRecord:
    """Return the step record of one chunk of questions."""
    return StepRecord(
        sample_id=f"target {target}",
        attempt=number,
        node=source,
        started_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        seconds=sum(call.seconds for call in made),
        calls=tuple(build_call_row(call, job.payer) for call in made),
    )


T = TypeVar("T")
CHUNK = 1000
"""Samples looked at together."""
ArmTexts = Callable[[SampleResult], Mapping[str, str] | None]
"""Gives the texts that an arm has of a sample."""
ARM_TEXTS: Mapping[Arm, ArmTexts] = {
    "original": original_fields,
    "semantic": semantic_fields,
    "updated": accepted_fields,
}
CONTROL_TEXTS: Mapping[Arm, ArmTexts] = {"control": accepted_fields}
"""Of the second pass only what it updated is an arm: the rest it has from the first."""


def iter_arm_chunks(job: RunContext) -> Iterator[Chunk]:
    """Yield the samples of the arms, with the arm's texts in their fields."""
    yield from _iter_store_chunks(job.store, ARM_TEXTS)
    if job.control:
        yield from _iter_store_chunks(job.control.store, CONTROL_TEXTS)


def _iter_store_chunks(store: RunStore, arms: Mapping[Arm, ArmTexts]) -> Iterator[Chunk]:
    for ended in _iter_batches(store.sample_results()):
        for arm, texts in arms.items():
            samples = [
                _replace_fields(one.sample, fields) for one in ended if (fields := texts(one))
            ]
            if samples:
                yield arm, samples


def iter_split_chunks(job: RunContext) -> Iterator[Chunk]:
    """Yield the items of both splits that PCR compares, original and reworded."""
    yield from iter_train_chunks(job)
    for ended in _iter_batches(list_reworded_test(job)):
        yield "original", [one.sample for one in ended]
        yield "semantic", [_replace_fields(one.sample, one.result.semantic or {}) for one in ended]


def iter_train_chunks(job: RunContext) -> Iterator[Chunk]:
    """Yield the items of the train split, original and reworded."""
    for items in _iter_batches(job.store.train.rewordings()):
        yield "train", [one.sample for one in items]
        yield (
            "train_semantic",
            [_replace_fields(one.sample, one.end.semantic or {}) for one in items],
        )


def _iter_batches(rows: Iterable[T]) -> Iterator[list[T]]:
    every = iter(rows)
    while some := list(itertools.islice(every, CHUNK)):
        yield some


def _replace_fields(sample: Sample, fields: Mapping[str, str]) -> Sample:
    return sample.model_copy(update={"fields": dict(fields)})
