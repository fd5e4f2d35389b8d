"""Worlds of PCR: clean models under gaps in difficulty, refusals and documents; planted memory.

Items differ in how hard they are, alike for all models; models differ in ability, in what is hard
for them alone, and in how often they repeat a mistake. An answer to an item and that to its
modified version share both, so that right and wrong answers persist.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from benchmarks.verdicts import World
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.study import PcrSettings, study
from coreeval.evaluation.statistics import Array

DRAWS: Final = 200
SPLITS: Final = ("train", "test")
FIVE: Final = (0.35, 0.45, 0.55, 0.65, 0.75)
"""How often each of five references is right on the training split."""
HARD, OWN, LUCK = 1.0, 0.7, 0.7
"""Standard deviations of how hard items are, of how hard they are for one model alone, and of the
luck of one answer."""
SPREAD: Final = float(np.sqrt(HARD**2 + OWN**2 + LUCK**2))
MEMORY: Final = frozenset({"fine_tuned", "contaminated"})
OPEN: Final = frozenset({"inconclusive", "insufficient_signal", "difficulty_or_memory"})


@dataclass(frozen=True, kw_only=True)
class Population:
    """What a study draws from."""

    n: int = 500
    """Items of each split."""
    ability: float | None = 0.5
    """How often the model is right; None: drawn from 0.3 to 0.9, anew for each study."""
    gap: float = 0.0
    """Points by which the test split is easier to a model that is right half of the time."""
    references: Sequence[float] = ()
    """Their abilities."""
    scatter: float = 0.0
    """Standard deviation over models of what else makes a split easier for one, in points."""
    known: Mapping[str, float] = field(default_factory=dict)
    """Share of a split that the model knows by heart."""
    refused: Mapping[str, float] = field(default_factory=dict)
    """Share of a split's items that it refuses."""
    questions: int = 1
    """About each document; then half of what makes an item hard is its document."""
    vouched: bool = False


@dataclass(frozen=True)
class Items:
    """The items of both splits, the training split first."""

    hard: Array
    document: Sequence[str]


def judge_population(population: Population, seed: int) -> str:
    """Make one study, and return its verdict."""
    rng = np.random.default_rng(seed)
    items = draw_items(population, rng)
    ability = rng.uniform(0.3, 0.9) if population.ability is None else population.ability
    answers = [
        list(answer(population, items, own, rng, model=number))
        for number, own in enumerate([ability, *population.references])
    ]
    settings = PcrSettings(
        metric="exact_match",
        consistency="exact",
        draws=DRAWS,
        seed=seed,
        exchangeable=population.vouched,
    )
    references = {f"reference {number}": each for number, each in enumerate(answers[1:])}
    return study({"model": answers[0]}, settings, references=references)["model"].verdict


def draw_items(population: Population, rng: np.random.Generator) -> Items:
    """Draw how hard items are: alike in both splits, but for the gap."""
    n, size = population.n, population.questions
    number = np.arange(2 * n) // size
    shared = np.sqrt(0.5) if size > 1 else 0.0
    hard = HARD * np.sqrt(1 - shared**2) * rng.standard_normal(2 * n)
    hard += HARD * shared * rng.standard_normal(int(number.max()) + 1)[number]
    hard[n:] -= SPREAD * ndtri(0.5 + population.gap / 100)
    return Items(hard, [f"document {each}" for each in number] if size > 1 else [])


def answer(
    population: Population, items: Items, ability: float, rng: np.random.Generator, *, model: int
) -> Iterator[Pair]:
    """Yield what one model says; the first, number 0, is the one that is judged."""
    n = population.n
    extra = SPREAD * ndtri(0.5 + population.scatter / 100) * rng.standard_normal()
    split = np.repeat([1.0, -1.0], n) / 2
    level = SPREAD * ndtri(ability) - items.hard + split * extra
    level += OWN * rng.standard_normal(2 * n)
    right = level + LUCK * rng.standard_normal((2, 2 * n)) > 0
    repeats = rng.random(2 * n) < rng.uniform(0.5, 0.8)
    known, refused = (
        rng.random(2 * n) < np.repeat([shares.get(each, 0.0) for each in SPLITS], n) * (not model)
        for shares in (population.known, population.refused)
    )
    for place in range(2 * n):
        wrong = ("n", "n" if repeats[place] else "m")
        said = [
            "" if refused[place] else "y" if right[way, place] or known[place] else wrong[way]
            for way in (0, 1)
        ]
        yield Pair(
            split=SPLITS[place // n],
            id=str(place),
            reference="y",
            original_output=said[0],
            modified_output=said[1],
            original_status="refused" if refused[place] else "answered",
            modified_status="refused" if refused[place] else "answered",
            cluster=items.document[place] if items.document else None,
        )


# -- the worlds -----------------------------------------------------------------------------------


def clean(name: str, population: Population) -> World:
    """Return a world without memory."""
    study_of = partial(judge_population, population)
    return World(detector="pcr", name=name, study=study_of, false=MEMORY, withheld=OPEN)


def planted(
    name: str,
    right: str,
    population: Population,
    *,
    before: float | None = None,
    headline: str = "",
) -> World:
    """Return a world with memory, whose verdict is right; `comparable` is as wrong as its reverse.

    `before` is the share of studies in which version 0.1.0 gave that verdict.
    """
    return World(
        detector="pcr",
        name=name,
        study=partial(judge_population, population),
        false=(MEMORY | {"comparable"}) - {right},
        found=frozenset({right}),
        withheld=OPEN,
        before=before,
        headline=headline,
    )


GAPS: Final = (0, 4, 8, 16, -4, -8, -16)
ABLER: Final = (0.6, 0.65, 0.7, 0.75, 0.8)
KNOWN = Population(known={"train": 0.25})
LEAKED = Population(known={"test": 0.25})
REFUSED = Population(refused={"train": 0.1})
VOUCHED = replace(LEAKED, vouched=True)
WORLDS: Sequence[World] = (
    *(
        clean(f"clean, gap {gap}, five references", Population(gap=gap, references=FIVE))
        for gap in GAPS
    ),
    *(clean(f"clean, gap {gap}, no references", Population(gap=gap)) for gap in (8, -16)),
    clean("clean, exchangeable splits", Population(ability=None, vouched=True)),
    clean("clean, gap 16, abilities mixed", Population(gap=16, ability=None, references=FIVE)),
    clean(
        "clean, gap 16, abler than its references",
        Population(gap=16, ability=0.95, references=FIVE),
    ),
    clean(
        "clean, gap -16, weaker than its references",
        Population(gap=-16, ability=0.3, references=ABLER),
    ),
    clean(
        "clean, gap 8, models scatter by 4 points",
        Population(gap=8, scatter=4, references=FIVE),
    ),
    clean("clean, gap 16, three references", Population(gap=16, references=FIVE[1:4])),
    clean("10 % of train refused, exchangeable", replace(REFUSED, vouched=True)),
    clean("10 % of train refused, five references", replace(REFUSED, references=FIVE)),
    clean("five questions of each document, exchangeable", Population(questions=5, vouched=True)),
    planted("a quarter of train, five references", "fine_tuned", replace(KNOWN, references=FIVE)),
    planted(
        "a quarter of test, five references",
        "contaminated",
        replace(LEAKED, references=FIVE),
        headline="pcr",
    ),
    planted(
        "a quarter of test, gap 8, five references",
        "contaminated",
        replace(LEAKED, gap=8, references=FIVE),
    ),
    planted(
        "a quarter of train, exchangeable",
        "fine_tuned",
        replace(KNOWN, vouched=True),
        before=0.26,
    ),
    planted("a quarter of test, exchangeable", "contaminated", VOUCHED, before=0.28),
    planted(
        "a quarter of test, exchangeable, M 0.3",
        "contaminated",
        replace(VOUCHED, ability=0.3),
        before=0.89,
    ),
    planted(
        "a quarter of test, exchangeable, M 0.83",
        "contaminated",
        replace(VOUCHED, ability=0.83),
        before=0.01,
    ),
    World(
        detector="pcr",
        name="clean, exchangeable, 4000 items a split",
        study=partial(judge_population, Population(n=4000, vouched=True)),
        false=MEMORY,
        found=frozenset({"comparable"}),
        withheld=OPEN,
        before=0.60,
    ),
)
