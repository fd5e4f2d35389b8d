"""The data of a contamination test: samples of the arms, of the train part, and clean samples.

All arms have the same samples, so that leaks of different arms differ only in their texts.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.targets import fill_template
from coreeval.evaluation.whitebox.cells import HELD_OUT, WITH_TRAIN, Cell
from coreeval.evaluation.whitebox.deltas import MeasuredPart
from coreeval.schema import Arm, Label, Sample, Task

FEWEST: Final = 8
"""The fewest samples that all arms must share; with fewer, nothing is trained."""


@dataclass(frozen=True)
class LabelledText:
    """A sample in the form for training and questions."""

    id: str
    prompts: tuple[str, ...]
    """Its questions, one for each template of its task."""
    text: str
    """Its texts without a label, for a leak of texts."""
    label: int
    """The number of its label in the task, from 0."""
    cluster: str = ""


@dataclass(frozen=True, kw_only=True)
class StudyData:
    """The samples of a contamination test."""

    labels: tuple[str, ...]
    arms: Mapping[Arm, Sequence[LabelledText]]
    """The same samples in each arm, in the same order."""
    train: Sequence[LabelledText]
    held_out: Sequence[LabelledText]
    """Samples that are not trained on."""

    @property
    def parts(self) -> dict[str, Sequence[LabelledText]]:
        """Return the samples to ask about, by name of their part."""
        clean = {HELD_OUT: self.held_out} if self.held_out else {}
        return {**{str(arm): found for arm, found in self.arms.items()}, **clean}

    @property
    def measured_parts(self) -> dict[str, MeasuredPart]:
        """Return the labels and clusters of the samples to ask about, by part."""
        return {name: _make_part(found) for name, found in self.parts.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of templates and samples to ask about, by part."""
        return {name: (len(found[0].prompts), len(found)) for name, found in self.parts.items()}

    @property
    def fingerprint(self) -> str:
        """Return the hash of all prompts, texts and labels."""
        known = hashlib.sha256("\0".join(self.labels).encode())
        for name, found in [*self.parts.items(), ("train", self.train)]:
            known.update(f"\1{name}".encode())
            for one in found:
                known.update("\0".join((one.id, *one.prompts, str(one.label))).encode())
        return known.hexdigest()


def _make_part(found: Sequence[LabelledText]) -> MeasuredPart:
    due = tuple(one.label for one in found)
    if not any(one.cluster for one in found):
        return MeasuredPart(due)
    names = [("cluster", one.cluster) if one.cluster else ("sample", one.id) for one in found]
    numbers = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return MeasuredPart(due, tuple(numbers[name] for name in names))


def make_text(sample: Sample, task: Task) -> LabelledText:
    """Return a sample in the form for training and questions.

    Raises:
        PromptError: a template of the task cannot be filled.
    """
    known = {label.id: place for place, label in enumerate(task.labels)}
    return LabelledText(
        id=sample.id,
        prompts=tuple(
            fill_template(task, sample.fields, number)
            for number in range(1, len(task.templates) + 1)
        ),
        text="\n".join(sample.fields[name] for name in task.fields),
        label=known[sample.label],
        cluster=sample.cluster,
    )


def make_study(
    labels: Sequence[Label],
    arms: Mapping[Arm, Sequence[LabelledText]],
    pool: Iterable[LabelledText],
    *,
    train: int,
    held_out: int,
) -> StudyData:
    """Return the samples of a contamination test.

    Args:
        labels: The labels of the task.
        arms: The same samples in each arm.
        pool: Samples that may be trained on or kept clean, in order of selection; those whose text
            is in an arm are skipped.
        train: The number of samples of the train part.
        held_out: The number of clean samples, which are selected first.

    Raises:
        DatasetError: all samples have one label.
    """
    shared = next(iter(arms.values()))
    require_two_labels([labels[one.label].name for one in shared])
    leaked = {_fold(one.text) for found in arms.values() for one in found}
    clean = [one for one in pool if _fold(one.text) not in leaked]
    return StudyData(
        labels=tuple(label.name for label in labels),
        arms=arms,
        held_out=clean[:held_out],
        train=clean[held_out : held_out + train],
    )


def require_two_labels(names: Sequence[str]) -> None:
    """Check that samples have at least two labels.

    Raises:
        DatasetError: they have only one.
    """
    if len(found := Counter(names)) < 2:
        raise DatasetError(
            f"all {len(names)} samples that the arms share have the label {next(iter(found))!r}",
            where="--arm",
            hint="a model that always gives this label would get the best score; refresh samples "
            "with other labels",
        )


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


# -- what a cell trains on ------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingItem:
    """A text to train on."""

    text: LabelledText
    with_label: bool
    """Whether its questions and its label are shown, or only its text."""


def choose_training(data: StudyData, cell: Cell) -> list[TrainingItem]:
    """Return the training data of a cell, in an order determined by its seed.

    A smaller share of a part is contained in a larger one with the same seed (section 4.4 of the
    paper: alone, the share is one of the test part; with the train part, it is one of that part).

    Raises:
        UsageError: the cell needs a train part and there is none.
    """
    found = list[TrainingItem]()
    if cell.scenario in WITH_TRAIN:
        if not data.train:
            raise UsageError(
                "there is no train part for comparison",
                where="dataset.train_split",
                hint="use a split whose texts are not in the arms, or pass --leak test",
            )
        some = _draw_share(data.train, cell.percent, cell.seed)
        found += [TrainingItem(one, with_label=True) for one in some]
    if cell.arm is not None:
        percent = 100 if cell.scenario in WITH_TRAIN else cell.percent
        labelled = cell.scenario in ("test", "train_test")
        some = _draw_share(data.arms[cell.arm], percent, cell.seed)
        found += [TrainingItem(one, with_label=labelled) for one in some]
    return found


def _draw_share(texts: Sequence[LabelledText], percent: int, seed: int) -> list[LabelledText]:
    def place(one: LabelledText) -> bytes:
        return hashlib.sha256(f"{seed}\0{one.id}".encode()).digest()

    return sorted(texts, key=place)[: ceil(len(texts) * percent / 100)]
