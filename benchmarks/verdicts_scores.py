"""Worlds of membership and exchangeability: who has read the originals, and what confounds it.

Each study makes scores, not texts: of a sample's four texts with the same ease, or of the orders of
shards. They are judged as `coreeval detect membership` and `exchangeability` do. Scores of real
weights are in `benchmarks/whitebox.py`.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Final, get_args

from benchmarks.verdicts import World
from coreeval.evaluation.whitebox.exchangeability import ShardFinding, judge_shards
from coreeval.evaluation.whitebox.membership import judge_membership
from coreeval.evaluation.whitebox.membership_reference import ReferenceScores
from coreeval.evaluation.whitebox.membership_texts import (
    MembershipItem,
)
from coreeval.schema import Arm
from coreeval.tools.text_scores import TextScores

EASE, LUCK = 1.0, 0.5
"""Standard deviations of a score between samples, and between the texts of one (as Min-K% of
SmolLM2-135M on the demo's tweets has them, to the nearest half)."""
ARMS: Final[Sequence[Arm]] = get_args(Arm)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """How the reference of a study differs from its model."""

    scale: float = 1.0
    """What its scores are wide beside the model's: ease, luck and shifts."""
    shared: float = 0.5
    """The share of the variance of luck that it has in common with the model (own choice)."""
    shifts: Mapping[Arm, float] | None = None
    """How much higher the texts of an arm score, before scaling; None for as with the model."""
    read: bool = False
    """Whether it has read the originals that the model has."""


def study_membership(
    seed: int,
    samples: int,
    shifts: Mapping[Arm, float],
    read: float,
    gain: float,
    cluster: int = 1,
    reference: Reference | None = None,
) -> str:
    """Return the verdict on a model that has read a share of the originals.

    Args:
        seed: The seed of the study.
        samples: The number of samples.
        shifts: How much higher the texts of an arm score, whoever reads them.
        read: The share of originals that were read.
        gain: How much higher these score.
        cluster: Samples that share their ease and luck.
        reference: A model that is scored beside.
    """
    chance, other, known = random.Random(seed), random.Random(f"reference {seed}"), False
    items, scores, beside = list[MembershipItem](), dict[str, TextScores](), dict[str, TextScores]()
    lucks, theirs, ease = dict[Arm, float](), dict[Arm, float](), 0.0
    given = reference or Reference()
    moved = shifts if given.shifts is None else given.shifts
    for at in range(samples):
        item = MembershipItem(
            id=str(at), texts=dict.fromkeys(ARMS, "text"), cluster=str(at // cluster)
        )
        items.append(item)
        if at % cluster == 0:
            ease = chance.gauss(-8, EASE)
            lucks = {arm: ease + chance.gauss(0, LUCK) for arm in ARMS}
            known = chance.random() < read
            theirs = {
                arm: sqrt(given.shared) * (luck - ease)
                + sqrt(1 - given.shared) * other.gauss(0, LUCK)
                for arm, luck in lucks.items()
            }
        for arm in ARMS:
            memory = gain * (known and arm == "original")
            value = lucks[arm] + shifts.get(arm, 0.0) + memory
            scores[f"alone:{arm}:{at}"] = TextScores(logprobs=(min(value, 0.0),))
            value = ease + theirs[arm] + moved.get(arm, 0.0) + memory * given.read
            beside[f"alone:{arm}:{at}"] = TextScores(logprobs=(min(given.scale * value, 0.0),))
    found = ReferenceScores(name="reference", scores=beside) if reference else None
    return judge_membership(items, scores, reference=found).verdict


def study_exchangeability(
    seed: int, shards: int, shuffles: int, read: float, gain: float, order: float = 0.0
) -> str:
    """Return the verdict on a model that has read a share of the shards.

    Args:
        seed: The seed of the study.
        shards: The number of shards.
        shuffles: Random orders of each.
        read: The share of shards that were read.
        gain: How much more probable their published order is, in standard deviations of orders.
        order: The same of every shard, because its texts are sorted.
    """
    chance = random.Random(seed)
    found = [
        ShardFinding(
            texts=10,
            published=chance.gauss(order + gain * (chance.random() < read), 1),
            others=tuple(chance.gauss(0, 1) for _ in range(shuffles)),
        )
        for _ in range(shards)
    ]
    return judge_shards(found, 10 * shards).verdict


def _member_world(
    name: str,
    samples: int,
    *,
    shifts: Mapping[Arm, float] | None = None,
    read: float = 0.0,
    gain: float = 0.0,
    cluster: int = 1,
    headline: str = "",
    reference: Reference | None = None,
) -> World:
    return World(
        detector="membership_reference" if reference else "membership",
        name=f"{name} ({samples} samples)",
        study=partial(
            study_membership,
            samples=samples,
            shifts=shifts or {},
            read=read,
            gain=gain,
            cluster=cluster,
            reference=reference,
        ),
        false=frozenset() if read else frozenset({"member"}),
        found=frozenset({"member"}) if read else frozenset(),
        withheld=frozenset({"shifted", "no_control", "too_few"}),
        headline=headline,
    )


def _order_world(
    name: str,
    shards: int,
    shuffles: int,
    *,
    read: float = 0.0,
    gain: float = 0.0,
    order: float = 0.0,
    headline: str = "",
) -> World:
    return World(
        detector="exchangeability",
        name=f"{name} ({shards} shards, {shuffles} shuffles)",
        study=partial(
            study_exchangeability,
            shards=shards,
            shuffles=shuffles,
            read=read,
            gain=gain,
            order=order,
        ),
        false=frozenset() if read else frozenset({"ordered"}),
        found=frozenset({"ordered"}) if read else frozenset(),
        withheld=frozenset({"too_few"}),
        headline=headline,
    )


FIRST: Final[Mapping[Arm, float]] = {"semantic": -0.3, "control": -0.3, "updated": -0.3}
"""The first rewriting makes texts less probable by 0.3, a second one does not."""
EACH: Final[Mapping[Arm, float]] = {"semantic": -0.3, "control": -0.6, "updated": -0.6}
BOTH: Final[Mapping[Arm, float]] = {"semantic": -0.6, "control": -0.9, "updated": -0.9}
"""Each rewriting costs 0.3, and the first another 0.3."""
WORLDS: Final = (
    _member_world("nothing is read, arms are alike", 100),
    _member_world("nothing is read, arms are alike", 50),
    _member_world("nothing is read, ten samples to a cluster", 300, cluster=10),
    _member_world("each rewriting makes texts less probable by 0.3", 100,
                  shifts={"semantic": -0.3, "control": -0.6, "updated": -0.6}),
    _member_world("newer facts are less probable by 0.3", 100, shifts={"updated": -0.3}),
    _member_world("rewording alone makes texts less probable by 0.1", 100,
                  shifts={"semantic": -0.1, "control": -0.1, "updated": -0.1}),
    _member_world("rewording alone makes texts less probable by 0.3", 100,
                  shifts={"semantic": -0.3, "control": -0.3, "updated": -0.3}),
    _member_world("rewording makes texts more probable by 0.3", 100,
                  shifts={"semantic": 0.3, "control": 0.3, "updated": 0.3}),
    _member_world("all originals read, 0.3 more probable", 100, read=1.0, gain=0.3,
                  headline="membership"),
    _member_world("a quarter read, 1 more probable", 100, read=0.25, gain=1.0),
    _member_world("a quarter read, 1 more probable", 300, read=0.25, gain=1.0),
    _member_world("a quarter read, each rewriting costs 0.3", 300, read=0.25, gain=1.0,
                  shifts={"semantic": -0.3, "control": -0.6, "updated": -0.6}),
    _member_world("nothing is read, arms are alike", 100, reference=Reference()),
    _member_world("nothing is read, ten samples to a cluster", 300, cluster=10,
                  reference=Reference()),
    _member_world("the first rewriting costs 0.3", 100, shifts=FIRST, reference=Reference()),
    _member_world("the first rewriting costs 0.3", 300, shifts=FIRST, reference=Reference()),
    _member_world("the first rewriting costs 0.3, the reference's scores are three times as wide",
                  300, shifts=FIRST, reference=Reference(scale=3.0)),
    _member_world("the first rewriting costs 0.3, the reference's luck is its own", 300,
                  shifts=FIRST, reference=Reference(shared=0.0)),
    _member_world("the first rewriting costs 0.3 more, and each 0.3, which the reference does not "
                  "mind", 300, shifts=BOTH, reference=Reference(shifts=FIRST)),
    _member_world("the first rewriting costs 0.3, and the reference 0.15", 100, shifts=FIRST,
                  reference=Reference(shifts={arm: by / 2 for arm, by in FIRST.items()})),
    _member_world("all originals read, 0.3 more probable", 100, read=1.0, gain=0.3,
                  reference=Reference()),
    _member_world("a quarter read, 1 more probable", 300, read=0.25, gain=1.0,
                  reference=Reference()),
    _member_world("a quarter read, 1 more probable, the reference's scores are three times as "
                  "wide, its luck is its own", 300, read=0.25, gain=1.0,
                  reference=Reference(scale=3.0, shared=0.0)),
    _member_world("a quarter read, the first rewriting costs 0.3", 300, read=0.25, gain=1.0,
                  shifts=FIRST, reference=Reference()),
    _member_world("a quarter read, by the reference too", 300, read=0.25, gain=1.0,
                  reference=Reference(read=True)),
    _order_world("nothing is read", 20, 19),
    _order_world("nothing is read", 5, 9),
    _order_world("nothing is read", 2, 99),
    _order_world("sorted texts: the published order is half a deviation more probable", 20, 19,
                 order=0.5),
    _order_world("all shards read, 1 deviation more probable", 20, 19, read=1.0, gain=1.0,
                 headline="exchangeability"),
    _order_world("a quarter of the shards read, 2 deviations more probable", 20, 19, read=0.25,
                 gain=2.0),
    _order_world("a quarter of the shards read, 2 deviations more probable", 60, 19, read=0.25,
                 gain=2.0),
)  # fmt: skip
