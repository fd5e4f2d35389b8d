"""Disks, power and other machines."""

from benchmarks.chaos.cases import Case

CASES: tuple[Case, ...] = ()
