"""Asks targets about the items of both splits that PCR compares."""

import asyncio
from collections.abc import Iterator

from coreeval.graph.pcr.rewording import reword_train
from coreeval.graph.run_context import RunContext
from coreeval.graph.state import SPLITS_STAGE
from coreeval.graph.target_questions import (
    Chunk,
    iter_batches,
    iter_train_chunks,
    put_to_targets,
    replace_fields,
)
from coreeval.runs.arms import original_fields, semantic_fields
from coreeval.tools.draws import draw_lowest
from coreeval.tools.stores.run_tables import SampleResult

MOST_TEST_SAMPLES = 5000
"""The most reworded test items to compare. Even with ten times the usual number of train items,
more test items would narrow the interval of a difference by less than a twentieth of its width."""


def list_reworded_test(run: RunContext) -> list[SampleResult]:
    """Return the run's reworded samples that are compared, in the benchmark's order."""
    both = (
        one for one in run.store.sample_results() if original_fields(one) and semantic_fields(one)
    )
    kept = enumerate(both)
    drawn = draw_lowest(
        kept, MOST_TEST_SAMPLES, id_of=lambda one: one[1].sample.id, seed=run.config.run.seed
    )
    return [ended for _, ended in sorted(drawn, key=lambda one: one[0])]


def iter_split_chunks(run: RunContext) -> Iterator[Chunk]:
    """Yield the items of both splits that PCR compares, original and reworded."""
    yield from iter_train_chunks(run)
    for ended in iter_batches(list_reworded_test(run)):
        yield "original", [one.sample for one in ended]
        yield "semantic", [replace_fields(one.sample, one.result.semantic or {}) for one in ended]


async def ask_about_splits(run: RunContext) -> list[str]:
    """If PCR is to be measured, reword items of the train split and ask the targets about them.

    Without a target to compare, nothing is reworded. Returns the targets that were asked.

    Raises:
        CoreEvalError: an error affects all items, or a target cannot be used or left questions
            unanswered.
    """
    if not run.pcr_targets:
        return []
    done = await asyncio.to_thread(run.store.stage, SPLITS_STAGE)
    if done is None:
        await reword_train(run)
        done = await put_to_targets(run, SPLITS_STAGE, run.pcr_targets, iter_split_chunks)
    return list(done["targets"])
