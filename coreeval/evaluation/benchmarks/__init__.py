"""Loaders: a benchmark's files, whatever their format, as a stream of samples and bad rows."""

from coreeval.evaluation.benchmarks.counts import expected_count
from coreeval.evaluation.benchmarks.load import (
    Benchmark,
    counts_note,
    fingerprint,
    iter_benchmark,
    known_split,
    load_benchmark,
    splits_of,
)
from coreeval.evaluation.benchmarks.tweeteval import target_of, targets_of

__all__ = [
    "Benchmark",
    "counts_note",
    "expected_count",
    "fingerprint",
    "iter_benchmark",
    "known_split",
    "load_benchmark",
    "splits_of",
    "target_of",
    "targets_of",
]
