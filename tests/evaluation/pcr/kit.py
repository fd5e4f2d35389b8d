"""Pairs that are made up, of a model that is right and consistent as often as it is told to."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from coreeval.evaluation.pcr import Pair
from coreeval.evaluation.pcr.pairs import Options

RECORD = {
    "split": "train",
    "id": "1",
    "reference": "yes",
    "original_output": "yes",
    "modified_output": "no",
}


def pair(
    split: str = "train",
    number: int = 1,
    reference: str = "yes",
    outputs: tuple[str, str] = ("yes", "yes"),
    options: tuple[Options, Options] | None = None,
) -> Pair:
    """Return one pair."""
    return Pair(
        split=split,
        id=str(number),
        reference=reference,
        original_output=outputs[0],
        modified_output=outputs[1],
        original_options=options[0] if options else None,
        modified_options=options[1] if options else None,
    )


def made(split: str, n: int, right: int, same: int) -> Iterator[Pair]:
    """Yield n pairs of which the first are right, and every so manieth is consistent."""
    consistent = np.random.default_rng(n).permutation(n) < same
    for number in range(n):
        said = "yes" if number < right else "no"
        yield pair(split, number, "yes", (said, said if consistent[number] else "perhaps"))


def two_splits(train: tuple[int, int, int], test: tuple[int, int, int]) -> list[Pair]:
    """Return two splits, each by its number of items, right ones and consistent ones."""
    return [*made("train", *train), *made("test", *test)]


def record(each: Pair) -> dict[str, object]:
    """Return a pair as a file has it."""
    return {name: getattr(each, name) for name in RECORD}


def write(path: Path, pairs: list[Pair]) -> Path:
    """Write pairs to a file."""
    path.write_text("".join(json.dumps(record(each)) + "\n" for each in pairs), encoding="utf-8")
    return path
