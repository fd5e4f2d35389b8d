"""Answers of made targets: right or wrong in each arm, as a mask says."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.answer_codes import AnswerCodes
from coreeval.evaluation.label_scores import FAULTS, MISSING, AnswerTable
from coreeval.schema import Arm

RIGHT, WRONG, REFUSED, UNASKED = 1, 0, 2, 3
Marks = NDArray[np.int64]
"""What became of each question: shape (samples,) or (samples, templates)."""


def coded(marks: Mapping[Arm, Marks], *, target: str = "t", labels: int = 2) -> AnswerCodes:
    """Return answers to samples whose labels take turns; a wrong answer is the next label."""
    by_template = {arm: each.reshape(len(each), -1) for arm, each in marks.items()}
    n = len(next(iter(by_template.values())))
    due = np.arange(n) % labels
    said = np.hstack([_said(due, each, labels) for each in by_template.values()])
    ways = [(arm, 1 + k) for arm, each in by_template.items() for k in range(each.shape[1])]
    table = AnswerTable(due.astype(np.int16), said.astype(np.int16), labels)
    keys = tuple(f"s{place}" for place in range(n))
    return AnswerCodes(target, keys, tuple("abcdef"[:labels]), tuple(ways), table)


def first(hits: int, n: int = 40) -> Marks:
    """Return marks of which so many at the beginning are right."""
    return np.where(np.arange(n) < hits, RIGHT, WRONG)


def some(rng: np.random.Generator, share: float, shape: tuple[int, ...]) -> Marks:
    """Return marks that are right by chance."""
    return (rng.random(shape) < share).astype(np.int64)


def _said(due: NDArray[np.int64], marks: Marks, labels: int) -> NDArray[np.int64]:
    gold = np.broadcast_to(due[:, None], marks.shape)
    refused = labels + FAULTS.index("refused")
    return np.select(
        [marks == RIGHT, marks == WRONG, marks == REFUSED],
        [gold, (gold + 1) % labels, np.full(marks.shape, refused)],
        default=MISSING,
    )
