"""Cells of a contamination test: what each one leaks, and the file of finished cells.

A cell is one training of a model and its answers afterwards. Its result is one line of a JSON Lines
file, written when the cell is done, so a stop or a kill loses only the cell in progress.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field

from coreeval.evaluation.whitebox.result_file import ResultFile
from coreeval.schema import Arm, Value

Leak = Literal["test", "both", "text"]
"""The leaks to test: the test part alone (delta 1), train and test (delta 2), only texts."""
Scenario = Literal["zero", "test", "train", "train_test", "text", "train_text"]
"""What a model is trained on before it is asked: nothing, the test part, the train part, both, the
texts of the test part without labels, or the train part and those texts."""
LEAKING: Final[tuple[Scenario, ...]] = ("test", "train_test", "text", "train_text")
"""Scenarios in which a test part is leaked."""
WITH_TRAIN: Final[tuple[Scenario, ...]] = ("train", "train_test", "train_text")
HELD_OUT: Final = "held_out"
"""The name of the clean samples among the parts that are measured."""
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Percent = Annotated[int, Field(ge=1, le=100)]


class Cell(Value):
    """One training of a model."""

    scenario: Scenario
    arm: Arm | None = None
    """The arm whose test part is leaked; None if none is."""
    percent: Percent = 100
    """The share of the data that is trained on: of the train part if the cell has one, otherwise of
    the test part."""
    seed: int = 0

    @property
    def key(self) -> str:
        """Return a name of the cell for files and messages."""
        return f"{self.scenario}-{self.arm or 'none'}-{self.percent}-{self.seed}"


class DoneCell(Value):
    """The stored result of any cell."""

    seconds: Amount
    work: Amount
    """The cell's computing cost in operations; see `time_estimate`."""


class CellResult(DoneCell):
    """The answers of a model after the training of a cell."""

    cell: Cell
    answers: dict[str, tuple[tuple[int, ...], ...]]
    """The number of the label of each sample, for each template, by part measured."""

    def fits(self, shapes: Mapping[str, tuple[int, int]], labels: int) -> bool:
        """Return whether it has a valid label for each question of a study.

        Args:
            shapes: The number of templates and of samples, by part measured.
            labels: The number of labels.
        """
        return self.answers.keys() == shapes.keys() and all(
            len(self.answers[part]) == templates
            and all(
                len(codes) == samples and all(0 <= code < labels for code in codes)
                for codes in self.answers[part]
            )
            for part, (templates, samples) in shapes.items()
        )


def plan_cells(
    arms: Sequence[Arm], leaks: Iterable[Leak], percents: Iterable[int], seeds: int
) -> list[Cell]:
    """Return the cells of a test, ordered by their dependencies."""
    asked, shares = set(leaks), sorted(set(percents), reverse=True)
    found = [Cell(scenario="zero")]
    for seed in range(seeds):
        for percent in shares:
            if "both" in asked:
                found.append(Cell(scenario="train", percent=percent, seed=seed))
            found += [
                Cell(scenario=scenario, arm=arm, percent=percent, seed=seed)
                for arm in arms
                for scenario in _list_scenarios(asked)
            ]
    return found


def _list_scenarios(asked: set[Leak]) -> Iterator[Scenario]:
    if "test" in asked:
        yield "test"
    if "both" in asked:
        yield "train_test"
    if "text" in asked:
        yield "text"
    if {"text", "both"} <= asked:
        yield "train_text"


R = TypeVar("R", bound=Value)


class CellFile(ResultFile[Any, R]):
    """The results of the cells of one study.

    Args:
        path: The file; its folder is created.
        header: The definition of the study, stored as the first line.
        kind: The class of a result; it has a `cell`.
        fits: Returns whether a result has the form that the study requires.
    """

    def __init__(
        self, path: Path, header: Value, kind: type[R], *, fits: Callable[[R], bool]
    ) -> None:
        super().__init__(path, header, result=kind, key=_cell_of, what="the study", fits=fits)


def _cell_of(result: Any) -> Any:  # noqa: ANN401 - each study has cells of its own
    return result.cell
