"""Works on the cells of a study until all are done, here or in other processes beside this one.

Each cell is one result in a file, so that a stop or a kill costs the cell in progress.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final, Protocol, TypeVar

from coreeval.evaluation.whitebox.cells import CellFile
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.time_estimate import TimeEstimate
from coreeval.graph.execute import RunHooks
from coreeval.graph.monitor import Progress
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.weights import Weights
from coreeval.tools.formatting import format_expected_time

WAIT_S: Final = 2.0
"""Seconds between two looks at the cells that other processes work on."""


class StudyCell(Protocol):
    """One training of a model."""

    @property
    def key(self) -> str:
        """Return a name of the cell for files and messages."""
        ...


C = TypeVar("C", bound=StudyCell)
C_co = TypeVar("C_co", bound=StudyCell, covariant=True)


class StudyPlan(Protocol[C_co]):
    """The cells of a study, and where their results are kept."""

    @property
    def cells(self) -> Sequence[C_co]:
        """Return all cells, those first on which others rest."""
        ...

    @property
    def results(self) -> CellFile[Any]:
        """Return the file of the results."""
        ...

    def estimate(self) -> TimeEstimate:
        """Return how long the cells take that are not done."""
        ...


def finish_cells(
    plan: StudyPlan[C], do: Callable[[C], Any], around: RunHooks, *, stage: str
) -> None:
    """Do every cell that has no result yet; wait for those that other processes have taken.

    Args:
        plan: The cells.
        do: Returns the result of a cell.
        around: Receives the progress.
        stage: What the progress is called.
    """
    _tell(plan, around, stage)
    while left := [cell for cell in plan.cells if cell not in plan.results.read()]:
        if not sum(_take(plan, cell, do) and _tell(plan, around, stage) for cell in left):
            time.sleep(WAIT_S)


def load_once(
    weights: Weights, device: str, memory: int, training: TrainingSettings
) -> Callable[[], LocalModel]:
    """Return what loads the model that cells train, when it is called first, and then returns it.

    Args:
        weights: The weights of the model.
        device: Where they are put.
        memory: The bytes that the model needs there.
        training: How it is trained.
    """
    full, most = training.method == "full", training.max_tokens
    return cache(partial(load_model, weights, device, full=full, needed=memory, most_tokens=most))


def _take(plan: StudyPlan[C], cell: C, do: Callable[[C], Any]) -> bool:
    """Do a cell unless another process has; return whether it was done here."""
    results = plan.results
    with results.claim(cell.key) as mine:
        if not mine or cell in results.read():
            return False
        results.add(do(cell))
    return True


def _tell(plan: StudyPlan[C], around: RunHooks, stage: str) -> bool:
    found = plan.estimate()
    note = f"about {format_expected_time(found.seconds)} left" if found.left else ""
    around.watch(Progress(stage=stage, done=found.cells - found.left, total=found.cells, note=note))
    return True


def watch_stage(around: RunHooks, stage: str) -> Callable[[int, int], None]:
    """Return what reports the progress of a stage: how much is done, and of how much."""

    def watch(done: int, total: int) -> None:
        around.watch(Progress(stage=stage, done=done, total=total))

    return watch
