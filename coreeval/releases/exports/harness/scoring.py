"""Scores a model's labels; benchmark.json in the same folder has the known labels.

An answer that is not a label counts as a wrong prediction, but not as a class of the F1.
"""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNPARSED = "__unparsed__"
DRAWS = 2000
SEED = 7
Pair = tuple[str, str]
"""The label of the benchmark, and the model's label."""


@cache
def benchmark() -> dict[str, Any]:
    """Return benchmark.json: name, version, split, labels, and the file of each arm."""
    text = Path(__file__).with_name("benchmark.json").read_text(encoding="utf-8")
    said: dict[str, Any] = json.loads(text)
    return said


def file_of(arm: str) -> str:
    """Return the file with the questions of an arm.

    Raises:
        ValueError: the benchmark has no such arm.
    """
    arms = benchmark()["arms"]
    if arm not in arms:
        raise ValueError(f"there is no arm {arm!r}; the arms are: {', '.join(arms)}")
    return str(Path(__file__).parent / str(arms[arm]))


def mean_f1(pairs: Sequence[Pair]) -> float:
    """Return the mean F1 over the labels of the benchmark.

    It equals scikit-learn's f1_score(labels=..., average="macro", zero_division=0).
    """
    cells, counts = _counted(pairs)
    return float(_mean_f1(cells, counts[np.newaxis])[0])


def f1_interval(pairs: Sequence[Pair], level: float = 0.95) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the macro-F1, resampling with replacement."""
    cells, counts = _counted(pairs)
    chance = np.random.default_rng(SEED)
    draws = chance.multinomial(counts.sum(), counts / counts.sum(), size=DRAWS)
    low, high = np.quantile(_mean_f1(cells, draws), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _counted(pairs: Sequence[Pair]) -> tuple[list[Pair], NDArray[np.int64]]:
    """Return the distinct pairs and the count of each."""
    found = Counter((due, said) for due, said in pairs)
    return list(found), np.array(list(found.values()), np.int64)


def _mean_f1(cells: list[Pair], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the macro-F1 for each row of counts, which has a column for each cell."""
    scores = []
    for label in benchmark()["labels"]:
        size = counts @ np.array([(due == label) + (said == label) for due, said in cells])
        hits = counts @ np.array([int(due == said == label) for due, said in cells])
        scores.append(2 * hits / np.maximum(size, 1))
    return np.asarray(np.mean(scores, axis=0))
