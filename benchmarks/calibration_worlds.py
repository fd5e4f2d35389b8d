"""Populations of made samples of which it is known what is remembered, and studies drawn from them.

A sample has an ease, uniform from 0 to 1, and a label of which a target knows more or less: it is
right on an unseen text with a chance of ease to a power whose mean is that knowledge. Half of its
luck is the sample's own, the same in all arms and templates. Each rewriting takes a share of that
chance; a share of samples is remembered, and on texts that are remembered the target is right as
often as its memory is strong, whatever their ease.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from coreeval.evaluation.answer_codes import AnswerCodes, Way
from coreeval.evaluation.label_scores import AnswerTable, Codes, Floats, Mask
from coreeval.evaluation.scores import ARMS
from coreeval.schema import Arm

LABELS: Final = ("anger", "joy", "optimism", "sadness")
SHARES: Final = (0.39, 0.25, 0.09, 0.27)
"""Of the labels of TweetEval's emotion test split."""
KNOWN: Final = (0.8, 0.75, 0.5, 0.7)
"""How often a target is right on an unseen text, by its label."""
OWN_LUCK: Final = 0.5
REMEMBERING: Final[Mapping[str, tuple[Arm, ...]]] = {
    "words": ("original",),
    "facts": ("original", "semantic", "control"),
}
"""Where memory helps: with the text itself, or wherever the facts are from before the cutoff."""


class Planted(NamedTuple):
    """What is true of a world."""

    name: str
    words: float = 0.0
    """Share of samples whose original is remembered."""
    facts: float = 0.0
    """Share of samples whose facts are known where they are from before the cutoff."""
    strength: float = 1.0
    """How often memory gives the right answer."""
    rewording: float = 0.0
    """Share of right answers that other words cost."""
    rewriting: float = 0.0
    """Share that other facts cost besides."""
    harder: float = 0.0
    """Share that new facts cost besides, in the updated arm alone."""
    mislabelled: float = 0.0
    """Share of reworded and of updated texts with a wrong label."""


class Study(NamedTuple):
    """One study: answers, and which samples are remembered."""

    coded: AnswerCodes
    words: Mask
    facts: Mask


class Population(Protocol):
    """What studies are drawn from."""

    @property
    def planted(self) -> Planted:
        """What is true of it."""
        ...

    @property
    def joints(self) -> Mapping[Arm, Floats]:
        """For each arm the chance of each label (lines) with each answer (columns)."""
        ...

    def study(self, n: int, rng: np.random.Generator) -> Study:
        """Draw n samples and answer them."""
        ...


@dataclass(frozen=True)
class Made:
    """A population of made samples."""

    planted: Planted
    templates: int = 1
    known: tuple[float, ...] = KNOWN
    arms: tuple[Arm, ...] = ARMS

    @property
    def joints(self) -> Mapping[Arm, Floats]:
        """For each arm the chance of each label (lines) with each answer (columns)."""
        return {arm: self._joint(arm) for arm in self.arms}

    def _joint(self, arm: Arm) -> Floats:
        right = np.array(self.known) * self._left(arm)
        for kind, share in (("words", self.planted.words), ("facts", self.planted.facts)):
            if arm in REMEMBERING[kind]:
                right = right + share * self.planted.strength * (1 - right)
        others = (1 - np.eye(len(LABELS))) / (len(LABELS) - 1)
        true, false = (
            right[:, None] * told + (1 - right)[:, None] * (told @ others)
            for told in (np.eye(len(LABELS)), others)
        )
        wrong = self._wrong(arm)
        return np.asarray(np.array(SHARES)[:, None] * ((1 - wrong) * true + wrong * false))

    def study(self, n: int, rng: np.random.Generator) -> Study:
        """Draw n samples and answer them."""
        due = labels_of(n, rng)
        words, facts = (rng.random(n) < share for share in (self.planted.words, self.planted.facts))
        return answered(self, due, rng.random(n), {"words": words, "facts": facts}, rng)

    def _left(self, arm: Arm) -> float:
        planted = self.planted
        lost = {"original": 0.0, "semantic": planted.rewording}
        left = 1 - lost.get(arm, planted.rewording + planted.rewriting)
        return left * (1 - planted.harder) if arm == "updated" else left

    def _wrong(self, arm: Arm) -> float:
        return self.planted.mislabelled if arm in ("semantic", "updated") else 0.0

    def answer(
        self, arm: Arm, due: Codes, ease: Floats, luck: Floats, seen: Mask, rng: np.random.Generator
    ) -> Codes:
        """Return what is said of each sample; `luck` is its own, `seen` where memory helps."""
        power = (1 / np.array(self.known) - 1)[due]
        lot = np.where(rng.random(len(due)) < OWN_LUCK, luck, rng.random(len(due)))
        right = lot < ease**power * self._left(arm)
        right |= seen & (rng.random(len(due)) < self.planted.strength)
        told = np.where(rng.random(len(due)) < self._wrong(arm), _other(due, rng), due)
        return np.asarray(np.where(right, told, _other(told, rng)).astype(np.int16))


def answered(
    made: Made, due: Codes, ease: Floats, seen: Mapping[str, Mask], rng: np.random.Generator
) -> Study:
    """Answer given samples in all ways."""
    luck = rng.random(len(due))
    ways: tuple[Way, ...] = tuple((arm, at) for arm in made.arms for at in range(made.templates))
    said = []
    for arm, _ in ways:
        helped = np.any([seen[kind] for kind in seen if arm in REMEMBERING[kind]], axis=0)
        known = np.broadcast_to(helped, due.shape)
        said.append(made.answer(arm, due, ease, luck, known, rng))
    return Study(coded(due, np.column_stack(said), ways), seen["words"], seen["facts"])


def coded(due: Codes, said: Codes, ways: tuple[Way, ...]) -> AnswerCodes:
    """Return answers as a run has them."""
    table = AnswerTable(due.astype(np.int16), said.astype(np.int16), len(LABELS))
    return AnswerCodes("target", tuple(map(str, range(len(due)))), LABELS, ways, table)


def labels_of(n: int, rng: np.random.Generator) -> Codes:
    """Draw the labels of n samples."""
    return rng.choice(len(SHARES), size=n, p=SHARES).astype(np.int16)


def scores(joint: Floats) -> dict[str, float]:
    """Return the accuracy and the macro-F1 of a whole population."""
    hits = np.diag(joint)
    f1 = 2 * hits / (joint.sum(axis=0) + joint.sum(axis=1))
    return {"accuracy": float(hits.sum()), "macro_f1": float(f1.mean())}


def _other(labels: Codes, rng: np.random.Generator) -> Codes:
    """Return any other label for each, all with equal chances."""
    return np.asarray((labels + rng.integers(1, len(LABELS), len(labels))) % len(LABELS))
