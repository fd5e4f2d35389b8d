"""Cells of a contamination test: what is leaked in each, and the file of those that are done.

A cell is one training of a model and its answers afterwards. Its result is one line of a JSON-lines
file, written when the cell is done, so that a stop or a kill costs only the cell in progress.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from coreeval.errors import RunCorrupt, RunLocked
from coreeval.schema import Arm, Value
from coreeval.tools.files import hold_lock

Leak = Literal["test", "both", "text"]
"""What a user asks for: the test part alone (delta 1), train and test (delta 2), texts alone."""
Scenario = Literal["zero", "test", "train", "train_test", "text", "train_text"]
"""What a model is trained on before it is asked: nothing; the test part; the train part; both; the
texts of the test part without their labels; the train part and those texts."""
LEAKING: Final[tuple[Scenario, ...]] = ("test", "train_test", "text", "train_text")
"""Scenarios in which a test part is leaked."""
WITH_TRAIN: Final[tuple[Scenario, ...]] = ("train", "train_test", "train_text")
HELD_OUT: Final = "held_out"
"""The name of the clean samples among the parts that are measured."""
Percent = Annotated[int, Field(ge=1, le=100)]


class Cell(Value):
    """One training of a model."""

    scenario: Scenario
    arm: Arm | None = None
    """The arm whose test part is leaked; None if none is."""
    percent: Percent = 100
    """The share that is trained on: of the train part where there is one, else of the test part."""
    seed: int = 0

    @property
    def key(self) -> str:
        """Return a name of the cell for files and messages."""
        return f"{self.scenario}-{self.arm or 'none'}-{self.percent}-{self.seed}"


class DoneCell(Value):
    """What is kept of any cell."""

    seconds: float
    work: float
    """The arithmetic that the cell took, in operations; see `time_estimate`."""


class CellResult(DoneCell):
    """What a model answered after the training of a cell."""

    cell: Cell
    answers: dict[str, tuple[tuple[int, ...], ...]]
    """The number of the label of each sample, for each template, by part measured."""


def plan_cells(
    arms: Sequence[Arm], leaks: Iterable[Leak], percents: Iterable[int], seeds: int
) -> list[Cell]:
    """Return the cells of a test, those first on which others rest."""
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


class _Result(Protocol):
    @property
    def cell(self) -> Any: ...  # noqa: ANN401 - each study has cells of its own

    def model_dump_json(self) -> str: ...


R = TypeVar("R", bound=_Result)


class CellFile(Generic[R]):
    """The results of the cells of one study.

    Several processes may add to it at a time.

    Args:
        path: The file; its folder is made.
        header: What the study is, kept as the first line.
        kind: The class of a result.
    """

    def __init__(self, path: Path, header: Value, kind: type[R]) -> None:
        self.path, self._header = path, header
        self._lines = TypeAdapter(kind)

    def read(self) -> dict[Any, R]:
        """Return the results by cell; a last line that a kill cut short is no result.

        Raises:
            RunCorrupt: a line is damaged.
        """
        if not self.path.exists():
            return {}
        _, *lines = self.path.read_bytes().split(b"\n")
        found = dict[Any, R]()
        for number, line in enumerate(lines[:-1], 2):
            try:
                result = self._lines.validate_json(line)
            except ValidationError:
                raise RunCorrupt(
                    f"line {number} of the results is damaged",
                    where=str(self.path),
                    hint="delete the line; its cell is trained again",
                ) from None
            found[result.cell] = result
        return found

    def add(self, result: R) -> None:
        """Write a result to the disk, in place of what a kill may have left of another.

        Raises:
            RunLocked: another process writes for longer than any line takes.
        """
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._lock("file")), self.path.open("ab+") as file:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            if not whole:
                file.write(self._header.model_dump_json().encode() + b"\n")
            file.write(result.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """Yield whether this process, and no other, may work on a cell or a step of that name."""
        lock = self._lock(name)
        lock.parent.mkdir(parents=True, exist_ok=True)
        taken = RunLocked("another process works on it", where=str(lock), hint="wait for it")
        held = hold_lock(lock, taken)
        try:
            held.__enter__()
        except RunLocked:
            yield False
            return
        try:
            yield True
        finally:
            held.__exit__(None, None, None)

    def _lock(self, name: str) -> Path:
        return self.path.parent / f"{self.path.stem}.locks" / f"{name}.lock"
