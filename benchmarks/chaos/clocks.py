"""Clocks that go wrong."""

from benchmarks.chaos.cases import Case

CASES: tuple[Case, ...] = ()
