"""Groups originals that are labelled together, in one call of the label judge.

Membership and order follow from the planned samples and `run.label_batch` alone, so every process
of a run, a resumed run and another run over the same samples ask the same questions, and the call
store answers all but the first.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property

from coreeval.agents.roles import Fields
from coreeval.evaluation.benchmarks import find_target
from coreeval.tools.stores.run_store import RunStore

_KEPT_SAMPLES = 2048
"""The number of samples whose batches are kept in memory: more than are in flight."""


class LabelBatches:
    """The batches of a run's originals.

    Args:
        store: The store of the samples.
        size: The most originals of one batch; 1 for none.
    """

    def __init__(self, store: RunStore, size: int) -> None:
        self._store, self._size = store, size
        self._kept = dict[str, tuple[tuple[str, ...], Sequence[Fields]]]()
        """The most recently read batches with their texts, by sample."""
        self._failures = dict[tuple[str, ...], str]()

    async def find(self, sample_id: str) -> tuple[int, Sequence[Fields]] | None:
        """Return a sample's place in its batch, from 0, and the texts of all members.

        Return None for a single sample, such as a train item, and for one whose batch failed before
        in this process.
        """
        kept = self._kept.get(sample_id)
        if kept is None:
            kept = await asyncio.to_thread(self._read, sample_id)
        members, texts = kept
        if len(members) < 2 or members in self._failures:
            return None
        return members.index(sample_id), texts

    def mark_failed(self, sample_id: str, reason: str) -> None:
        """Record that the batch of a sample has no usable answer, and why."""
        self._failures[self._members[sample_id]] = reason

    def find_failure(self, sample_id: str) -> str | None:
        """Return why the batch of a sample failed in this process, or None."""
        return self._failures.get(self._members.get(sample_id, ()))

    @cached_property
    def _members(self) -> Mapping[str, tuple[str, ...]]:
        """The batch of each sample, read when the samples are planned."""
        return divide_samples(self._store.sample_ids(), self._size) if self._size > 1 else {}

    def _read(self, sample_id: str) -> tuple[tuple[str, ...], Sequence[Fields]]:
        """Return the batch of a sample, and its texts; keep both for the other members."""
        members = self._members.get(sample_id, ())
        read = members, [self._store.sample(member).fields for member in members]
        if len(self._kept) >= _KEPT_SAMPLES:
            self._kept = {}
        self._kept |= dict.fromkeys((sample_id, *members), read)
        return read


def divide_samples(ids: Sequence[str], size: int) -> dict[str, tuple[str, ...]]:
    """Return the batch of each sample; samples of different stance targets are never together."""
    by_target = dict[str | None, list[str]]()
    for sample_id in ids:
        by_target.setdefault(find_target(sample_id), []).append(sample_id)
    batches = (
        tuple(same[start : start + size])
        for same in by_target.values()
        for start in range(0, len(same), size)
    )
    return {member: batch for batch in batches for member in batch}
