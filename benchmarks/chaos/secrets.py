"""Secrets in set-ups that fail."""

from benchmarks.chaos.cases import Case

CASES: tuple[Case, ...] = ()
