"""Worlds of recitation: who can say the originals, who guesses well, and what confounds it.

Each study makes samples of random words with a reworded twin, asks a target for the rest of each
text, and judges its answers as `coreeval detect recitation` does.
"""

import random
from collections.abc import Sequence
from functools import partial
from typing import Final

from benchmarks.verdicts import World
from coreeval.evaluation.recitation import RecitationItem, choose_items, judge_recitation
from coreeval.schema import AnswerKind, Arm

VOCABULARY: Final = tuple(f"word{number}" for number in range(400))
LENGTHS: Final = range(14, 30)
"""Words of a text, as tweets have."""
SLIP: Final = 0.1
"""Share of the words of a recited text that are said wrong."""
FALSE: Final = frozenset({"recites"})
FOUND: Final = frozenset({"recites"})
OPEN: Final = frozenset({"too_few", "refusing"})


def make_items(samples: int, chance: random.Random) -> list[RecitationItem]:
    """Return samples with a reworded twin, each of random words."""
    arms: tuple[Arm, ...] = ("original", "semantic")
    texts = (
        {arm: {"text": " ".join(chance.choices(VOCABULARY, k=chance.choice(LENGTHS)))}
         for arm in arms}
        for _ in range(samples)
    )  # fmt: skip
    return choose_items([(str(n), each) for n, each in enumerate(texts)], seed=0)


def study(
    seed: int,
    samples: int,
    original: float,
    twin: float,
    slip: float = SLIP,
    refused: float = 0.0,
    before: int = 0,
) -> str:
    """Return the verdict on a target that recites a share of the originals and of the twins.

    It says `before` words of its own before each answer.
    """
    chance = random.Random(seed)
    items = make_items(samples, chance)
    shares: dict[Arm, float] = {"original": original, "semantic": twin}
    said = dict[tuple[str, Arm], tuple[AnswerKind, str]]()
    for item in items:
        for arm, text in item.texts.items():
            if chance.random() < refused:
                said[item.id, arm] = ("refused", "")
                continue
            words = text.rest.split()
            known = chance.random() < shares[arm]
            answer = words if known else chance.choices(VOCABULARY, k=len(words))
            own = chance.choices(VOCABULARY, k=before)
            said[item.id, arm] = ("answered", " ".join([*own, *_slip(answer, slip, chance)]))
    return judge_recitation(items, said).verdict


def _slip(words: Sequence[str], share: float, chance: random.Random) -> list[str]:
    return [chance.choice(VOCABULARY) if chance.random() < share else word for word in words]


def _world(
    name: str,
    samples: int,
    original: float,
    twin: float,
    *,
    slip: float = SLIP,
    refused: float = 0.0,
    before: int = 0,
    headline: str = "",
) -> World:
    return World(
        detector="recitation",
        name=f"{name} ({samples} samples)",
        study=partial(
            study,
            samples=samples,
            original=original,
            twin=twin,
            slip=slip,
            refused=refused,
            before=before,
        ),
        false=FALSE if original == twin or twin else frozenset(),
        found=FOUND if original > twin == 0 else frozenset(),
        withheld=OPEN,
        headline=headline,
    )


WORLDS: Final = (
    _world("nothing is recited", 100, 0.0, 0.0),
    _world("a tenth of whatever is asked is completed", 100, 0.1, 0.1),
    _world("a quarter of whatever is asked is completed", 100, 0.25, 0.25),
    _world("a quarter of whatever is asked is completed", 20, 0.25, 0.25),
    _world("a quarter of whatever is asked is completed", 300, 0.25, 0.25),
    _world("nothing is recited, behind a dozen other words", 100, 0.0, 0.0, before=12),
    _world("a quarter of all completed, behind a dozen other words", 100, 0.25, 0.25, before=12),
    _world("a third of the questions is refused", 100, 0.1, 0.1, refused=0.33),
    _world("originals are easier: 6 % of them and 2 % of twins are guessed", 100, 0.06, 0.02),
    _world("a twentieth of the originals recited", 100, 0.05, 0.0),
    _world("a twentieth of the originals recited", 300, 0.05, 0.0),
    _world("a tenth of the originals recited", 100, 0.1, 0.0, headline="recitation"),
    _world("a tenth of the originals, behind a dozen other words", 100, 0.1, 0.0, before=12),
    _world("a quarter of the originals recited", 50, 0.25, 0.0),
    _world("a quarter, with a slip in five words", 100, 0.25, 0.0, slip=0.2),
    _world("a quarter, of which a third is refused", 100, 0.25, 0.0, refused=0.33),
)
