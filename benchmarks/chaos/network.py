"""Hostile answers and endpoints."""

from benchmarks.chaos.cases import Case

CASES: tuple[Case, ...] = ()
