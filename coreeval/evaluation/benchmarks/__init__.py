"""Loaders: a benchmark's files, in any format, as a stream of samples and bad rows."""

from coreeval.evaluation.benchmarks.load import (
    Benchmark,
    counts_note,
    find_row_count,
    fingerprint,
    iter_benchmark,
    list_splits,
    load_benchmark,
    resolve_split,
)
from coreeval.evaluation.benchmarks.tweeteval import find_target, list_targets

__all__ = [
    "Benchmark",
    "counts_note",
    "find_row_count",
    "find_target",
    "fingerprint",
    "iter_benchmark",
    "list_splits",
    "list_targets",
    "load_benchmark",
    "resolve_split",
]
