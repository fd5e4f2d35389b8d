"""The evaluate stage: every target is asked about the three arms."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from coreeval.graph.asking import Chunk, put_to_target
from coreeval.graph.job import Job
from coreeval.releases.arms import original_fields, semantic_fields, updated_fields
from coreeval.schema import Arm, Sample
from coreeval.tools.stores.run_rows import Ended

CHUNK = 1000
"""Samples looked at together."""
ARMS: dict[Arm, Callable[[Ended], Mapping[str, str] | None]] = {
    "original": original_fields,
    "semantic": semantic_fields,
    "updated": lambda ended: updated_fields(ended, "drop"),
}


async def evaluate_targets(job: Job) -> list[str]:
    """Ask the targets about every arm and store the answers; return the targets that were asked.

    Raises:
        CoreEvalError: a target cannot be used, or left questions without an answer.
    """
    done = await asyncio.to_thread(job.store.stage, "evaluate")
    if done is None:
        done = {"targets": [name async for name in _asked(job)]}
        if not job.stop.asked:
            await asyncio.to_thread(job.store.finish_stage, "evaluate", done)
    return list(done["targets"])


async def _asked(job: Job) -> AsyncIterator[str]:
    """Ask one target after the other until the run is told to stop."""
    for target in job.asked_targets:
        if not job.stop.asked:
            await put_to_target(job, target, lambda: arm_chunks(job))
        if job.stop.asked:
            return
        yield target.model


def arm_chunks(job: Job) -> Iterator[Chunk]:
    """Yield the samples of the arms, with the arm's texts in their fields."""
    every = job.store.ended()
    while ended := list(itertools.islice(every, CHUNK)):
        for arm, texts in ARMS.items():
            samples = [_told(one.sample, fields) for one in ended if (fields := texts(one))]
            if samples:
                yield arm, samples


def _told(sample: Sample, fields: Mapping[str, str]) -> Sample:
    return sample.model_copy(update={"fields": dict(fields)})
