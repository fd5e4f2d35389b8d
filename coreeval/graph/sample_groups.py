"""Groups samples that the same process must handle, and assigns groups to workers.

Samples that are labelled in one call, or have the same texts, make the same calls: within one
process they share a call, in two processes it would be paid for twice.
"""

import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from coreeval.config import RunConfig
from coreeval.graph.label_batches import divide_samples
from coreeval.tools.stores.run_store import RunStore

Group = tuple[str, ...]
"""The ids of samples for one process, in the benchmark's order."""


def group_samples(store: RunStore, settings: RunConfig) -> Mapping[str, int]:
    """Return the number of each sample's group; groups are numbered in the benchmark's order.

    Args:
        store: The store of the samples.
        settings: Has the number of originals labelled in one call.
    """
    batches = divide_samples(store.sample_ids(), settings.label_batch)
    found = dict[str, str]()
    """For each sample one before it in the same group, or itself."""
    leaders = dict[bytes, str]()
    """The first sample with each text."""
    for sample_id, text in store.iter_texts():
        found[sample_id] = sample_id
        _join(found, batches[sample_id][0], sample_id)
        _join(found, leaders.setdefault(_digest(text), sample_id), sample_id)
    numbers = dict[str, int]()
    return {
        sample_id: numbers.setdefault(_find_first(found, sample_id), len(numbers))
        for sample_id in found
    }


def _digest(text: str) -> bytes:
    """Return a short hash, because all texts together may not fit into memory."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _join(found: dict[str, str], one: str, other: str) -> None:
    found[_find_first(found, other)] = _find_first(found, one)


def _find_first(found: dict[str, str], sample_id: str) -> str:
    while found[sample_id] != sample_id:
        found[sample_id] = sample_id = found[found[sample_id]]
    return sample_id


class GroupQueue:
    """Assigns groups to workers until all their samples have ended.

    A worker first gets groups that it had before, then new groups, then those of other workers.

    Args:
        ids: The samples to process.
        numbers: The group of each sample.
        owners: The previous worker of a group, by the group's number; updated here.
    """

    def __init__(
        self, ids: Iterable[str], numbers: Mapping[str, int], owners: dict[int, int]
    ) -> None:
        self._owners, self._numbers = owners, numbers
        self._open = dict[str, int]()
        """The worker of each assigned sample that has not ended."""
        self._ranks = {sample_id: rank for rank, sample_id in enumerate(ids)}
        groups = dict[int, list[str]]()
        for sample_id in self._ranks:
            groups.setdefault(numbers[sample_id], []).append(sample_id)
        self._left = len(self._ranks)
        self._queues = dict[int | None, deque[Group]]()
        for number, members in groups.items():
            self._queue(owners.get(number)).append(tuple(members))

    @property
    def is_done(self) -> bool:
        """Whether all samples have ended."""
        return self._left == 0

    def take(self, worker: int) -> Sequence[tuple[str, int]]:
        """Return the next group for a worker, each sample with its rank; empty if none is left."""
        own_first = self._queue(worker) or self._queue(None)
        fullest = max(self._queues.values(), key=len)
        if not (own_first or fullest):
            return []
        group = own_first.popleft() if own_first else fullest.pop()
        self._owners[self._numbers[group[0]]] = worker
        self._open |= dict.fromkeys(group, worker)
        return [(sample_id, self._ranks[sample_id]) for sample_id in group]

    def end(self, sample_id: str) -> bool:
        """Record that a sample has ended; return whether it was open."""
        was_open = self._open.pop(sample_id, None) is not None
        self._left -= was_open
        return was_open

    def take_back(self, worker: int) -> Collection[str]:
        """Queue a worker's unfinished samples again, before all others."""
        lost = [sample_id for sample_id, owner in self._open.items() if owner == worker]
        groups = dict[int, list[str]]()
        for sample_id in lost:
            del self._open[sample_id]
            groups.setdefault(self._numbers[sample_id], []).append(sample_id)
        self._queue(worker).extendleft(map(tuple, reversed(groups.values())))
        return lost

    def _queue(self, worker: int | None) -> deque[Group]:
        return self._queues.setdefault(worker, deque())
