"""Asks targets about samples; stored answers are reused.

The texts of the arms and of the train split are processed in chunks, to limit memory.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
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
    TargetQuestion,
    hash_question,
    make_predictor,
    questions_about,
)
from coreeval.graph.batch_rounds import work_in_rounds
from coreeval.graph.campaign import Campaign, ModelConnection, open_campaign
from coreeval.graph.monitor import Progress
from coreeval.graph.recorder import build_call_row
from coreeval.graph.run_context import RunContext
from coreeval.models import CallRef, record_calls
from coreeval.models.hf import hash_weights
from coreeval.runs.arms import accepted_fields, original_fields, semantic_fields
from coreeval.schema import Arm, Prediction, Sample, Task
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import TARGET_SUBJECT, SampleResult, StepRecord

Chunk = tuple[str, Sequence[Sample]]
"""The name of a source, and samples with that source's texts in their fields."""
Chunks = Callable[[], Iterable[Chunk]]
"""Yields the same chunks at each call, each of a few hundred samples, so that memory does not grow
with the number of samples."""


async def put_to_target(
    run: RunContext, target: TargetConfig, chunks: Chunks, *, stage: str = "evaluate"
) -> None:
    """Ask a target about samples of any split with every template, and store its answers.

    Stored answers are not requested again; `RunStore.answers` returns them by source. Returns early
    if the run is stopped.

    Args:
        run: The run that pays for and stores the answers.
        target: The target to ask.
        chunks: The samples; ids are distinct within a source.
        stage: The stage shown as progress.

    Raises:
        RunError: some questions failed; the answers to the others are stored.
        CoreEvalError: the target cannot be used.
    """
    tally = await asyncio.to_thread(_Tally, run, target, chunks, stage)
    if target.is_embedded:
        await asyncio.to_thread(_put_to_embedded, run, target, chunks, tally)
    else:
        await _put_to_model(run, target, chunks, tally)


async def put_to_targets(
    run: RunContext,
    stage: str,
    targets: Sequence[TargetConfig],
    chunks: Callable[[RunContext], Iterator[Chunk]],
) -> dict[str, list[str]]:
    """Ask one target after the other, and record the stage as done unless the run is stopped."""
    asked = list[str]()

    async def one_pass() -> None:
        asked.clear()
        for target in targets:
            if not run.stop.asked:
                await put_to_target(run, target, lambda: chunks(run), stage=stage)
            if not run.stop.asked:
                asked.append(target.model)

    await work_in_rounds(run, one_pass)
    if run.stop.asked:
        return {"targets": asked}
    done = {"targets": asked}
    await asyncio.to_thread(run.store.finish_stage, stage, done)
    return done


class _Tally:
    """Counts a target's answers and reports the progress."""

    def __init__(self, run: RunContext, target: TargetConfig, chunks: Chunks, stage: str) -> None:
        self._run, self.stage = run, stage
        self._kinds = Counter[str]()
        templates = 1 if target.is_embedded else len(run.task.templates)
        self.total = sum(len(samples) * templates for _, samples in chunks())
        self.done = 0
        run.tell(stage, note=target.model)

    def count_stored(self, number: int) -> None:
        """Count answers that were already in the store."""
        self.done += number
        self._kinds["known"] += number

    def count_answer(self, prediction: Prediction) -> None:
        """Count a new answer."""
        self.done += 1
        self._kinds[prediction.kind] += 1
        counts = {kind: number for kind, number in self._kinds.items() if number}
        self._run.watch(Progress(stage=self.stage, done=self.done, total=self.total, counts=counts))


# -- embedded targets -----------------------------------------------------------------------------


def _put_to_embedded(run: RunContext, target: TargetConfig, chunks: Chunks, tally: _Tally) -> None:
    fitted: OfflineTarget | None = None
    for source, samples in itertools.takewhile(lambda _: not run.stop.asked, chunks()):
        known = run.store.answer_keys(target.model, source, "", [one.id for one in samples])
        missing = [sample for sample in samples if (sample.id, 0) not in known]
        tally.count_stored(len(samples) - len(missing))
        if missing:
            fitted = fitted or _fit_target(run, target)
            found = predict_samples(fitted, missing, source=source)
            run.store.add_predictions(found)
            for prediction in found:
                tally.count_answer(prediction)


def _fit_target(run: RunContext, target: TargetConfig) -> OfflineTarget:
    dataset = run.config.dataset
    rows = iter_benchmark(dataset, run.task, split=dataset.train_split)
    seen = TrainingData(
        train=[row for row in rows if isinstance(row, Sample)],
        test=lambda: [ended.sample for ended in run.store.sample_results()],
    )
    return fit_target(target.model, run.task, seen, seed=run.config.run.seed)


# -- models ---------------------------------------------------------------------------------------


@asynccontextmanager
async def open_run_campaign(run: RunContext, stage: str) -> AsyncIterator[Campaign]:
    """Yield a campaign paid for by the run; report impossible token counts at its end.

    Raises:
        ConfigError: the file of prices cannot be used.
        RunCorrupt: the call store is damaged.
    """
    campaign = open_campaign(
        run.config,
        run.workspace,
        run.payer,
        watch=run.watch,
        stop=run.stop,
        active_calls=run.active_calls,
        batching=run.batching,
        prices=run.prices,
    )
    try:
        async with campaign as opened:
            yield opened
    finally:
        run.tell_counts(stage)


_Found = dict[tuple[str, int], Prediction]
"""Answers by sample and template."""


async def _put_to_model(
    run: RunContext, target: TargetConfig, chunks: Chunks, tally: _Tally
) -> None:
    """Ask an LLM through the call store."""
    connection, numbered = ModelConnection(target.model), enumerate(chunks())
    weights = await asyncio.to_thread(hash_weights, target)
    async with open_run_campaign(run, tally.stage) as campaign:
        client = campaign.models.open_client(target, "target", max_draws=1, settle=True)
        while chunk := await _take_next(run, connection, numbered):
            number, (source, samples) = chunk
            missing = await asyncio.to_thread(_find_unanswered, run, target, source, samples)
            tally.count_stored(len(samples) * len(run.task.templates) - len(missing))
            found = _Found()
            with record_calls() as made:
                try:
                    for task, part in itertools.groupby(
                        missing, key=lambda asked: run.load_task_of(asked.sample)
                    ):
                        predict = make_predictor(
                            target.model, client, source=source, task=task, weights=weights
                        )
                        await _ask_part(campaign, connection, list(part), predict, tally, found)
                finally:  # a later process may not have this call store
                    keys = ((asked.sample.id, asked.template) for asked in missing)
                    answers = [found[key] for key in keys if key in found]
                    await asyncio.to_thread(run.store.add_predictions, answers)
                    if made:
                        step = build_step(run, target.model, number, source, made)
                        record_asking(run, step, made)
                        await run.store.history.flush_steps()
    if connection.failures and not run.stop.asked:
        left = tally.total - tally.done
        raise connection.error_for_unanswered(left, tally.total, where="models.targets")


async def _take_next(
    run: RunContext, connection: ModelConnection, numbered: Iterator[tuple[int, Chunk]]
) -> tuple[int, Chunk] | None:
    """Return the next chunk; None if there is none, or nothing more may be asked."""
    if not connection.is_open or run.stop.asked:
        return None
    return await asyncio.to_thread(next, numbered, None)


async def _ask_part(
    campaign: Campaign,
    connection: ModelConnection,
    questions: Sequence[TargetQuestion],
    predict: Callable[[TargetQuestion], Awaitable[Prediction]],
    tally: _Tally,
    found: _Found,
) -> None:
    """Add each answer to `found` when it arrives; questions that failed have none."""

    def note(asked: TargetQuestion, prediction: Prediction) -> None:
        found[asked.sample.id, asked.template] = prediction
        tally.count_answer(prediction)

    await campaign.ask_all(connection, questions, predict, note)


def iter_open_questions(
    run: RunContext, target: TargetConfig, chunks: Chunks
) -> Iterator[TargetQuestion]:
    """Yield the questions that a target would be asked now."""
    for source, samples in chunks():
        yield from _find_unanswered(run, target, source, samples)


def _find_unanswered(
    run: RunContext, target: TargetConfig, source: str, samples: Sequence[Sample]
) -> list[TargetQuestion]:
    """Return the questions about samples that have no answer in the store."""
    found, weights = list[TargetQuestion](), hash_weights(target)
    for task, part in _group_by_task(run, samples):
        version, ids = hash_question(task, weights), [sample.id for sample in part]
        known = run.store.answer_keys(target.model, source, version, ids)
        found += [
            asked
            for asked in questions_about(part, task)
            if (asked.sample.id, asked.template) not in known
        ]
    return found


def _group_by_task(
    run: RunContext, samples: Iterable[Sample]
) -> Iterator[tuple[Task, list[Sample]]]:
    """Yield consecutive samples with the same task; several stance targets make several tasks."""
    for task, part in itertools.groupby(samples, key=run.load_task_of):
        yield task, list(part)


def record_asking(run: RunContext, step: StepRecord, made: Sequence[CallRef]) -> None:
    """Record a batch of questions to a target and notify observers."""
    run.observer.on_target_questions(step, made)
    run.store.history.record(step)


def build_step(
    run: RunContext, target: str, number: int, source: str, made: Sequence[CallRef]
) -> StepRecord:
    """Return the step record of one chunk of questions."""
    return StepRecord(
        sample_id=TARGET_SUBJECT + target,
        attempt=number,
        node=source,
        started_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        seconds=sum(call.seconds for call in made),
        calls=tuple(build_call_row(call, run.payer) for call in made),
    )


T = TypeVar("T")
CHUNK = 1000
"""Samples processed together."""
ArmTexts = Callable[[SampleResult], Mapping[str, str] | None]
"""Returns the texts of a sample in an arm; None if the arm does not have it."""
ARM_TEXTS: Mapping[Arm, ArmTexts] = {
    "original": original_fields,
    "semantic": semantic_fields,
    "updated": accepted_fields,
}
CONTROL_TEXTS: Mapping[Arm, ArmTexts] = {"control": accepted_fields}
"""The updated texts of the second pass are its only arm; the others are from the first pass."""


def iter_arm_chunks(run: RunContext) -> Iterator[Chunk]:
    """Yield the samples of the arms, with the arm's texts in their fields."""
    yield from _iter_store_chunks(run.store, ARM_TEXTS)
    if run.control:
        yield from _iter_store_chunks(run.control.store, CONTROL_TEXTS)


def _iter_store_chunks(store: RunStore, arms: Mapping[Arm, ArmTexts]) -> Iterator[Chunk]:
    for ended in iter_batches(store.sample_results()):
        for arm, texts in arms.items():
            samples = [
                replace_fields(one.sample, fields) for one in ended if (fields := texts(one))
            ]
            if samples:
                yield arm, samples


def iter_train_chunks(run: RunContext) -> Iterator[Chunk]:
    """Yield the items of the train split, original and reworded."""
    for items in iter_batches(run.store.train.rewordings()):
        yield "train", [one.sample for one in items]
        yield (
            "train_semantic",
            [replace_fields(one.sample, one.end.semantic or {}) for one in items],
        )


def iter_batches(rows: Iterable[T]) -> Iterator[list[T]]:
    """Yield rows in lists of at most `CHUNK`."""
    every = iter(rows)
    while some := list(itertools.islice(every, CHUNK)):
        yield some


def replace_fields(sample: Sample, fields: Mapping[str, str]) -> Sample:
    """Return a sample with other texts in its fields."""
    return sample.model_copy(update={"fields": dict(fields)})
