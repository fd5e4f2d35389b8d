"""Which samples are rated, in which arm: by lot, so that only the text can tell the arm.

A block is two or three samples of one label, each of which has the same arms; each is shown in
another one of them, by lot. What stands beside a text (label, evidence) belongs to its sample, and
which of its texts is shown does not depend on it. Arms are so compared as in a randomised trial:
on other samples, of the same labels, of the same pool.
"""

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from coreeval.schema import Value

RatedArm = Literal["original", "semantic", "updated"]
ARMS: Final[tuple[RatedArm, ...]] = ("original", "semantic", "updated")
T = TypeVar("T")


class Excerpt(Value):
    """A piece of news on what a sample is about."""

    published_at: str
    domain: str
    url: str
    snippet: str
    """Empty where it may not be quoted."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A sample that could be rated: it has an updated text, and so all beside it."""

    sample: str
    label: str
    meaning: str
    question: str
    """What the label answers."""
    texts: dict[RatedArm, dict[str, str]]
    """Its texts by arm, by field."""
    evidence: tuple[Excerpt, ...]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A sample that is rated, in one of its arms, under a name that tells neither."""

    item: str
    arm: RatedArm
    candidate: Candidate


def draw(candidates: Sequence[Candidate], *, blocks: int, seed: int) -> tuple[str, list[Drawn]]:
    """Draw blocks in proportion to the labels; return the study's name and its items in order.

    Args:
        candidates: Each has an original and an updated text; some have a semantic one.
        blocks: Originals that are wanted, and as many updated texts; fewer if there are not enough.
        seed: Of all that is left to chance.
    """
    rng = random.Random(seed)
    made = list(_blocks(candidates, rng))
    chosen = [pair for block in _spread(made, blocks, rng) for pair in block]
    rng.shuffle(chosen)
    study = _name(chosen, seed)
    return study, [
        Drawn(item=f"{study}-{n:03d}", arm=arm, candidate=candidate)
        for n, (arm, candidate) in enumerate(chosen, start=1)
    ]


def _blocks(
    candidates: Sequence[Candidate], rng: random.Random
) -> Iterator[list[tuple[RatedArm, Candidate]]]:
    """Yield the pool in blocks: neighbours in a random order of the samples of each label.

    Those with all three arms come first; one or two of them that make no block go with the others.
    One of a label that is left over then is in none.
    """
    left = rng.sample(candidates, len(candidates))
    for arms in (ARMS, ("original", "updated")):
        for pool in _by_label(each for each in left if _has(each, arms)):
            whole = pool[: len(pool) - len(pool) % len(arms)]
            used = {each.sample for each in whole}
            left = [each for each in left if each.sample not in used]
            for start in range(0, len(whole), len(arms)):
                yield list(zip(rng.sample(arms, len(arms)), whole[start:], strict=False))


def _by_label(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Return the samples of each label, in the order of labels."""
    found = defaultdict[str, list[Candidate]](list)
    for each in candidates:
        found[each.label].append(each)
    return [found[label] for label in sorted(found)]


def _has(candidate: Candidate, arms: Sequence[RatedArm]) -> bool:
    return all(arm in candidate.texts for arm in arms)


def _spread(items: Sequence[T], wanted: int, rng: random.Random) -> list[T]:
    """Return items at equal distances from a random start (systematic sampling)."""
    if wanted >= len(items):
        return list(items)
    step = len(items) / wanted
    start = rng.random() * step
    return [items[min(int(start + n * step), len(items) - 1)] for n in range(wanted)]


def _name(chosen: Sequence[tuple[RatedArm, Candidate]], seed: int) -> str:
    """Return six signs that tell a study from another."""
    told = f"{seed} " + " ".join(f"{candidate.sample}:{arm}" for arm, candidate in chosen)
    return hashlib.sha256(told.encode()).hexdigest()[:6]


def order_for(rater: str, items: Sequence[T], *, seed: int) -> list[T]:
    """Return the items in a rater's own order, so that weariness falls on others each time."""
    return random.Random(f"{seed} {rater}").sample(items, len(items))
