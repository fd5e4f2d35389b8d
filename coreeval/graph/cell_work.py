"""Computes the cells of a study until all are done, in this and other processes.

Each cell is one result in a file, so a stop or a kill loses only the cell in progress.
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
from coreeval.models.classifier import load_classifier
from coreeval.models.loaded_network import LoadedNetwork
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.weights import Weights
from coreeval.tools.formatting import format_expected_time

WAIT_S: Final = 2.0
"""Seconds between two checks of cells that other processes are computing."""


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
        """Return all cells, ordered by their dependencies."""
        ...

    @property
    def results(self) -> CellFile[Any]:
        """Return the file of the results."""
        ...

    def estimate(self) -> TimeEstimate:
        """Return the expected time of the cells that are not done."""
        ...


def finish_cells(
    plan: StudyPlan[C], do: Callable[[C], Any], around: RunHooks, *, stage: str
) -> None:
    """Compute every cell without a result; wait for those that other processes have taken.

    Args:
        plan: The cells.
        do: Returns the result of a cell.
        around: Receives the progress.
        stage: The name of the stage in the progress.
    """
    _tell(plan, around, stage)
    while left := [cell for cell in plan.cells if cell not in plan.results.read()]:
        if not sum(_take(plan, cell, do) and _tell(plan, around, stage) for cell in left):
            time.sleep(WAIT_S)


def load_once(
    weights: Weights, device: str, memory: int, training: TrainingSettings
) -> Callable[[], LocalModel]:
    """Return a function that loads a language model on its first call and then returns it.

    Args:
        weights: The weights of the model.
        device: The device to load it on.
        memory: The bytes that the model needs.
        training: The training settings.
    """
    return cache(
        partial(
            load_model,
            weights,
            device,
            needed=memory,
            most_tokens=training.max_tokens,
            full=training.method == "full",
            precision=training.precision,
        )
    )


def load_labeller_once(
    weights: Weights, device: str, memory: int, training: TrainingSettings, labels: Sequence[str]
) -> Callable[[], LoadedNetwork[Any]]:
    """Return the same for a model that gives labels; an encoder gets a classification head.

    The arguments are those of `load_once`, and the labels of the task.
    """
    if not weights.is_encoder:
        return load_once(weights, device, memory, training)
    return cache(
        partial(
            load_classifier,
            weights,
            device,
            labels,
            needed=memory,
            most_tokens=training.max_tokens,
            precision=training.precision,
        )
    )


def _take(plan: StudyPlan[C], cell: C, do: Callable[[C], Any]) -> bool:
    """Compute a cell unless another process has taken it; return whether it was computed here."""
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
    """Return a function that reports the progress of a stage."""

    def watch(done: int, total: int) -> None:
        around.watch(Progress(stage=stage, done=done, total=total))

    return watch
