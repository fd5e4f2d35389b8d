"""The texts that targets are asked about, in chunks that a run can hold."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from coreeval.graph.asking import Chunk
from coreeval.graph.drawing import reworded_test
from coreeval.graph.job import Job
from coreeval.releases.arms import accepted_fields, original_fields, semantic_fields
from coreeval.schema import Arm, Sample
from coreeval.tools.stores.run_records import SampleResult
from coreeval.tools.stores.run_store import RunStore

T = TypeVar("T")
CHUNK = 1000
"""Samples looked at together."""
Texts = Callable[[SampleResult], Mapping[str, str] | None]
"""Gives the texts that an arm has of a sample."""
ARMS: Mapping[Arm, Texts] = {
    "original": original_fields,
    "semantic": semantic_fields,
    "updated": accepted_fields,
}
CONTROL: Mapping[Arm, Texts] = {"control": accepted_fields}
"""Of the second pass only what it updated is an arm: the rest it has from the first."""


def arm_chunks(job: Job) -> Iterator[Chunk]:
    """Yield the samples of the arms, with the arm's texts in their fields."""
    yield from _arm_chunks(job.store, ARMS)
    if job.control:
        yield from _arm_chunks(job.control.store, CONTROL)


def _arm_chunks(store: RunStore, arms: Mapping[Arm, Texts]) -> Iterator[Chunk]:
    for ended in _batches(store.sample_results()):
        for arm, texts in arms.items():
            samples = [_told(one.sample, fields) for one in ended if (fields := texts(one))]
            if samples:
                yield arm, samples


def split_chunks(job: Job) -> Iterator[Chunk]:
    """Yield the items that PCR compares, of either split, as they are and reworded."""
    yield from train_chunks(job)
    for ended in _batches(reworded_test(job)):
        yield "original", [one.sample for one in ended]
        yield "semantic", [_told(one.sample, one.result.semantic or {}) for one in ended]


def train_chunks(job: Job) -> Iterator[Chunk]:
    """Yield the items of the train split, as they are and reworded."""
    for items in _batches(job.store.train_rewordings()):
        yield "train", [one.sample for one in items]
        yield "train_semantic", [_told(one.sample, one.end.semantic or {}) for one in items]


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    every = iter(rows)
    while some := list(itertools.islice(every, CHUNK)):
        yield some


def _told(sample: Sample, fields: Mapping[str, str]) -> Sample:
    return sample.model_copy(update={"fields": dict(fields)})
