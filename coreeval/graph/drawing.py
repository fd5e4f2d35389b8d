"""Which items PCR compares: drawn by chance, always the same ones, and fewer are among more."""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from coreeval.config import Config
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.recall import held_out
from coreeval.graph.job import Job
from coreeval.graph.setup import Setup
from coreeval.releases.arms import original_fields, semantic_fields
from coreeval.schema import Sample
from coreeval.tools.stores.run_records import SampleResult

TEST_MOST = 5000
"""Reworded test items that are compared: with ten times the usual number of train items, the
interval of a difference is within a twentieth of its width with any more."""
T = TypeVar("T")


def lowest(rows: Iterable[T], most: int, *, id_of: Callable[[T], str], seed: int) -> list[T]:
    """Draw rows as they stream by: those with the lowest hashes of seed and id.

    So a draw of a few is the beginning of a draw of many, and does not depend on the rows' order.
    """

    def place(row: T) -> bytes:
        return hashlib.sha256(f"{seed}\0{id_of(row)}".encode()).digest()

    return heapq.nsmallest(most, rows, key=place)


def drawn_most(config: Config, limit: int | None) -> int:
    """Return how many items of the train split a run draws at most: none without a target.

    A run that takes only the first samples takes no more train items than these.
    """
    asked = config.detect.pcr
    if asked is None or not config.models.targets:
        return 0
    return asked.samples if limit is None else min(limit, asked.samples)


def draw_train(setup: Setup, most: int) -> list[Sample]:
    """Draw at most so many items of the train split.

    Raises:
        DatasetError: the split is not there, or has no sample.
    """
    rows = lowest(train_rows(setup), most, id_of=lambda one: one.id, seed=setup.config.run.seed)
    return list(rows)


def train_rows(setup: Setup) -> Iterator[Sample]:
    """Stream the items of the train split that may be drawn.

    With embedded targets these are of the half that none of them is fitted on, so that the one that
    has seen nothing has seen none of them.
    """
    config = setup.config
    rows = iter_benchmark(config.dataset, setup.task, split=config.pcr_train_split)
    samples = (row for row in rows if isinstance(row, Sample))
    return filter(held_out, samples) if _fits_on_it(config) else samples


def _fits_on_it(config: Config) -> bool:
    embedded = any(target.is_embedded for target in config.models.targets)
    return embedded and config.pcr_train_split == config.dataset.train_split


def reworded_test(job: Job) -> list[SampleResult]:
    """Return the reworded samples of the run that are compared, in the benchmark's order."""
    both = (
        one for one in job.store.sample_results() if original_fields(one) and semantic_fields(one)
    )
    kept = enumerate(both)
    drawn = lowest(kept, TEST_MOST, id_of=lambda one: one[1].sample.id, seed=job.config.run.seed)
    return [ended for _, ended in sorted(drawn, key=lambda one: one[0])]
