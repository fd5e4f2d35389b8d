"""How much a leak raises scores: delta 1 and delta 2 of the CoreEval paper, with intervals.

    delta 1 = P(trained on the test part) - P(as the model came)           (section 4.1)
    delta 2 = P(trained on train and test part) - P(trained on train part)

P is the macro-F1, the mean over the templates of the task. Samples are resampled together with the
answers of all trainings, and the seeds of the training are resampled, too. The variance of a mean
over k seeds is k / (k - 1) times what resampling k seeds shows; this is corrected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from coreeval.evaluation.label_scores import (
    AnswerTable,
    AnswerView,
    Floats,
    expand_interval,
    mean_of_templates,
    resample,
)
from coreeval.evaluation.scores import DRAWS, NO_SCORE, Score
from coreeval.evaluation.whitebox.cells import Cell, CellResult, Scenario
from coreeval.schema import Arm

Metric = Literal["macro_f1", "accuracy"]
Delta = Literal["delta1", "delta2"]
SCENARIOS: Final[Mapping[tuple[Delta, bool], tuple[Scenario, Scenario]]] = {
    ("delta1", False): ("test", "zero"),
    ("delta2", False): ("train_test", "train"),
    ("delta1", True): ("text", "zero"),
    ("delta2", True): ("train_text", "train"),
}
"""The scenarios with and without the leak, by delta and by whether only texts are leaked."""


@dataclass(frozen=True)
class MeasuredPart:
    """The samples of an arm, or clean samples, about which models are asked."""

    due: tuple[int, ...]
    """The number of the label of each sample."""
    clusters: tuple[int, ...] | None = None
    """The number of each sample's cluster; None if each sample is its own cluster."""


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """A leak, and the part of the samples on which it is measured."""

    arm: Arm
    """The arm whose test part is leaked."""
    part: str
    """The arm, or the clean samples, about which the model is asked."""
    percent: int = 100
    text_only: bool = False


class PerformanceTable:
    """The scores of all cells on all parts, for the observed samples and for each draw.

    Args:
        parts: The measured parts by name; arms have the same samples in the same order.
        labels: The number of labels of the task.
        results: The results of the cells.
        seed: The seed of the draws.
        draws: The number of draws.
    """

    def __init__(
        self,
        parts: Mapping[str, MeasuredPart],
        labels: int,
        results: Mapping[Cell, CellResult],
        *,
        seed: int,
        draws: int = DRAWS,
    ) -> None:
        self.parts, self.cells = parts, tuple(results)
        self._seed, self._draws = seed, draws
        self._values = dict[tuple[Metric, str, Cell], Floats]()
        for name, part in parts.items():
            self._score_part(name, part, labels, [*results.values()])

    def _score_part(
        self, name: str, part: MeasuredPart, labels: int, results: Sequence[CellResult]
    ) -> None:
        said = [codes for one in results for codes in one.answers[name]]
        number = len(results[0].answers[name]) if results else 0
        clusters = None if part.clusters is None else np.asarray(part.clusters, np.int64)
        table = AnswerTable(
            due=np.asarray(part.due, np.int16),
            said=np.asarray(said, np.int16).T,
            labels=labels,
            clusters=clusters,
        )
        templates = tuple(range(1, number + 1))
        counted = np.ones((len(part.due), number), np.bool_)
        views = [
            AnswerView(templates, tuple(range(at * number, (at + 1) * number)), counted)
            for at in range(len(results))
        ]
        scored = resample(table, views, seed=self._seed, draws=self._draws)
        for one, found in zip(results, scored, strict=True):
            self._values["macro_f1", name, one.cell] = mean_of_templates(found.macro_f1, found)
            self._values["accuracy", name, one.cell] = mean_of_templates(found.accuracy, found)

    def performance(self, cells: Sequence[Cell], part: str, metric: Metric) -> Floats:
        """Return the scores after several trainings, of shape (cells, 1 + draws)."""
        return np.stack([self._values[metric, part, cell] for cell in cells])

    def score(self, values: Floats, part: str, *, answers: int = 1) -> Score:
        """Return the mean over seeds, with its interval over samples and seeds.

        Args:
            values: Scores or differences, of shape (seeds, 1 + draws).
            part: The part on which they were measured.
            answers: How many answers of a sample are in a difference; 0 for plain scores.
        """
        measured = self.parts[part]
        units = None if measured.clusters is None else len(set(measured.clusters))
        mean = average_seeds(values, seed=self._seed)
        return expand_interval(mean, len(measured.due), units=units, answers=answers)

    def rises(self, leak: Leakage, delta: Delta, metric: Metric = "macro_f1") -> Floats | None:
        """Return delta 1 or 2 by seed, of shape (seeds, 1 + draws); None if a cell is missing."""
        with_leak, without = SCENARIOS[delta, leak.text_only]
        wanted = (with_leak, leak.arm, leak.percent)
        some = [cell for cell in self.cells if (cell.scenario, cell.arm, cell.percent) == wanted]
        leaked = sorted(some, key=lambda cell: cell.seed)
        plain = [_find_counterpart(cell, without) for cell in leaked]
        if not leaked or not set(plain) <= set(self.cells):
            return None
        return np.asarray(
            self.performance(leaked, leak.part, metric) - self.performance(plain, leak.part, metric)
        )

    def delta(self, leak: Leakage, delta: Delta, metric: Metric = "macro_f1") -> Score:
        """Return delta 1 or 2 with its interval; without a value if a cell is missing."""
        found = self.rises(leak, delta, metric)
        return NO_SCORE if found is None else self.score(found, leak.part)

    def difference(self, one: Leakage, other: Leakage, delta: Delta) -> Score:
        """Return the first leak's delta of the macro-F1 minus the second's.

        It is paired by sample if both are measured on arms.
        """
        first, second = self.rises(one, delta), self.rises(other, delta)
        if first is None or second is None or first.shape != second.shape:
            return NO_SCORE
        return self.score(first - second, one.part)


def _find_counterpart(cell: Cell, without: Scenario) -> Cell:
    """Return the training with the same seed but without the leak."""
    if without == "zero":
        return Cell(scenario="zero")
    return Cell(scenario=without, percent=cell.percent, seed=cell.seed)


def average_seeds(values: Floats, *, seed: int) -> Floats:
    """Return the mean over seeds, of shape (1 + draws,); draws also resample the seeds.

    Args:
        values: One row for each seed, of shape (seeds, 1 + draws); the first column has the
            observed values.
        seed: The seed of the draws of seeds.
    """
    mean = values.mean(axis=0)
    number = len(values)
    if number < 2:
        return np.asarray(mean)
    chance = np.random.default_rng((seed, number))
    drawn = chance.integers(number, size=(number, values.shape[1]))
    moved = np.take_along_axis(values, drawn, axis=0).mean(axis=0) - mean
    moved[0] = 0.0
    return np.asarray(mean + np.sqrt(number / (number - 1)) * moved)
