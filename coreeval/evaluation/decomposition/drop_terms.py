"""What a score drop is made of: terms, each a difference of arms on the samples that they share."""

from collections.abc import Mapping
from typing import Final, Literal

from coreeval.evaluation.covariates import CovariateDifference
from coreeval.evaluation.scores import LEVEL, Score
from coreeval.schema import Arm, Value

TermName = Literal[
    "surface", "knowledge", "rewriting", "surface_unexplained", "unexplained"
]  # fmt: skip
CONTRASTS: Final[Mapping[TermName, Mapping[Arm, int]]] = {
    "surface": {"original": 1, "semantic": -1},
    "knowledge": {"semantic": 1, "updated": -1},
    "rewriting": {"semantic": 1, "control": -1},
    "surface_unexplained": {"original": 1, "semantic": -2, "control": 1},
    "unexplained": {"original": 0, "semantic": 0, "control": 1, "updated": -1},
}
"""How often each arm's score counts. The samples are those that all of a term's arms share, so
that `unexplained`, in which the reworded arm cancels out, still has the samples of all four."""
PATH: Final[tuple[Arm, ...]] = ("original", "semantic", "control", "updated")
"""The order of the losses: words, then facts that are known, then facts that are new."""
TERM_DEFINITIONS: Final[Mapping[TermName, str]] = {
    "surface": "original - semantic: lost by other words for the same facts",
    "knowledge": "semantic - updated: lost by new facts",
    "rewriting": "semantic - control: lost by facts that the same pipeline wrote in from news "
    "before the target's cutoff, which rewriting alone explains",
    "surface_unexplained": "surface - rewriting: lost by other words beyond what a rewriting costs",
    "unexplained": "knowledge - rewriting: lost by new facts beyond what a rewriting costs",
}
MIN_SAMPLES: Final = 20
"""Ours, as for PCR: below it a bootstrap has too few samples to tell how they vary."""

Verdict = Literal["remembered", "not_shown", "arms_differ", "no_control", "too_few"]
"""Loss that neither rewriting nor label noise nor a harder arm explains; none; one that an arm that
is harder may explain as well; one that rewriting may explain, without a control arm; too few
samples."""
MemoryKind = Literal["wording", "facts"]
"""What may be remembered: the words of the original, or the facts of its time."""
FRONT: Final[Mapping[MemoryKind, tuple[Arm, ...]]] = {
    "wording": ("original",),
    "facts": ("semantic", "control"),
}
"""The arms that a target would be better on by memory."""
BACK: Final[Mapping[MemoryKind, Arm]] = {"wording": "semantic", "facts": "updated"}
"""The arm on which such memory is of no use."""
CLAIMS: Final[Mapping[MemoryKind, tuple[TermName, TermName]]] = {
    "wording": ("surface", "surface_unexplained"),
    "facts": ("knowledge", "unexplained"),
}
"""The loss that may be memory, and what the control arm leaves of it."""


class Term(Value):
    """One part of a drop; positive where the score is lost."""

    lost: Score
    beyond_noise: Score | None
    """What is left where wrong labels cost as much as they can (twice that where an arm counts
    twice); None without a bound on them, and for `rewriting`. The upper end is that of `lost`: they
    may cost nothing."""
    p_value: float | None
    """Two-sided, that nothing is lost."""
    detectable: float | None
    """The smallest true loss that so many samples show in four studies of five."""


class ArmStep(Value):
    """One arm on the samples that all arms share, and what it lost since the arm before it."""

    arm: Arm
    score: Score
    lost: Score | None
    """None for the first."""


class DropParts(Value):
    """The parts of one score's drop."""

    terms: dict[TermName, Term]
    """Without those whose arms were not asked."""
    steps: tuple[ArmStep, ...]
    """From original to updated, in the order of the losses: surface, rewriting, unexplained. They
    add up."""
    noise_cost: float | None
    """Most that wrong labels can cost the score of the updated arm."""


class LossCheck(Value):
    """What else than memory may explain a loss of one target, and whether it does."""

    no_label: CovariateDifference | None
    """Answers without a label on the arms in front and on the one behind, in % of the answers;
    None if an arm was not asked."""
    others: tuple[str, ...]
    """Targets that the tested one is held against: references if there are enough, else all."""
    excess: Score
    """What it scores on the arms in front, less what the others' line expects by the arm behind;
    a share, all None with too few others."""
    p_value: float | None
    """One-sided, that there is no excess; None with too few others."""
    p_adjusted: float | None
    """For all targets together (Holm 1979)."""
    exceeds: bool
    """p_adjusted is at most 0.05: it loses more than the others do."""
    unlike: tuple[str, ...]
    """Why a harder arm cannot be ruled out, a sentence each; empty if the others rule it out or
    explain the loss."""


class Decomposition(Value):
    """What one target lost from the original to the updated arm, and to what."""

    target: str
    accuracy: DropParts
    macro_f1: DropParts
    noise: float | None
    """Share of new texts whose label may be wrong, at most; None where nobody judged."""
    verdict: Verdict
    """By accuracy, whose noise bound is exact."""
    reasons: tuple[str, ...]
    """Sentences with the numbers."""
    checks: dict[MemoryKind, LossCheck]
    level: float = LEVEL
    draws: int
    seed: int
