"""Hostile files."""

from benchmarks.chaos.archives import ARCHIVES
from benchmarks.chaos.cases import Case
from benchmarks.chaos.harnesses import HARNESSES

CASES: tuple[Case, ...] = (*ARCHIVES, HARNESSES)
