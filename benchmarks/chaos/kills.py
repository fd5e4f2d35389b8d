"""Killed, stopped and crowded."""

from benchmarks.chaos.cases import Case

CASES: tuple[Case, ...] = ()
