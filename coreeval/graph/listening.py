"""Whoever hears of a run what the run store hears: nobody, or somebody who tells it elsewhere."""

from collections.abc import Sequence
from typing import Protocol

from coreeval.models.activity import CallRef
from coreeval.schema import Result, TrainEnd
from coreeval.tools.stores.run_records import StepRecord


class Listener(Protocol):
    """Hears of steps and ends; it is quick, and no trouble of its own reaches the run."""

    def stepped(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Hear of a step of a sample or a train item, before it is stored, and of its calls."""
        ...

    def ended(self, subject: str, end: Result | TrainEnd) -> None:
        """Hear that a sample or a train item has come to its end, which is stored."""
        ...

    def asked(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Hear what a target was asked at one go."""
        ...


class Nobody:
    """Hears nothing."""

    def stepped(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Ignore a step."""

    def ended(self, subject: str, end: Result | TrainEnd) -> None:
        """Ignore an end."""

    def asked(self, step: StepRecord, calls: Sequence[CallRef]) -> None:
        """Ignore what was asked."""


NOBODY: Listener = Nobody()
