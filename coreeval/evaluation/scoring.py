"""Scores of recorded answers, and the three arms compared: pure functions, no model in sight.

Every number comes with its n and a 95 % interval. Arms are compared only on samples that both have.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import Arm, Prediction, Value

Pair = tuple[str, str]
"""(label of the benchmark, answer); an invalid answer is the empty string."""
Triple = tuple[str, str, str]
"""(label of the benchmark, answer in the first arm, answer in the second)."""
_Answers = dict[Arm, dict[str, str]]
"""Answer by sample id, by arm."""
Rows = Sequence[tuple[str, ...]]
Counts = NDArray[np.float64]
Statistic = Callable[[Rows, Counts], Counts]
"""From distinct rows, and how often each occurs (in the last axis), to a number."""

ARMS: tuple[Arm, ...] = ("original", "semantic", "updated")
COMPARISONS: tuple[tuple[Arm, Arm], ...] = (
    ("original", "semantic"),
    ("semantic", "updated"),
    ("original", "updated"),
)
"""What is lost by rewording (surface memory), by new facts (knowledge), and by both."""
LEVEL = 0.95
DRAWS = 2000
"""Bootstrap draws; another seed then moves an end by about a fiftieth of the width (measured)."""
DEFINITIONS = {
    "accuracy": "share of right answers, invalid ones being wrong; Wilson score interval",
    "macro_f1": "mean of the F1 of each label of the task, 0 for a label neither given nor due; "
    "percentile bootstrap over samples",
    "difference": "second arm minus first on the samples both have (negative: the score drops); "
    "percentile bootstrap over samples, the two answers of a sample kept together",
    "invalid": "answers that were refused, truncated or no label of the task",
}


class Score(Value):
    """A number with what it rests on; all None where there is nothing to score."""

    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n: int


NOTHING = Score(estimate=None, ci_low=None, ci_high=None, n=0)


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


def accuracy(pairs: Iterable[Pair]) -> Score:
    """Return the share of right answers with its Wilson score interval.

    Wilson (1927), no continuity correction: it keeps a width when all are right or all are wrong.
    """
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # slow to import

    hits = [gold == answer for gold, answer in pairs]
    if not hits:
        return NOTHING
    low, high = binomtest(sum(hits), len(hits)).proportion_ci(LEVEL, method="wilson")
    return Score(estimate=sum(hits) / len(hits), ci_low=low, ci_high=high, n=len(hits))


def macro_f1(
    pairs: Iterable[Pair], labels: Sequence[str], *, seed: int, draws: int = DRAWS
) -> Score:
    """Return the mean F1 over the task's labels (CoreEval paper, section 4.1).

    It is scikit-learn's `f1_score(labels=labels, average="macro", zero_division=0)`, written over
    counts so that the bootstrap (percentile, over samples, from two on) uses the same formula.
    """
    return _bootstrap(pairs, lambda rows, times: _f1(rows, times, labels, 1), seed, draws)


def accuracy_difference(triples: Iterable[Triple], *, seed: int, draws: int = DRAWS) -> Score:
    """Return accuracy of the second answer minus that of the first.

    Where all samples fare alike the interval has no width: a bootstrap sees only what is there.
    """

    def gain(rows: Rows, times: Counts) -> Counts:
        each = np.array([float(gold == b) - float(gold == a) for gold, a, b in rows])
        return np.asarray(times @ each / times.sum(axis=-1))

    return _bootstrap(triples, gain, seed, draws)


def macro_f1_difference(
    triples: Iterable[Triple], labels: Sequence[str], *, seed: int, draws: int = DRAWS
) -> Score:
    """Return macro-F1 of the second answer minus that of the first."""

    def gain(rows: Rows, times: Counts) -> Counts:
        return _f1(rows, times, labels, 2) - _f1(rows, times, labels, 1)

    return _bootstrap(triples, gain, seed, draws)


def compare_arms(
    predictions: Iterable[Prediction],
    *,
    gold: Mapping[str, str],
    labels: Sequence[str],
    unrecoverable: Collection[str] = frozenset(),
    seed: int = 7,
    draws: int = DRAWS,
) -> ArmTable:
    """Score every target on every arm, and compare arms on the samples that both have.

    Predictions are one for each target, arm and sample, without the rows filled by `on_reject`.
    `gold` has the label names of the whole benchmark by sample id. `unrecoverable` are the ids that
    ended as label_unrecoverable. Every bootstrap starts from `seed`: none depends on another.
    """
    kept = {key: label for key, label in gold.items() if key not in unrecoverable}
    scorer = _Scorer(labels, seed, draws)
    return ArmTable(
        targets=tuple(
            TargetScores(
                target=target,
                all_samples=scorer.score(answers, gold),
                recoverable=scorer.score(answers, kept),
            )
            for target, answers in _by_target(predictions, gold).items()
        ),
        unrecoverable=len(gold) - len(kept),
        draws=draws,
        seed=seed,
    )


@dataclass(frozen=True)
class _Scorer:
    """Scores what one target said, against some samples' labels."""

    labels: Sequence[str]
    seed: int
    draws: int

    def score(self, said: _Answers, gold: Mapping[str, str]) -> ArmScores:
        return ArmScores(
            arms=tuple(
                self._arm(arm, [(gold[key], said[arm][key]) for key in gold if key in said[arm]])
                for arm in said
            ),
            comparisons=tuple(
                self._pair(first, second, said, gold)
                for first, second in COMPARISONS
                if {first, second} <= said.keys()
            ),
        )

    def _arm(self, arm: Arm, pairs: Sequence[Pair]) -> ArmScore:
        return ArmScore(
            arm=arm,
            accuracy=accuracy(pairs),
            macro_f1=macro_f1(pairs, self.labels, seed=self.seed, draws=self.draws),
            invalid=sum(not answer for _, answer in pairs),
        )

    def _pair(self, first: Arm, second: Arm, said: _Answers, gold: Mapping[str, str]) -> Comparison:
        one, two = said[first], said[second]
        shared = gold.keys() & one.keys() & two.keys()
        triples = [(gold[key], one[key], two[key]) for key in shared]
        held, whole = Counter(gold[key] for key in shared), Counter(gold.values())
        return Comparison(
            first=self._arm(first, [(label, answer) for label, answer, _ in triples]),
            second=self._arm(second, [(label, answer) for label, _, answer in triples]),
            accuracy_difference=accuracy_difference(triples, seed=self.seed, draws=self.draws),
            macro_f1_difference=macro_f1_difference(
                triples, self.labels, seed=self.seed, draws=self.draws
            ),
            coverage=tuple(
                LabelCoverage(label=name, shared=held[name], total=whole[name])
                for name in self.labels
            ),
        )


def _by_target(predictions: Iterable[Prediction], gold: Mapping[str, str]) -> dict[str, _Answers]:
    found: defaultdict[str, _Answers] = defaultdict(dict)
    for said in predictions:
        answers = found[said.target].setdefault(said.arm, {})
        if said.sample_id in answers or said.sample_id not in gold:
            raise ValueError(f"a second prediction, or one of no known sample: {said!r}")
        answers[said.sample_id] = said.answer
    return {target: {arm: by[arm] for arm in ARMS if arm in by} for target, by in found.items()}


def _bootstrap(
    samples: Iterable[tuple[str, ...]], statistic: Statistic, seed: int, draws: int
) -> Score:
    """Return a statistic and its percentile interval.

    Resampling changes only how often each distinct row occurs, so those counts are drawn
    (multinomial): the cost depends on the kinds of rows, not on the number of samples.
    """
    found = sorted(Counter(samples).items())
    if not found:
        return NOTHING
    rows, times = [row for row, _ in found], np.array([float(count) for _, count in found])
    n = int(times.sum())
    estimate = float(statistic(rows, times))
    if n == 1:
        return Score(estimate=estimate, ci_low=None, ci_high=None, n=1)
    resampled = np.random.default_rng(seed).multinomial(n, times / n, size=draws)
    values = statistic(rows, resampled.astype(np.float64))
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Score(estimate=estimate, ci_low=float(low), ci_high=float(high), n=n)


def _f1(rows: Rows, times: Counts, labels: Sequence[str], answer: int) -> Counts:
    """Return the macro-F1 for each row of counts; `answer` is the column of the answer."""
    due = np.array([[row[0] == label for label in labels] for row in rows], dtype=np.float64)
    said = np.array([[row[answer] == label for label in labels] for row in rows], dtype=np.float64)
    hits, size = times @ (due * said), times @ (due + said)
    return np.asarray(np.mean(2 * hits / np.maximum(size, 1), axis=-1))
