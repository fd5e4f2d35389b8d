"""How many samples there are, and a few of them, drawn by chance and always the same."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import iter_benchmark, target_of
from coreeval.graph.drawing import drawn_most, train_rows
from coreeval.graph.setup import Setup
from coreeval.releases.keeping import Keeper
from coreeval.schema import Sample
from coreeval.tasks import ALL_TARGETS

DRAWN = 40
"""Samples that are drawn; prompts are rendered on the first few of them that come to a role."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A benchmark, counted."""

    samples: int
    kept: int = 0
    """Of them, taken from the release before: no role is asked about them."""
    train: int = 0
    """Items of the train split that are drawn for PCR."""
    by_target: dict[str, int]
    """For each stance target, where there are several."""
    drawn: tuple[Sample, ...]
    """Of the others; none at all where the benchmark is not on this machine."""

    @property
    def renewed(self) -> int:
        """Samples that go through the run."""
        return self.samples - self.kept


def count(setup: Setup, limit: int | None, keeper: Keeper | None = None) -> Counted:
    """Count the samples that a run would take, and draw some; nothing is downloaded.

    Args:
        setup: What the config amounts to.
        limit: Take only the first so many samples.
        keeper: Tells those that a run takes from the release before.

    Raises:
        DatasetError: the files cannot be read, or they are on a hub and no limit says how many
            samples are taken of them.
    """
    dataset = setup.config.dataset
    if dataset.format == "hf" and not Path(dataset.path).exists():
        return _on_hub(setup, limit)
    chance, drawn, by_target = random.Random(setup.config.run.seed), list[Sample](), Counter[str]()
    number = 0
    for sample in islice(_samples(setup), limit):
        by_target[target_of(sample.id) or ""] += 1
        if keeper and keeper.kept_of(sample):
            continue
        number += 1
        if len(drawn) < DRAWN:
            drawn.append(sample)
        elif (place := chance.randrange(number)) < DRAWN:
            drawn[place] = sample
    chance.shuffle(drawn)
    several, kept = dataset.target == ALL_TARGETS, keeper.kept if keeper else 0
    return Counted(
        samples=number + kept,
        kept=kept,
        train=_train(setup, limit),
        by_target=dict(by_target) if several else {},
        drawn=tuple(drawn),
    )


def _train(setup: Setup, limit: int | None) -> int:
    most = drawn_most(setup.config, limit)
    return sum(1 for _ in islice(train_rows(setup), most)) if most else 0


def _samples(setup: Setup) -> Iterator[Sample]:
    rows = iter_benchmark(setup.config.dataset, setup.task)
    return (row for row in rows if isinstance(row, Sample))


def _on_hub(setup: Setup, limit: int | None) -> Counted:
    if limit is None:
        raise DatasetError(
            "an estimate downloads nothing, so the samples of a hub's dataset are not counted",
            where=setup.config.dataset.path,
            hint="say how many there are: --limit N",
        )
    train = drawn_most(setup.config, limit)
    return Counted(samples=limit, train=train, by_target={}, drawn=())
