"""The stages that ask targets: about the three arms, and about items of the train split."""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from coreeval.config import TargetConfig
from coreeval.graph.asking import Chunk, put_to_target
from coreeval.graph.job import Job
from coreeval.graph.rewording import reword_train
from coreeval.graph.sources import arm_chunks, split_chunks


async def evaluate_targets(job: Job) -> list[str]:
    """Ask the targets about every arm and store the answers; return the targets that were asked.

    Raises:
        CoreEvalError: a target cannot be used, or left questions without an answer.
    """
    done = await asyncio.to_thread(job.store.stage, "evaluate")
    if done is None:
        done = await _asked(job, "evaluate", job.asked_targets, arm_chunks)
    return list(done["targets"])


async def compare_splits(job: Job) -> list[str]:
    """Reword items of the train split and ask the targets about them, where PCR is to be measured.

    Without a target to compare nothing is reworded. Returns the targets that were asked.

    Raises:
        CoreEvalError: what no item could survive; a target that cannot be used, or that left
            questions without an answer.
    """
    if not job.compared_targets:
        return []
    done = await asyncio.to_thread(job.store.stage, "pcr")
    if done is None:
        await reword_train(job)
        done = await _asked(job, "pcr", job.compared_targets, split_chunks)
    return list(done["targets"])


async def _asked(
    job: Job,
    stage: str,
    targets: Sequence[TargetConfig],
    chunks: Callable[[Job], Iterator[Chunk]],
) -> dict[str, list[str]]:
    """Ask one target after the other, and note that the stage is done unless told to stop."""
    asked = list[str]()
    for target in targets:
        if not job.stop.asked:
            await put_to_target(job, target, lambda: chunks(job), stage=stage)
        if job.stop.asked:
            return {"targets": asked}
        asked.append(target.model)
    done = {"targets": asked}
    await asyncio.to_thread(job.store.finish_stage, stage, done)
    return done
