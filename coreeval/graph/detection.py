"""The evaluate stage: every configured target is put the three arms."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from coreeval.config import TargetConfig
from coreeval.errors import RunError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.embedded import fit_target, predict_arm
from coreeval.evaluation.targets import Line, ask_target
from coreeval.graph.job import Job
from coreeval.graph.record import call_row
from coreeval.models import Asker, CallRef, close_models, open_exchange, record_calls
from coreeval.releases.arms import original_fields, semantic_fields, updated_fields
from coreeval.schema import Arm, Prediction, Sample
from coreeval.tools.stores.calls import open_calls
from coreeval.tools.stores.run_rows import Ended, Step

CHUNK = 1000
"""Samples put to a target at a time, so that memory does not grow with the dataset."""
ARMS: dict[Arm, Callable[[Ended], Mapping[str, str] | None]] = {
    "original": original_fields,
    "semantic": semantic_fields,
    "updated": lambda ended: updated_fields(ended, "drop"),
}


async def evaluate_targets(job: Job) -> list[str]:
    """Ask every target about every arm and store the answers; return the targets that were asked.

    Raises:
        CoreEvalError: a target cannot be used, or left questions without an answer.
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
        if not job.stop.asked:
            await asyncio.to_thread(job.tell, "evaluate", note=target.model)
            await _ask(job, target)
        if job.stop.asked:
            return
        yield target.model


async def _ask(job: Job, target: TargetConfig) -> None:
    """Put the arms to one target."""
    if target.embedded:
        await asyncio.to_thread(_ask_embedded, job, target)
    else:
        await _ask_model(job, target)


def _ask_embedded(job: Job, target: TargetConfig) -> None:
    """Fit the classifier on the train split and put the arms to it."""
    dataset = job.config.dataset
    rows = iter_benchmark(dataset, job.task, split=dataset.train_split)
    train = [row for row in rows if isinstance(row, Sample)]
    fitted = fit_target(target.model, job.task, train, seed=job.config.run.seed)
    for arm, samples in itertools.takewhile(lambda _: not job.stop.asked, _chunks(job)):
        job.store.add_predictions(predict_arm(fitted, samples, arm=arm))


async def _ask_model(job: Job, target: TargetConfig) -> None:
    """Put the arms to an LLM, through the call store.

    Raises:
        RunError: some questions did not get through; the answers to the others are stored.
        CoreEvalError: the target cannot be used.
    """
    calls = await asyncio.to_thread(open_calls, job.workspace.calls, job.payer)
    line, number, answered = Line(lambda: job.stop.asked), itertools.count(), 0
    chunks = _chunks(job)
    try:
        asker = open_exchange(job.config, calls).asker(target, "target", max_draws=1, settle=True)
        while line.is_open and (chunk := await asyncio.to_thread(next, chunks, None)):
            with record_calls() as made:
                answers = await _answers(job, target.model, asker, line, *chunk)
            await asyncio.to_thread(job.store.add_predictions, answers)
            job.store.record(_step(job, target.model, next(number), chunk[0], made))
            answered += len(answers)
    finally:
        await close_models()
        await asyncio.to_thread(calls.close)
    if line.troubles and not job.stop.asked:
        raise await asyncio.to_thread(_missing, job, target.model, line, answered)


def _missing(job: Job, target: str, line: Line, answered: int) -> RunError:
    """Return the error for a target that left questions without an answer."""
    total = sum(len(samples) for _, samples in _chunks(job))
    return RunError(
        f"{target} left {total - answered} of {total} questions without an answer; "
        f"the first: {line.troubles[0]}",
        where="models.targets",
        hint="see to its endpoint; what was answered is kept",
    )


def _step(job: Job, target: str, number: int, arm: Arm, made: Sequence[CallRef]) -> Step:
    """Return what the story of the run says about one chunk."""
    return Step(
        sample_id=f"target {target}",
        attempt=number,
        node=arm,
        started_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        seconds=sum(call.seconds for call in made),
        calls=tuple(call_row(call, job.payer) for call in made),
    )


async def _answers(
    job: Job, target: str, asker: Asker, line: Line, arm: Arm, samples: Sequence[Sample]
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
            line=line,
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
