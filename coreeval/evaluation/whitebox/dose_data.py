"""Data for continued pretraining on a dated series: sentences, doses, and rival values.

The design is that of the NumLeak paper (section 4, appendix T): each date with its value is stated
a number of times, its dose; sentences about an invented series fill the rest, so that all doses
train on the same number of sentences. Afterwards the model ranks the true value of each date among
four others.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics.logprobs import TRUE_CANDIDATE
from coreeval.evaluation.whitebox.cells import DoneCell
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import LabelledText, TrainingItem
from coreeval.evaluation.whitebox.time_estimate import (
    STEP_PASSES,
    count_steps,
    count_tokens,
    count_waiting,
)
from coreeval.schema import Value
from coreeval.tools.formatting import format_quantity

FEWEST_DATES: Final = 8
"""The fewest dates for a meaningful rank."""
_INVENTED: Final = "the Hallam residual of {name}"
"""The name of the filler series if the definition names no invented one."""
GENERATED: Final = 12
"""The number of tokens of an answer that must contain the value."""


class DoseCell(Value):
    """One training of a model, or none."""

    dose: int | None
    """How often each date was stated; None for the untrained model."""
    seed: int = 0

    @property
    def key(self) -> str:
        """Return a name of the cell for files and messages."""
        return "untrained" if self.dose is None else f"dose-{self.dose}-{self.seed}"


class DoseResult(DoneCell):
    """The log-probabilities of a model after the training of a cell."""

    cell: DoseCell
    logprobs: tuple[dict[str, float], ...]
    """By date and name of candidate, the mean log-probability of a token."""
    said: tuple[str, ...]
    """By date, the greedy continuation of the sentence."""


@dataclass(frozen=True, kw_only=True)
class DatedStatement:
    """A date of the series: its sentence, and the candidate values."""

    date: str
    begun: str
    """The sentence up to its value."""
    candidates: dict[str, str]
    """The formatted values, by the name of their kind."""
    filler: str
    """The complete sentence about the invented series and the same date."""

    @property
    def whole(self) -> str:
        """The sentence with the true value."""
        return f"{self.begun}{self.candidates[TRUE_CANDIDATE]}"


@dataclass(frozen=True, kw_only=True)
class DoseData:
    """The dates of a study."""

    series: str
    statements: Sequence[DatedStatement]

    @property
    def fingerprint(self) -> str:
        """Return the hash of all sentences and candidates."""
        known = hashlib.sha256(self.series.encode())
        for one in self.statements:
            known.update("\0".join((one.whole, one.filler, *one.candidates.values())).encode())
        return known.hexdigest()

    def fits(self, result: DoseResult) -> bool:
        """Return whether a result has all candidates of all dates."""
        dates = [one.candidates.keys() for one in self.statements]
        return [*map(dict.keys, result.logprobs)] == dates and len(result.said) == len(dates)


def make_doses(series: Series, *, dates: int, seed: int) -> DoseData:
    """Return the last dates of a series with their rivals.

    The rivals are those of table 18: the value with the opposite sign, if the series has signs; the
    previous date's value; the invented series' value; and a random value between the lowest and the
    highest.

    Args:
        series: The series.
        dates: The most dates, counted from its end.
        seed: The seed of the invented series and of the random values.

    Raises:
        DatasetError: the series has too few dates.
    """
    known = sorted(series.values.items(), key=lambda one: one[0].start)
    if len(known) < FEWEST_DATES + 1:
        raise DatasetError(
            f"the series has {format_quantity(len(known), 'date')}, but {FEWEST_DATES + 1} "
            "are needed",
            where=series.definition.id,
            hint="use a longer series",
        )
    chance, some = Random(seed), known[-dates - 1 :]
    invented = [value for _, value in some]
    chance.shuffle(invented)
    found = [
        _make_statement(series, date, value, before=some[at][1], other=invented[at], chance=chance)
        for at, (date, value) in enumerate(some[1:])
    ]
    return DoseData(series=series.definition.id, statements=found)


def _make_statement(
    series: Series, date: Period, value: float, *, before: float, other: float, chance: Random
) -> DatedStatement:
    definition = series.definition
    lowest, highest = min(series.values.values()), max(series.values.values())
    values = {TRUE_CANDIDATE: value, "neighbour": before, "another_series": other}
    if definition.sign == "signed":
        values["sign_turned"] = -value
    values["random"] = chance.uniform(lowest, highest)

    def write(number: float) -> str:
        return f" {definition.format_number(number, plus=False)}{definition.unit.suffix}."

    invented = next(iter(definition.fictitious), _INVENTED.format(name=definition.name))
    return DatedStatement(
        date=str(date),
        begun=_begin(definition.quantity, definition.name, date),
        candidates={kind: write(number) for kind, number in values.items()},
        filler=f"{_begin(definition.quantity, invented, date)}{write(other)}",
    )


def _begin(quantity: str, name: str, date: Period) -> str:
    return f"The {quantity} of {name} for {date.words} was"


def list_training(data: DoseData, cell: DoseCell, largest: int) -> list[TrainingItem]:
    """Return the sentences of a cell: each date as often as its dose, and filler to `largest`."""
    if cell.dose is None:
        return []
    return [
        TrainingItem(LabelledText(one.date, (), text, 0), with_label=False)
        for one in data.statements
        for text in [one.whole] * cell.dose + [one.filler] * (largest - cell.dose)
    ]


@dataclass(frozen=True, kw_only=True)
class DoseWork:
    """The computing cost of a study's cells; see `time_estimate`."""

    data: DoseData
    parameters: int
    training: TrainingSettings
    device: str
    largest: int

    def of_cell(self, cell: DoseCell) -> float:
        """Return the operations of a cell: its training, and the ranking afterwards."""
        items = list_training(self.data, cell, self.largest)
        trained = sum(count_tokens(item.text.text) for item in items) * self.training.epochs
        read = sum(
            len(one.candidates) * count_tokens(one.whole) + GENERATED
            for one in self.data.statements
        )
        passes = count_steps(len(items), self.training) * STEP_PASSES
        passes += len(self.data.statements) * (1 + GENERATED)
        waiting = count_waiting(passes, self.device)
        return self.parameters * (6 * trained + 2 * read) + waiting
