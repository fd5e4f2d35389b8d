"""How long PCR's resampling takes and what memory it needs, and whether its intervals are right.

    OMP_NUM_THREADS=1 python -m benchmarks.pcr [--items 1500] [--draws 10000]
    OMP_NUM_THREADS=1 python -m benchmarks.pcr --calibrate 1000

Without `--calibrate`: 10,000 bootstrap draws and as many permutations of a file with `--items`
pairs, half of them in each split, from recorded answers to the verdict. With it: so many made
studies with a known PCR, in which the share of intervals that hold the true difference should be
0.95, and the share of p-values up to 0.05 should be 0.05 where the splits are alike. How often
verdicts are false is what `python -m benchmarks.verdicts --detector pcr` counts.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import kstest  # type: ignore[import-untyped]

from coreeval.evaluation.metrics import CONSISTENCY, PERFORMANCE
from coreeval.evaluation.pcr.comparison import compare
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.ratio import performance_consistency_ratio
from coreeval.evaluation.pcr.replicates import FileReplicates, resample
from coreeval.evaluation.pcr.verdicts import PcrOptions
from coreeval.evaluation.statistics import INTERVALS, Array

COMPARED = ("train", "test")
DRAWS = 1000
"""Draws of each made study: enough, since errors of single intervals average out."""


class World(NamedTuple):
    """A population: how often an item is right and consistent, in training and in test."""

    name: str
    n: tuple[int, int]
    right: tuple[float, float]
    same: tuple[float, float]

    @property
    def alike(self) -> bool:
        """Whether both splits come from one population."""
        return self.right[0] == self.right[1] and self.same[0] == self.same[1]

    @property
    def difference(self) -> float:
        """The true PCR(train) - PCR(test)."""
        first, second = performance_consistency_ratio(np.array(self.right), np.array(self.same))
        return float(first - second)


WORLDS = (
    World("alike, 170 and 1151 items", (170, 1151), (0.45, 0.45), (0.47, 0.47)),
    World("alike, 100 and 100 items", (100, 100), (0.30, 0.30), (0.60, 0.60)),
    World("alike, 20 and 20 items", (20, 20), (0.50, 0.50), (0.50, 0.50)),
    World("alike, rarely right, 500 and 500", (500, 500), (0.03, 0.03), (0.50, 0.50)),
    World("fine-tuned, 500 and 500 items", (500, 500), (0.55, 0.30), (0.80, 0.65)),
    World("unlike, of equal PCR, 170 and 1151", (170, 1151), (0.20, 0.41), (0.39, 0.79)),
    World("contaminated, 170 and 1151 items", (170, 1151), (0.40, 0.60), (0.50, 0.52)),
)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1500)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--calibrate", type=int, metavar="STUDIES", default=0)
    chosen = parser.parse_args()
    if chosen.calibrate:
        for world in WORLDS:
            print(_calibrated(world, chosen.calibrate))
    else:
        _timed(chosen.items, chosen.draws)


def _timed(items: int, draws: int) -> None:
    rng = np.random.default_rng(0)
    half = (items // 2, items - items // 2)
    pairs = list(_pairs(World("", half, (0.5, 0.4), (0.6, 0.5)), rng))
    for metric in ("exact_match", "rouge_l", "bleu"):
        before, started, busy = _peak(), time.perf_counter(), time.process_time()
        _study(pairs, draws, metric)
        wall, cpu = time.perf_counter() - started, time.process_time() - busy
        spent = f"{cpu:.2f} s of CPU ({wall:.2f} s by the clock)"
        print(f"{metric}: {items} pairs: {spent}, peak memory {before} -> {_peak()} MB")


def _calibrated(world: World, studies: int) -> str:
    held: dict[str, list[bool]] = {kind: [] for kind in INTERVALS}
    p_values = list[float]()
    for seed in range(studies):
        pairs = list(_pairs(world, np.random.default_rng([seed, 9])))
        found = _study(pairs, DRAWS, "exact_match", seed)
        for kind in INTERVALS:
            one = compare(found, COMPARED, PcrOptions(interval=kind))["it"]
            pcr = one.difference.pcr
            held[kind].append(pcr.ci_low <= world.difference <= pcr.ci_high)
        p_values.append(one.difference.p_value)
    covered = ", ".join(f"{kind} {np.mean(each):.3f}" for kind, each in held.items())
    small = f"p <= 0.05 in {np.mean(np.array(p_values) <= 0.05):.3f}"
    flat = f", uniform: Kolmogorov-Smirnov p {kstest(p_values, 'uniform').pvalue:.2f}"
    return f"{world.name}: covered {covered}; {small}{flat if world.alike else ''}"


def _study(pairs: list[Pair], draws: int, metric: str, seed: int = 0) -> dict[str, FileReplicates]:
    found = resample(
        pairs,
        performance=PERFORMANCE[metric],
        consistency=CONSISTENCY["exact"],
        compared=COMPARED,
        draws=draws,
        seed=seed,
    )
    compare({"it": found}, COMPARED, PcrOptions())
    return {"it": found}


def _pairs(world: World, rng: np.random.Generator) -> Iterator[Pair]:
    """Yield items whose right answers are more often consistent, as with real models."""
    for split, n, right, same in zip(COMPARED, world.n, world.right, world.same, strict=True):
        luck: Array = rng.random((n, 2))
        luck[:, 1] = np.where(rng.random(n) < 0.5, luck[:, 0], luck[:, 1])
        for number, (first, second) in enumerate(luck):
            original = "right" if first < right else "wrong"
            modified = original if second < same else "other"
            yield Pair(
                split=split,
                id=str(number),
                reference="right",
                original_output=original,
                modified_output=modified,
            )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
