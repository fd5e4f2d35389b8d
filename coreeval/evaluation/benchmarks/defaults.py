"""What a benchmark of items is scored by, unless somebody says otherwise."""

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import TypeAdapter

from coreeval.schema import Value

ModificationName = Literal["option_shuffle", "year_shift", "paraphrase"]


class Defaults(Value):
    """The settings of a comparison, by the names that the scores and modifications have."""

    performance: str
    consistency: str
    modification: ModificationName
    train_split: str = "train"
    test_split: str = "test"
    alpha: float = 0.01
    """Added to performance and consistency (CAP paper, section 3.4)."""
    threshold: float = 0.95
    """Cosine similarity from which answers mean the same; read by `cosine` alone."""


@cache
def defaults() -> dict[str, Defaults]:
    """Return the defaults by name of the benchmark: those of the CAP paper."""
    text = (files("coreeval.evaluation.benchmarks") / "defaults.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Defaults]).validate_python(yaml.safe_load(text))
