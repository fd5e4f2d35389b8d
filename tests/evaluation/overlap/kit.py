"""Texts for the tests of overlap."""

import random
from collections.abc import Sequence
from functools import cache

from coreeval.evaluation.overlap.search import BenchmarkTexts, TextEntry

QUESTION = "A bond pays ten dollars a year for ever; what is it worth when the rate is 8 %?"
CHINESE = "在完全竞争市场中,厂商总收益曲线的斜率为多少"


def texts(name: str, *found: str, answers: Sequence[str | None] = ()) -> BenchmarkTexts:
    """Return texts with ids such as `a1`."""
    given = [*answers, *[None] * (len(found) - len(answers))]
    entries = (
        TextEntry(f"{name}{number}", text, answer)
        for number, (text, answer) in enumerate(zip(found, given, strict=True), start=1)
    )
    return BenchmarkTexts(name, tuple(entries))


@cache
def unrelated(number: int, *, seed: int = 1) -> tuple[str, ...]:
    """Return texts of made-up words, of which no two are alike."""
    rng = random.Random(seed)
    return tuple(" ".join(_word(rng) for _ in range(12)) for _ in range(number))


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 8)))
