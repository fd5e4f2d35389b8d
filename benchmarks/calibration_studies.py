"""Studies of a population, judged as a run judges its targets, and how often that was right."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from benchmarks.calibration_worlds import (
    SHARES,
    Made,
    Planted,
    Population,
    Study,
    answered,
    labels_of,
    scores,
)
from coreeval.evaluation.agreement import compare_targets, measure_standing
from coreeval.evaluation.decomposition import (
    CONTRASTS,
    Decomposition,
    LossCheck,
    TermName,
    decompose,
)
from coreeval.evaluation.decomposition.item_evidence import find_items
from coreeval.evaluation.decomposition.losses import CLAIMS
from coreeval.evaluation.excess import TargetStanding
from coreeval.evaluation.label_scores import Numbers
from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.evaluation.statistics import SIGNIFICANCE

DRAWS: Final = 1000
"""Of each study: enough, since errors of single intervals average out."""
PANEL_DRAWS: Final = 100
"""These only tell how much samples let an excess vary."""
METRICS: Final = ("accuracy", "macro_f1")
COST_SPREAD: Final = 0.02
"""How much the share of right answers that a rewriting costs differs between targets of a panel."""
ALIKE: Final = LossCheck(
    no_label=None,
    others=(),
    excess=NO_SCORE,
    p_value=0.0,
    p_adjusted=0.0,
    exceeds=True,
    unlike=(),
)
"""Lists of single samples are made of arms that are alike, by construction."""
Truths = Mapping[str, Mapping[TermName, float]]
"""For each metric what is lost to each term."""


class Rate(NamedTuple):
    """How often something happened."""

    times: int
    of: int

    @property
    def share(self) -> float:
        """Return times out of all; nan of none."""
        return self.times / self.of if self.of else float("nan")


Rates = Mapping[str, Rate]


class Tally:
    """Counts of what happened in studies."""

    def __init__(self) -> None:
        self._seen: dict[str, list[bool]] = defaultdict(list)

    def note(self, what: str, happened: object) -> None:
        """Count whether something happened in one study."""
        self._seen[what].append(bool(happened))

    def rates(self) -> Rates:
        """Return how often each happened."""
        return {what: Rate(sum(each), len(each)) for what, each in self._seen.items()}


def truths_of(population: Population) -> Truths:
    """Return what a population of endless size loses to each term."""
    found = {arm: scores(joint) for arm, joint in population.joints.items()}
    return {
        metric: {
            name: sum(weight * found[arm][metric] for arm, weight in contrast.items())
            for name, contrast in CONTRASTS.items()
        }
        for metric in METRICS
    }


def decomposed(population: Population, n: int, studies: int, seed: int) -> Rates:
    """Return how often the decomposition's intervals, tests and verdict were right.

    `holds METRIC TERM`: the interval has the truth; `shown METRIC TERM`: p is at most 0.05;
    `remembered`: more is lost than rewriting and label noise explain, which is memory if no harder
    arm explains it (benchmarks/verdicts_drop.py).
    """
    tally, truths = Tally(), truths_of(population)
    noise = population.planted.mislabelled or None
    for number in range(studies):
        rng = np.random.default_rng([seed, n, number])
        coded = population.study(n, rng).coded
        found = decompose(coded, noise=noise, seed=number, draws=DRAWS)
        _note_terms(tally, found, truths)
        tally.note("remembered", found.verdict in {"remembered", "arms_differ"})
    return tally.rates()


def _note_terms(tally: Tally, found: Decomposition, truths: Truths) -> None:
    for metric in METRICS:
        for name, term in getattr(found, metric).terms.items():
            tally.note(f"holds {metric} {name}", _holds(term.lost, truths[metric][name]))
            tally.note(f"shown {metric} {name}", term.p_value <= SIGNIFICANCE)


def _holds(score: Score, truth: float) -> bool:
    if score.ci_low is None or score.ci_high is None:
        return False
    return score.ci_low - 1e-12 <= truth <= score.ci_high + 1e-12


class Listed(NamedTuple):
    """How lists of single samples turned out, the mean over studies."""

    false: float
    """Share of those flagged that are not remembered; 0 of an empty list."""
    found: float
    """Share of those remembered that are flagged; nan where none is."""
    some: Rate
    """Studies in which a sample was flagged."""


def listed(population: Population, kind: str, n: int, studies: int, seed: int) -> Listed:
    """Return how single samples were flagged; `kind` is what is remembered."""
    studies_of = (np.random.default_rng([seed, n, number]) for number in range(studies))
    rows = [_flags(population.study(n, rng), kind) for rng in studies_of]
    false, found, some = np.array(rows).T
    planted = population.planted.words or population.planted.facts
    return Listed(
        false=float(false.mean()),
        found=float(found.mean()) if planted else np.nan,
        some=Rate(int(some.sum()), studies),
    )


def _flags(study: Study, kind: str) -> tuple[float, float, float]:
    found = find_items(study.coded, dict.fromkeys(CLAIMS, ALIKE)).found
    flagged = found.kinds["wording" if kind == "words" else "facts"].ids
    known = study.words if kind == "words" else study.facts
    places: Numbers = np.array([int(each) for each in flagged], np.int64)
    hits = int(known[places].sum())
    false = 1 - hits / len(places) if len(places) else 0.0
    return false, hits / max(1, int(known.sum())), float(len(places) > 0)


def compared(targets: int, planted: Planted, n: int, studies: int, seed: int) -> Rates:
    """Return how often a panel is right in which the first target remembers, or nobody does.

    `any`: a target that does not remember stands out; `found`: the first does; `holds`: its
    interval has what it gains by remembering.
    """
    tally = Tally()
    for number in range(studies):
        rng = np.random.default_rng([seed, n, targets, number])
        standings, gain = _panel_of(targets, planted, n, rng)
        first, *others = compare_targets(standings).targets
        clean = others if planted.words else [first, *others]
        tally.note("any", any(each.stands_out for each in clean))
        tally.note("found", first.stands_out)
        tally.note("holds", _holds(first.excess, gain))
    return tally.rates()


def _panel_of(
    targets: int, planted: Planted, n: int, rng: np.random.Generator
) -> tuple[list[TargetStanding], float]:
    """Let targets of several abilities answer the same samples; also return the first's gain."""
    due, ease = labels_of(n, rng), rng.random(n)
    made = [
        _one_of_panel(planted._replace(words=0) if at else planted, rng) for at in range(targets)
    ]
    seen = [
        {"words": rng.random(n) < each.planted.words, "facts": np.zeros(n, bool)} for each in made
    ]
    answers = [
        answered(*each, rng).coded
        for each in zip(made, [due] * targets, [ease] * targets, seen, strict=True)
    ]
    found = [measure_standing(each, draws=PANEL_DRAWS) for each in answers]
    return [each for each in found if each], _gain(made[0])


def _one_of_panel(planted: Planted, rng: np.random.Generator) -> Made:
    known = np.clip(rng.uniform(0.35, 0.9) + rng.normal(0, 0.05, len(SHARES)), 0.1, 0.95)
    cost = max(0.0, planted.rewriting + rng.normal(0, COST_SPREAD))
    own = planted._replace(rewriting=cost)
    return Made(own, known=tuple(known), arms=("original", "updated"))


def _gain(made: Made) -> float:
    """Return what memory adds to the accuracy on the original."""
    without = replace(made, planted=made.planted._replace(words=0))
    first, second = (scores(each.joints["original"])["accuracy"] for each in (made, without))
    return first - second
