"""Disks, power and other machines."""

from benchmarks.chaos.cases import Case
from benchmarks.chaos.full_disk import FULL_DISK
from benchmarks.chaos.machines import MACHINES
from benchmarks.chaos.power import POWER

CASES: tuple[Case, ...] = (FULL_DISK, POWER, *MACHINES)
