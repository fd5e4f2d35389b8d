"""The evaluate stage: every configured target is put the three arms."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from coreeval.config import TargetConfig
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.embedded import fit_target, predict_arm
from coreeval.evaluation.scoring import ArmTable, compare_arms
from coreeval.evaluation.targets import ask_target
from coreeval.graph.job import Job
from coreeval.graph.record import call_row
from coreeval.models import Asker, close_models, open_model, record_calls
from coreeval.releases.arms import semantic_fields, updated_fields
from coreeval.schema import Arm, Prediction, Sample
from coreeval.tools.stores.calls import open_calls
from coreeval.tools.stores.run_rows import Ended, Step

CHUNK = 1000
"""Samples put to a target at a time, so that memory does not grow with the dataset."""
ARMS: dict[Arm, Callable[[Ended], Mapping[str, str] | None]] = {
    "original": lambda ended: ended.sample.fields,
    "semantic": semantic_fields,
    "updated": lambda ended: updated_fields(ended, "drop"),
}


async def evaluate_targets(job: Job) -> list[str]:
    """Ask every target about every arm and store the answers; return the targets that were asked.

    Raises:
        CoreEvalError: a target cannot be used.
    """
    done = await asyncio.to_thread(job.store.stage, "evaluate")
    if done is None:
        asked = [name async for name in _asked(job)] if job.config.detect.evaluate else []
        done = {"targets": asked}
        if not job.stop.asked:
            await asyncio.to_thread(job.store.finish_stage, "evaluate", done)
    return list(done["targets"])


async def _asked(job: Job) -> AsyncIterator[str]:
    """Ask one target after the other until the run is told to stop."""
    for target in job.config.models.targets:
        if job.stop.asked:
            return
        await asyncio.to_thread(job.tell, "evaluate", note=target.model)
        if target.embedded:
            await asyncio.to_thread(_ask_embedded, job, target)
        else:
            await _ask_model(job, target)
        yield target.model


def compare(job: Job) -> ArmTable:
    """Score the stored answers, arms against each other on the samples that both have."""
    gold: dict[str, str] = {}
    unrecoverable: set[str] = set()
    for ended in job.store.ended():
        gold[ended.sample.id] = ended.sample.label_text
        if ended.result.outcome == "label_unrecoverable":
            unrecoverable.add(ended.sample.id)
    return compare_arms(
        job.store.predictions(),
        gold=gold,
        labels=[label.name for label in job.task.labels],
        unrecoverable=unrecoverable,
        seed=job.config.run.seed,
    )


def _ask_embedded(job: Job, target: TargetConfig) -> None:
    """Fit the classifier on the train split and put the arms to it."""
    dataset = job.config.dataset
    rows = iter_benchmark(dataset, job.task, split=dataset.train_split)
    train = [row for row in rows if isinstance(row, Sample)]
    fitted = fit_target(target.model, job.task, train, seed=job.config.run.seed)
    for arm, samples in _chunks(job):
        job.store.add_predictions(predict_arm(fitted, samples, arm=arm))


async def _ask_model(job: Job, target: TargetConfig) -> None:
    """Put the arms to an LLM, through the call store."""
    calls = open_calls(job.workspace.calls)
    asker = Asker(open_model(target), calls, role="target", max_draws=1)
    try:
        for number, (arm, samples) in enumerate(_chunks(job)):
            with record_calls() as made:
                answers = await _ask(job, target.model, asker, arm, samples)
            job.store.add_predictions(answers)
            job.store.record(
                Step(
                    sample_id=f"target {target.model}",
                    attempt=number,
                    node=arm,
                    started_at=datetime.now(UTC).isoformat(timespec="microseconds"),
                    seconds=sum(call.seconds for call in made),
                    calls=tuple(call_row(call, job.began) for call in made),
                )
            )
    finally:
        await close_models()
        calls.close()


async def _ask(
    job: Job, target: str, asker: Asker, arm: Arm, samples: Sequence[Sample]
) -> Sequence[Prediction]:
    """Ask about samples; with several stance targets, about those of one target at a time."""
    answers: list[Prediction] = []
    for task, part in itertools.groupby(samples, key=job.task_of):
        answers += await ask_target(
            target,
            list(part),
            arm=arm,
            task=task,
            asker=asker,
            concurrency=job.config.run.concurrency,
        )
    return answers


def _chunks(job: Job) -> Iterator[tuple[Arm, list[Sample]]]:
    """Yield each arm's samples, with the arm's texts in their fields."""
    for arm, texts in ARMS.items():
        samples = _samples(job, texts)
        while chunk := list(itertools.islice(samples, CHUNK)):
            yield arm, chunk


def _samples(job: Job, texts: Callable[[Ended], Mapping[str, str] | None]) -> Iterator[Sample]:
    for ended in job.store.ended():
        fields = texts(ended)
        if fields is not None:
            yield ended.sample.model_copy(update={"fields": dict(fields)})
