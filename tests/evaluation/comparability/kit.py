"""Texts of two arms whose differences are known, and what they rest on."""

from collections.abc import Callable, Sequence

import numpy as np

from coreeval.evaluation.comparability.measure import (
    ArmPairs,
    SampleEvidence,
    TextPair,
    measure_comparability,
)
from coreeval.evaluation.comparability.verdict import Comparability, Measure
from coreeval.schema import Rung

STARTS = ("ba", "ke", "lo", "mi", "nu", "pra", "sto", "ter")
WORDS = [f"{start}{end}" for start in STARTS for end in ("ring", "man", "ter", "ley")]


def text(words: int, chance: np.random.Generator, *, sentence: int = 12) -> str:
    """Return sentences of so many made-up words in all."""
    drawn = [str(each) for each in chance.choice(WORDS, words)]
    parts = [drawn[start : start + sentence] for start in range(0, words, sentence)]
    return " ".join(f"{' '.join(part).capitalize()}." for part in parts)


def pairs(
    n: int, ratio: float = 1.0, *, seed: int = 3, change: Callable[[str], str] = str
) -> list[TextPair]:
    """Return premises of about 45 words, updated ones of `ratio` as many, and hypotheses of 7."""
    chance = np.random.default_rng(seed)
    made = []
    for number in range(n):
        long = int(chance.integers(35, 56))
        short = max(3, round(long * ratio * chance.uniform(0.9, 1.1)))
        made.append(
            TextPair(
                {"premise": text(long, chance), "hypothesis": text(7, chance)},
                {"premise": change(text(short, chance)), "hypothesis": change(text(7, chance))},
                str(number),
            )
        )
    return made


def cites(
    n: int, *, samples_each: int = 1, rung: Rung = "named", depth: str = "article"
) -> list[SampleEvidence]:
    """Return the evidence of samples of which so many rest on each event."""
    return [
        SampleEvidence(rung, frozenset((f"event {number // samples_each}",)), depth, str(number))
        for number in range(n)
    ]


def compared(
    texts: Sequence[TextPair], evidence: Sequence[SampleEvidence] | None = None
) -> Comparability:
    """Compare both arms, with evidence of which nothing is odd unless it is given."""
    rests = cites(len(texts)) if evidence is None else evidence
    return measure_comparability(ArmPairs(texts=texts, evidence=rests))


def measure(found: Comparability, name: str, part: str = "") -> Measure:
    """Return a measure that must be there."""
    one = found.find(name, part)
    assert one is not None
    return one
