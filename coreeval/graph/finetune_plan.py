"""Plans a contamination test on an ended run's arms: samples, cells, time, memory.

Nothing is loaded, trained or written.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.detectors.base import Detector
from coreeval.evaluation.detectors.documents import read_document
from coreeval.evaluation.detectors.finetune import FINETUNE
from coreeval.evaluation.whitebox import study_data
from coreeval.evaluation.whitebox.cells import Cell, CellFile, CellResult, Leak, plan_cells
from coreeval.evaluation.whitebox.contamination import LEAKED
from coreeval.evaluation.whitebox.settings import StudyHeader, TrainingSettings
from coreeval.evaluation.whitebox.study_data import (
    LabelledText,
    StudyData,
    make_study,
    make_text,
)
from coreeval.evaluation.whitebox.time_estimate import (
    TimeEstimate,
    Workload,
    estimate_memory,
    estimate_time,
)
from coreeval.graph.detect import read_inputs
from coreeval.graph.evaluate import refuse_open
from coreeval.graph.execute import DEFAULT_HOOKS, build_run_context
from coreeval.graph.run import open_run, open_workspace
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import Setup
from coreeval.models.loaded_network import choose_device, choose_precision, free_device_memory
from coreeval.models.weights import Weights, find_weights, require_memory
from coreeval.runs.manifest import Manifest
from coreeval.schema import Arm, Sample
from coreeval.tools.draws import draw_lowest
from coreeval.tools.formatting import format_quantity
from coreeval.tools.workspace import RunFiles

MOST_SAMPLES: Final = 300
"""The default number of samples of each arm: the macro-F1 is then known to within 0.06."""
_SPARE: Final = 100
"""Extra items drawn from the train split, to replace texts that are also in an arm."""


@dataclass(frozen=True, kw_only=True)
class FinetuneRequest:
    """The options of a test."""

    run_dir: Path
    model: str
    arms: Sequence[Arm] = ()
    """The arms besides the originals; by default all of the run's."""
    leaks: Sequence[Leak] = ("test", "both")
    percents: Sequence[int] = (100,)
    seeds: int = 3
    samples: int = MOST_SAMPLES
    train: int | None = None
    """Items of the train split to train on; by default as many as samples."""
    held_out: int | None = None
    """Clean items of the train split; by default as many as samples."""
    training: TrainingSettings = field(default_factory=TrainingSettings)
    device: str = "auto"
    hub: bool = False


@dataclass(frozen=True, kw_only=True)
class FinetunePlan:
    """A contamination test: its model, samples, cells and result file."""

    files: RunFiles
    manifest: Manifest
    setup: Setup
    weights: Weights
    device: str
    memory: int
    """The bytes that the model needs on the device."""
    data: StudyData
    cells: Sequence[Cell]
    header: StudyHeader
    seed: int
    detector: Detector = FINETUNE

    @property
    def results(self) -> CellFile[CellResult]:
        """Return the result file."""
        folder = self.files.detector_folder(self.detector.name)
        shapes, labels = self.data.shapes, len(self.data.labels)
        return CellFile(
            folder / f"{self.header.study}.jsonl",
            self.header,
            CellResult,
            fits=lambda result: result.fits(shapes, labels),
        )

    @property
    def workload(self) -> Workload:
        """Return the computing cost of each cell."""
        return Workload(
            self.data,
            parameters=self.weights.parameters,
            training=self.header.training,
            device=self.device,
        )

    def estimate(self) -> TimeEstimate:
        """Return the expected time of the cells that are not done.

        Raises:
            RunCorrupt: a result is damaged.
        """
        return estimate_time(self.cells, self.results.read(), self.workload, self.device)


def plan_finetune(request: FinetuneRequest) -> FinetunePlan:
    """Return a contamination test on a run; nothing is loaded or written.

    Raises:
        RunStateError: there is no run, or some of its samples are unfinished.
        RunCorrupt: the earlier document is damaged.
        UsageError: the task has no labels, there are no weights, they do not fit into memory, or
            torch is not installed.
        DatasetError: the arms share too few samples or labels, or there is no train split.
    """
    files, manifest, setup = open_run(request.run_dir, None, may_repeat=True)
    read_document(files, FINETUNE)
    if setup.task.kind != "labels":
        raise UsageError(
            "detect finetune needs a task with labels, because it compares macro-F1",
            where=f"the task {setup.task.name!r} of the run",
            hint="use detect membership or detect exchangeability",
        )
    if request.samples < study_data.FEWEST:
        raise UsageError(
            f"at least {study_data.FEWEST} samples are needed, not {request.samples}",
            where="--samples",
        )
    weights = find_weights(request.model, hub=request.hub)
    if weights.is_encoder and "text" in request.leaks:
        raise UsageError(
            f"{weights.name} is an encoder, which cannot be trained on texts without labels",
            where="--leak",
            hint="omit --leak text, or use a causal language model",
        )
    device = choose_device(request.device)
    precision = choose_precision(request.training.precision, device)
    full = request.training.method == "full"
    memory = estimate_memory(weights.parameters, precision, full=full)
    require_memory(weights, memory, free_device_memory(device), device)
    workspace = open_workspace(manifest)
    with closing(build_run_context(setup, manifest, files, workspace, DEFAULT_HOOKS)) as run:
        refuse_open(run.store, files)
        data = read_study(run, request)
    return FinetunePlan(
        files=files,
        manifest=manifest,
        setup=setup,
        weights=weights,
        device=device,
        memory=memory,
        data=data,
        cells=plan_cells([*data.arms], request.leaks, request.percents, request.seeds),
        header=_make_header(weights, device, data, request.training),
        seed=setup.config.run.seed,
    )


def _make_header(
    weights: Weights, device: str, data: StudyData, training: TrainingSettings
) -> StudyHeader:
    kind = device.partition(":")[0]
    known = (weights.revision, kind, training.model_dump_json(), data.fingerprint)
    return StudyHeader(
        study=hashlib.sha256("\0".join(known).encode()).hexdigest()[:12],
        model=weights.name,
        revision=weights.revision,
        device=kind,
        training=training,
        samples=len(data.arms[LEAKED]),
        train=len(data.train),
        held_out=len(data.held_out),
        fingerprint=data.fingerprint,
        is_encoder=weights.is_encoder,
    )


def read_study(run: RunContext, request: FinetuneRequest) -> StudyData:
    """Return the samples of a contamination test on a run.

    Raises:
        UsageError: the run lacks an arm.
        DatasetError: the arms share too few samples or labels, or there is no train split.
    """
    every = [(one.sample, one.arms) for one in read_inputs(run).texts()]
    arms = _choose_arms(request.arms, {arm for _, found in every for arm in found})
    both = [(sample, found) for sample, found in every if set(arms) <= set(found)]
    require_samples(arms, [found for _, found in every], len(both))
    seed = run.config.run.seed
    drawn = draw_lowest(both, request.samples, id_of=lambda one: one[0].id, seed=seed)
    shared = {arm: [_read(run, sample, found[arm]) for sample, found in drawn] for arm in arms}
    number = len(drawn)
    train = number if request.train is None else request.train
    clean = number if request.held_out is None else request.held_out
    unused = {sample.id for sample, _ in drawn}
    others = (_read(run, sample, found[LEAKED]) for sample, found in every
              if sample.id not in unused and LEAKED in found)  # fmt: skip
    pool = _read_pool(run, train + clean, others, needed="both" in request.leaks)
    return make_study(run.task.labels, shared, pool, train=train, held_out=clean)


def _choose_arms(asked: Sequence[Arm], there: set[Arm]) -> list[Arm]:
    """Return the arms to leak, the originals first.

    Raises:
        UsageError: the run lacks an arm, or has only originals.
    """
    wanted = set(asked or there) | {LEAKED}
    chosen = [arm for arm in get_args(Arm) if arm in wanted]
    missing = [arm for arm in chosen if arm not in there]
    if missing or len(chosen) < 2:
        lacks = f"no {' and no '.join(missing)} arm" if missing else "only originals"
        raise UsageError(
            f"the run has {lacks}, so there is nothing to compare a leak of the originals with",
            where="--arm",
            hint=f"it has {', '.join(sorted(there)) or 'no texts'}; a control arm needs "
            "run.control_window",
        )
    return chosen


def require_samples(
    arms: Sequence[Arm], every: Sequence[Mapping[Arm, object]], shared: int
) -> None:
    """Check that arms share enough samples.

    Raises:
        DatasetError: they do not; the hint names arms that do.
    """
    fewest = study_data.FEWEST
    if shared >= fewest:
        return
    numbers = {
        arm: sum(LEAKED in found and arm in found for found in every)
        for arm in arms
        if arm != LEAKED
    }
    enough = [f"--arm {arm} ({number})" for arm, number in numbers.items() if number >= fewest]
    use = f"use {' or '.join(enough)}, or " if enough and len(numbers) > 1 else ""
    raise DatasetError(
        f"the arms {', '.join(arms)} share {format_quantity(shared, 'sample')}, "
        f"but {fewest} are needed",
        where="--arm",
        hint=f"{use}refresh more samples",
    )


def _read(run: RunContext, sample: Sample, fields: Mapping[str, str]) -> LabelledText:
    told = sample.model_copy(update={"fields": dict(fields)})
    return make_text(told, run.load_task_of(sample))


def _read_pool(
    run: RunContext, number: int, others: Iterator[LabelledText], *, needed: bool
) -> Sequence[LabelledText]:
    """Return samples to train on and to keep clean: from the train split, else from the run.

    Raises:
        DatasetError: a train part is needed, and there is no train split.
    """
    config = run.config
    try:
        found = iter_benchmark(config.dataset, run.task, split=config.dataset.train_split)
        samples = (row for row in found if isinstance(row, Sample))
        drawn = draw_lowest(
            samples, number + _SPARE, id_of=lambda one: one.id, seed=config.run.seed
        )
    except DatasetError as error:
        if needed:
            error.hint = f"{error.hint}; or leak only the test part: --leak test"
            raise
        return list(others)
    return [_read(run, one, one.fields) for one in drawn]
