"""Studies of a run with several targets: answers as in `calibration_worlds`, and texts to them.

An original has words of a made language, the common ones more often. A rewording changes two words
of five, and so does each rewriting of what it made. Texts that are visibly harder have rarer words
where they were changed, and a quarter more of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from benchmarks.calibration_worlds import (
    LABELS,
    REMEMBERING,
    SHARES,
    Made,
    Planted,
    coded,
    labels_of,
)
from coreeval.evaluation.answer_codes import AnswerCodes, Way
from coreeval.evaluation.label_scores import FAULTS, Codes, Floats, Numbers
from coreeval.evaluation.scores import ARMS
from coreeval.schema import Arm

TESTED: Final = "tested"
VOCABULARY: Final = 3000
WORDS: Final = 18
CHANGED: Final = 0.4
COST_SPREAD: Final = 0.02
"""How much the share of right answers that a rewriting costs differs between targets."""
UNPARSED: Final = len(LABELS) + FAULTS.index("unparsed")
NOTHING: Final = Planted("")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is true of a study's targets and texts."""

    planted: Planted = NOTHING
    """Of the tested target; what its arms cost they cost the others too, give or take."""
    others: int = 7
    """Targets beside it, which remember nothing."""
    visible: bool = False
    """Whether the updated texts have rarer words, and more of them."""
    prose: float = 0.0
    """Share of the tested target's answers to the updated arm that are prose."""
    n: int = 300
    templates: int = 1
    in_document: int = 1
    """Samples of a document; half of their luck is the document's, in each arm anew."""


class DropStudy(NamedTuple):
    """What a run of a scene knows."""

    answers: tuple[AnswerCodes, ...]
    """Those of the tested target come first."""
    texts: Mapping[Arm, Mapping[str, str]]
    clusters: Mapping[str, str]


def make_study(scene: Scene, seed: int) -> DropStudy:
    """Make the texts of a study and let its targets answer them."""
    rng = np.random.default_rng(seed)
    due, ease = labels_of(scene.n, rng), rng.random(scene.n)
    documents = np.arange(scene.n) // scene.in_document
    if scene.in_document > 1:
        ease = rng.random(scene.n)[documents]
    targets = [
        Made(scene.planted, scene.templates),
        *(_other(scene, rng) for _ in range(scene.others)),
    ]
    answers = [_answers(scene, made, due, ease, documents, rng) for made in targets]
    names = (TESTED, *(f"other {number}" for number in range(scene.others)))
    said = tuple(
        replace(each, target=name, table=replace(each.table, clusters=_clusters(scene, documents)))
        for name, each in zip(names, answers, strict=True)
    )
    keys = said[0].keys
    texts = {arm: dict(zip(keys, made, strict=True)) for arm, made in _texts(scene, rng).items()}
    return DropStudy(said, texts, dict(zip(keys, map(str, documents), strict=True)))


def _clusters(scene: Scene, documents: Numbers) -> Numbers | None:
    return documents if scene.in_document > 1 else None


def _other(scene: Scene, rng: np.random.Generator) -> Made:
    """Return a target of any ability, whom arms cost about as much as the tested one."""
    known = np.clip(rng.uniform(0.35, 0.9) + rng.normal(0, 0.05, len(SHARES)), 0.1, 0.95)

    def near(cost: float) -> float:
        return max(0.0, cost + rng.normal(0, COST_SPREAD)) if cost else 0.0

    own = scene.planted
    costs = own._replace(
        words=0.0,
        facts=0.0,
        rewording=near(own.rewording),
        rewriting=near(own.rewriting),
        harder=near(own.harder),
    )
    return Made(costs, scene.templates, tuple(known))


def _answers(
    scene: Scene,
    made: Made,
    due: Codes,
    ease: Floats,
    documents: Numbers,
    rng: np.random.Generator,
) -> AnswerCodes:
    planted, n = made.planted, scene.n
    seen = {"words": rng.random(n) < planted.words, "facts": rng.random(n) < planted.facts}
    own = rng.random(n)
    ways: tuple[Way, ...] = tuple((arm, at) for arm in ARMS for at in range(scene.templates))
    said = []
    for arm in ARMS:
        helped = np.zeros(n, np.bool_)
        for kind in seen:
            helped |= seen[kind] & (arm in REMEMBERING[kind])
        luck = own if scene.in_document == 1 else rng.random(n)[documents]
        for _ in range(scene.templates):
            codes = made.answer(arm, due, ease, luck, helped, rng)
            if arm == "updated" and planted is scene.planted:
                codes = np.where(rng.random(n) < scene.prose, UNPARSED, codes)
            said.append(codes)
    return coded(due, np.column_stack(said), ways)


@cache
def _vocabulary() -> tuple[Sequence[str], Floats, Floats]:
    """Return made words, and how common each is in plain and in hard texts."""
    rng = np.random.default_rng(1)
    syllables = ["".join(pair) for pair in zip("bcdfglmnprst" * 5, "aeiou" * 12, strict=True)]
    made = ["".join(rng.choice(syllables, rng.integers(1, 5))) for _ in range(VOCABULARY)]
    plain, hard = (1 / (np.arange(VOCABULARY) + from_) for from_ in (5, 300))
    return made, np.cumsum(plain / plain.sum()), np.cumsum(hard / hard.sum())


def _texts(scene: Scene, rng: np.random.Generator) -> dict[Arm, list[str]]:
    made, plain, hard = _vocabulary()
    lengths = 4 + rng.poisson(WORDS - 4, scene.n)
    ends = np.cumsum(lengths)[:-1]
    original = np.searchsorted(plain, rng.random(int(lengths.sum())))

    def changed(words: Numbers, common: Floats) -> Numbers:
        new = np.searchsorted(common, rng.random(len(words)))
        return np.where(rng.random(len(words)) < CHANGED, new, words)

    semantic = changed(original, plain)
    arms: dict[Arm, Numbers] = {
        "original": original,
        "semantic": semantic,
        "updated": changed(semantic, hard if scene.visible else plain),
        "control": changed(semantic, plain),
    }
    found: dict[Arm, list[str]] = {}
    for arm, words in arms.items():
        longer = scene.visible and arm == "updated"
        found[arm] = [
            " ".join(made[word] for word in (*own, *own[: len(own) // 4 * longer])) + "."
            for own in np.split(np.minimum(words, VOCABULARY - 1), ends)
        ]
    return found
