"""Estimates the time and memory of a contamination test before anything is loaded.

The arithmetic of a transformer is about 2 operations for each parameter and token forward, and 4
more backward (Kaplan et al. 2020, arXiv 2001.08361, section 2.1). The speed of a device is measured
on finished cells; before the first one, it is assumed.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Protocol, TypeVar

from coreeval.evaluation.whitebox.cells import Cell, DoneCell
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import StudyData, TrainingItem, choose_training
from coreeval.models.loaded_network import Precision
from coreeval.schema import Value

CHARACTERS: Final = 3.5
"""English characters per token (own measurement: SmolLM2 on the prompts of emotion)."""
FORWARD, BACKWARD = 2, 4
SPEEDS: Final[Mapping[str, float]] = {"cpu": 4e10, "cuda": 5e13}
"""Assumed operations per second before any measurement: one shared CPU core, and a fifth of an
H100's bfloat16 peak."""
PASS_OPERATIONS: Final[Mapping[str, float]] = {"cpu": 0.0, "cuda": 1e12}
"""The overhead of a pass through a model, in operations: a GPU waits while its many small kernels
are started (own measurement: SmolLM2-135M on an H200, 0.02 s)."""
STEP_PASSES: Final = 12
"""The passes that take as long as a step of training (own measurement: 0.25 s, with adapters)."""
SPREAD: Final = 3.0
"""The factor by which an assumed time may be too long or too short."""
MEASURED_SPREAD: Final = 1.3
"""The same for a time measured on finished cells."""
C_contra = TypeVar("C_contra", contravariant=True)
ADAM: Final = 4
"""The numbers stored for each trained parameter: itself, its gradient and two means."""


class TimeEstimate(Value):
    """The expected time of the remaining cells."""

    cells: int
    left: int
    seconds: float
    low: float
    high: float
    measured: bool
    """Whether the speed was measured on finished cells."""


class Workload:
    """The arithmetic of each cell of a study.

    Args:
        data: The samples.
        parameters: The number of parameters of the model.
        training: The training settings.
        device: Such as `cpu` or `cuda:0`.
    """

    def __init__(
        self, data: StudyData, *, parameters: int, training: TrainingSettings, device: str
    ) -> None:
        self._data, self._parameters = data, parameters
        self._training, self._device = training, device
        texts = (one for part in data.parts.values() for one in part)
        prompts = [prompt for one in texts for prompt in one.prompts]
        self._questions, self._asked = len(prompts), sum(map(count_tokens, prompts))

    def of_cell(self, cell: Cell) -> float:
        """Return the operations of a cell: its training, and the questions afterwards."""
        items = choose_training(self._data, cell)
        trained = sum(map(_count_item, items)) * self._training.epochs
        each = trained * (FORWARD + BACKWARD) + self._asked * FORWARD
        passes = count_steps(len(items), self._training) * STEP_PASSES
        passes += -(-self._questions // self._training.batch)
        return self._parameters * each + count_waiting(passes, self._device)


def count_steps(items: int, training: TrainingSettings) -> int:
    """Return the number of steps of a training."""
    return -(-items // training.batch) * training.epochs


def count_waiting(passes: float, device: str) -> float:
    """Return the overhead of a number of passes, in operations."""
    return passes * PASS_OPERATIONS[device.partition(":")[0]]


def count_tokens(text: str) -> float:
    """Return the approximate number of tokens of a text."""
    return len(text) / CHARACTERS + 1


def _count_item(item: TrainingItem) -> float:
    text = item.text
    if not item.with_label:
        return count_tokens(text.text)
    return sum(map(count_tokens, text.prompts)) / len(text.prompts)


C = TypeVar("C", bound=Hashable)


class Work(Protocol[C_contra]):
    """The arithmetic of each cell of a study."""

    def of_cell(self, cell: C_contra) -> float:
        """Return the operations of a cell."""
        ...


def estimate_time(
    cells: Iterable[C], done: Mapping[C, DoneCell], work: Work[C], device: str
) -> TimeEstimate:
    """Return the expected time of the remaining cells on a device."""
    every = list(cells)
    left = [cell for cell in every if cell not in done]
    operations = sum(work.of_cell(cell) for cell in left)
    seconds = sum(one.seconds for one in done.values())
    measured = seconds > 0
    known = sum(one.work for one in done.values())
    speed = known / seconds if measured else SPEEDS[device.partition(":")[0]]
    expected, spread = operations / speed, MEASURED_SPREAD if measured else SPREAD
    return TimeEstimate(
        cells=len(every),
        left=len(left),
        seconds=expected,
        low=expected / spread,
        high=expected * spread,
        measured=measured,
    )


def estimate_memory(parameters: int, precision: Precision, *, full: bool = False) -> int:
    """Return the approximate bytes that a training needs, excluding activations.

    Weights have 16 bits in bfloat16, unless all of them are trained; otherwise 32.
    """
    width = 2 if precision == "bfloat16" and not full else 4
    return parameters * width * (ADAM if full else 1)
