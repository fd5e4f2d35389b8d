"""How many samples there are, and a few of them, drawn by chance and always the same."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import iter_benchmark, target_of
from coreeval.graph.setup import Setup
from coreeval.schema import Sample
from coreeval.tasks import ALL_TARGETS

DRAWN = 40
"""Samples that are drawn; prompts are rendered on the first few of them that come to a role."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A benchmark, counted."""

    samples: int
    by_target: dict[str, int]
    """For each stance target, where there are several."""
    drawn: tuple[Sample, ...]
    """None at all where the benchmark is not on this machine."""


def count(setup: Setup, limit: int | None) -> Counted:
    """Count the samples that a run would take, and draw some; nothing is downloaded.

    Raises:
        DatasetError: the files cannot be read, or they are on a hub and no limit says how many
            samples are taken of them.
    """
    dataset = setup.config.dataset
    if dataset.format == "hf" and not Path(dataset.path).exists():
        return _on_hub(dataset.path, limit)
    chance, drawn, by_target = random.Random(setup.config.run.seed), list[Sample](), Counter[str]()
    number = 0
    for sample in islice(_samples(setup), limit):
        number += 1
        by_target[target_of(sample.id) or ""] += 1
        if len(drawn) < DRAWN:
            drawn.append(sample)
        elif (place := chance.randrange(number)) < DRAWN:
            drawn[place] = sample
    chance.shuffle(drawn)
    several = dataset.target == ALL_TARGETS
    return Counted(samples=number, by_target=dict(by_target) if several else {}, drawn=tuple(drawn))


def _samples(setup: Setup) -> Iterator[Sample]:
    rows = iter_benchmark(setup.config.dataset, setup.task)
    return (row for row in rows if isinstance(row, Sample))


def _on_hub(path: str, limit: int | None) -> Counted:
    if limit is None:
        raise DatasetError(
            "an estimate downloads nothing, so the samples of a hub's dataset are not counted",
            where=path,
            hint="say how many there are: --limit N",
        )
    return Counted(samples=limit, by_target={}, drawn=())
