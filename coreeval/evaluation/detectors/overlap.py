"""Texts that two benchmarks share, as a detector: nobody is asked, and no target is judged."""

from typing import Final

from coreeval.evaluation.detectors.base import Detector

OVERLAP: Final = Detector(
    name="overlap",
    title="overlap",
    question="Does a benchmark repeat its own items or those of another?",
    access="answers",
    about_targets=False,
)
