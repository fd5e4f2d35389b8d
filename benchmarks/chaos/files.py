"""Hostile files."""

from benchmarks.chaos.cases import Case

CASES: tuple[Case, ...] = ()
