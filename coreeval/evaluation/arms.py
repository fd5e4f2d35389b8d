"""The three arms compared: what each target scores on them, and on the samples that two share.

A target's answers are read once, as a stream, into counts of samples that fared alike; every number
is made from those counts, and only one target is in memory at a time.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from sys import intern
from typing import TypeVar

from coreeval.evaluation.scoring.classification import (
    DRAWS,
    LEVEL,
    Pair,
    Score,
    Triple,
    accuracy,
    accuracy_difference,
    macro_f1,
    macro_f1_difference,
)
from coreeval.schema import Arm, Value

Answer = tuple[Arm, str, str]
"""(arm, id of the sample, answer); an invalid answer is the empty string."""
_Columns = dict[Arm, list[str | None]]
"""A target's answers by arm, in the benchmark's order; None where the arm has not the sample."""
_Row = tuple[str, tuple[str | None, ...]]
"""(label of the benchmark, answer in each arm that the target was asked about)."""
_Key = TypeVar("_Key")

ARMS: tuple[Arm, ...] = ("original", "semantic", "updated")
COMPARISONS: tuple[tuple[Arm, Arm], ...] = (
    ("original", "semantic"),
    ("semantic", "updated"),
    ("original", "updated"),
)
"""What is lost by rewording (surface memory), by new facts (knowledge), and by both."""
DEFINITIONS = {
    "accuracy": "share of right answers, invalid ones being wrong; Wilson score interval",
    "macro_f1": "mean of the F1 of each label of the task, 0 for a label neither given nor due; "
    "percentile bootstrap over samples",
    "difference": "second arm minus first on the samples both have (negative: the score drops); "
    "percentile bootstrap over samples, the two answers of a sample kept together",
    "invalid": "answers that were refused, truncated or no label of the task",
}


class ArmScore(Value):
    """How a target did on some samples of one arm."""

    arm: Arm
    accuracy: Score
    macro_f1: Score
    invalid: int


class LabelCoverage(Value):
    """How many of a label's samples both arms have, of how many in the benchmark."""

    label: str
    shared: int
    total: int


class Comparison(Value):
    """Two arms on the samples that both have."""

    first: ArmScore
    second: ArmScore
    accuracy_difference: Score
    macro_f1_difference: Score
    coverage: tuple[LabelCoverage, ...]


class ArmScores(Value):
    """The arms each on all its samples, then in pairs on shared ones."""

    arms: tuple[ArmScore, ...]
    comparisons: tuple[Comparison, ...]


class TargetScores(Value):
    """One target, with and without the samples whose own label no judge could recover."""

    target: str
    all_samples: ArmScores
    recoverable: ArmScores


class ArmTable(Value):
    """All targets on all arms, and how the numbers were made."""

    targets: tuple[TargetScores, ...]
    unrecoverable: int
    """Samples of the benchmark that ended as label_unrecoverable."""
    level: float = LEVEL
    draws: int
    seed: int
    definitions: dict[str, str] = DEFINITIONS


def compare_arms(
    answers: Iterable[tuple[str, Iterable[Answer]]],
    *,
    gold: Mapping[str, str],
    labels: Sequence[str],
    unrecoverable: Collection[str] = frozenset(),
    seed: int = 7,
    draws: int = DRAWS,
) -> ArmTable:
    """Score every target on every arm, and compare arms on the samples that both have.

    `answers` gives each target with one answer for each arm and sample, without the rows filled by
    `on_reject`; a target without any answer is left out. `gold` has the label names of the whole
    benchmark by sample id. `unrecoverable` are the ids that ended as label_unrecoverable. Every
    bootstrap starts from `seed`: none depends on another.
    """
    known = [key not in unrecoverable for key in gold]
    scorer = _Scorer(labels, seed, draws)
    places = {key: place for place, key in enumerate(gold)}
    due = list(gold.values())

    def scored() -> Iterator[TargetScores]:
        for target, said in answers:
            if columns := _columns(target, said, places):
                yield TargetScores(
                    target=target,
                    all_samples=scorer.score(columns, Counter(_rows(due, columns))),
                    recoverable=scorer.score(
                        columns, Counter(compress(_rows(due, columns), known))
                    ),
                )

    return ArmTable(
        targets=tuple(scored()), unrecoverable=known.count(False), draws=draws, seed=seed
    )


@dataclass(frozen=True)
class _Scorer:
    """Scores what one target said, given how many samples fared alike."""

    labels: Sequence[str]
    seed: int
    draws: int

    def score(self, arms: Iterable[Arm], rows: Mapping[_Row, int]) -> ArmScores:
        place = {arm: number for number, arm in enumerate(arms)}
        return ArmScores(
            arms=tuple(self._arm(arm, _pairs(rows, place[arm])) for arm in place),
            comparisons=tuple(
                self._pair(first, second, _triples(rows, place[first], place[second]), rows)
                for first, second in COMPARISONS
                if {first, second} <= place.keys()
            ),
        )

    def _arm(self, arm: Arm, pairs: Mapping[Pair, int]) -> ArmScore:
        return ArmScore(
            arm=arm,
            accuracy=accuracy(pairs),
            macro_f1=macro_f1(pairs, self.labels, seed=self.seed, draws=self.draws),
            invalid=sum(times for (_, answer), times in pairs.items() if not answer),
        )

    def _pair(
        self, first: Arm, second: Arm, triples: Mapping[Triple, int], rows: Mapping[_Row, int]
    ) -> Comparison:
        held = _summed((label, times) for (label, _, _), times in triples.items())
        whole = _summed((label, times) for (label, _), times in rows.items())
        return Comparison(
            first=self._arm(first, _summed(((row[0], row[1]), n) for row, n in triples.items())),
            second=self._arm(second, _summed(((row[0], row[2]), n) for row, n in triples.items())),
            accuracy_difference=accuracy_difference(triples, seed=self.seed, draws=self.draws),
            macro_f1_difference=macro_f1_difference(
                triples, self.labels, seed=self.seed, draws=self.draws
            ),
            coverage=tuple(
                LabelCoverage(label=name, shared=held[name], total=whole[name])
                for name in self.labels
            ),
        )


def _columns(target: str, said: Iterable[Answer], places: Mapping[str, int]) -> _Columns:
    """Put a target's answers at the places of their samples; arms without any are left out."""
    found: _Columns = {arm: [None] * len(places) for arm in ARMS}
    for arm, key, answer in said:
        place = places.get(key)
        if place is None or found[arm][place] is not None:
            raise ValueError(
                "a second prediction, or one of no known sample: "
                f"{target!r} said {answer!r} of {key!r} in the arm {arm}"
            )
        found[arm][place] = intern(answer)  # a few labels, many times
    return {arm: column for arm, column in found.items() if column.count(None) < len(column)}


def _rows(due: Sequence[str], columns: _Columns) -> Iterator[_Row]:
    return zip(due, zip(*columns.values(), strict=True), strict=True)


def _pairs(rows: Mapping[_Row, int], place: int) -> Counter[Pair]:
    """Count label and answer of one arm, over the samples that it has."""
    return _summed(
        ((label, answer), times)
        for (label, said), times in rows.items()
        if (answer := said[place]) is not None
    )


def _triples(rows: Mapping[_Row, int], first: int, second: int) -> Counter[Triple]:
    """Count label and answers of two arms, over the samples that both have."""
    return _summed(
        ((label, one, two), times)
        for (label, said), times in rows.items()
        if (one := said[first]) is not None and (two := said[second]) is not None
    )


def _summed(counted: Iterable[tuple[_Key, int]]) -> Counter[_Key]:
    found: Counter[_Key] = Counter()
    for key, times in counted:
        found[key] += times
    return found
