"""Traits of a benchmark: counts over its samples, such as options per question."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator

from coreeval.schema import Sample, Task
from coreeval.tasks import kind_of
from coreeval.tasks.kinds.base import REMARK
from coreeval.tools.formatting import format_quantity, list_first

_SHOWN = 26
"""The most values of a trait to list: one for each option's letter."""


class TraitCounts:
    """Counts the traits of samples one by one; the samples themselves are not kept."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._traits = kind_of(task).traits
        self._numbers = dict[str, Counter[int]]()
        self._names = dict[str, Counter[str]]()
        self._seen = set[bytes]()
        self._repeated, self._first = 0, ""

    def add(self, sample: Sample) -> None:
        """Count the traits of one more sample."""
        texts = json.dumps([*sample.fields.items()]).encode()
        mark = hashlib.blake2b(texts, digest_size=8).digest()
        if mark in self._seen:
            self._first, self._repeated = self._first or sample.id, self._repeated + 1
        self._seen.add(mark)
        for name, value in self._traits(self._task, sample):
            if isinstance(value, int):
                self._numbers.setdefault(name, Counter())[value] += 1
            else:
                self._names.setdefault(name, Counter())[value] += 1

    def describe(self) -> Iterator[str]:
        """Yield a line for each trait, then one for each remark."""
        for name, names in self._names.items():
            if name != REMARK:
                yield f"{name}: {_list_names(names)}"
        for name, numbers in self._numbers.items():
            yield f"{name}: {_describe_numbers(numbers)}"
        for remark, times in sorted(self._names.get(REMARK, Counter()).items()):
            yield f"note: of {times:,} sample{'' if times == 1 else 's'}, {remark}"
        if self._repeated:
            such = self._first if self._repeated == 1 else f"the first is {self._first}"
            number = format_quantity(self._repeated, "sample repeats", "samples repeat")
            yield f"note: {number} the texts of an earlier one: {such}"


def _list_names(names: Counter[str]) -> str:
    return list_first([f"{name} {times:,}" for name, times in sorted(names.items())], _SHOWN)


def _describe_numbers(numbers: Counter[int]) -> str:
    """Return the only number, or the least, the most and the median (the lower one of two)."""
    if len(numbers) == 1:
        return f"{next(iter(numbers)):,}"
    half, passed = (numbers.total() + 1) // 2, 0
    for median in sorted(numbers):
        passed += numbers[median]
        if passed >= half:
            break
    return f"{min(numbers):,} to {max(numbers):,}, median {median:,}"
