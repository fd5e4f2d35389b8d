"""Plans and runs a dose response: a model is trained on the values of a series and ranks them.

A plan loads and writes nothing. Results are stored cell by cell.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from coreeval.errors import UsageError
from coreeval.evaluation.numleak.series import open_series
from coreeval.evaluation.numleak.statistics.logprobs import RankingCandidate
from coreeval.evaluation.whitebox.cells import CellFile
from coreeval.evaluation.whitebox.dose_data import (
    GENERATED,
    DoseCell,
    DoseData,
    DoseResult,
    DoseWork,
    list_training,
    make_doses,
)
from coreeval.evaluation.whitebox.dose_response import (
    DoseResponse,
    measure_response,
    to_candidates,
)
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.time_estimate import TimeEstimate, estimate_memory, estimate_time
from coreeval.evaluation.whitebox.training import trained
from coreeval.graph.campaign import explain_stop
from coreeval.graph.cell_work import finish_cells, load_once, watch_stage
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks
from coreeval.models.generation import Sampling, generate
from coreeval.models.loaded_network import choose_device, choose_precision, free_device_memory
from coreeval.models.local_model import LocalModel
from coreeval.models.weights import Weights, find_weights, require_memory
from coreeval.schema import Value
from coreeval.tools.files import write_text
from coreeval.tools.outputs import refuse_foreign_file
from coreeval.tools.workspace import workspace_for

STAGE: Final = "detect dose"
RANKINGS: Final = "rankings.jsonl"
DOSES: Final = (0, 1, 4, 16, 64)
TRAINING: Final = TrainingSettings(epochs=1, learning_rate=2e-4)
"""The learning rate, rank and adapters are the paper's (appendix T); an epoch reads each sentence
as often as its dose says."""


@dataclass(frozen=True, kw_only=True)
class DoseRequest:
    """The options of a study."""

    model: str
    series: str
    out: Path
    """The folder of the results."""
    doses: Sequence[int] = DOSES
    """Empty: the model ranks without training."""
    seeds: int = 3
    dates: int = 30
    seed: int = 0
    training: TrainingSettings = field(default_factory=lambda: TRAINING)
    device: str = "auto"
    hub: bool = False


class DoseHeader(Value):
    """The definition of a study: the first line of its result file."""

    study: str
    model: str
    revision: str
    device: str
    training: TrainingSettings
    series: str
    dates: int
    largest: int
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class DosePlan:
    """A dose response: its texts, doses and result file."""

    request: DoseRequest
    weights: Weights
    device: str
    memory: int
    data: DoseData
    cells: Sequence[DoseCell]
    header: DoseHeader

    @property
    def results(self) -> CellFile[DoseResult]:
        """Return the result file."""
        path = self.request.out / f"{self.header.study}.jsonl"
        return CellFile(path, self.header, DoseResult, fits=self.data.fits)

    @property
    def rankings(self) -> Path:
        """Return the file of all candidates' log-probabilities."""
        return self.request.out / RANKINGS

    @property
    def work(self) -> DoseWork:
        """Return the computing cost of each cell."""
        return DoseWork(
            data=self.data,
            parameters=self.weights.parameters,
            training=self.header.training,
            device=self.device,
            largest=self.header.largest,
        )

    def estimate(self) -> TimeEstimate:
        """Return the expected time of the cells that are not done.

        Raises:
            RunCorrupt: a result is damaged.
        """
        return estimate_time(self.cells, self.results.read(), self.work, self.device)


def plan_doses(request: DoseRequest) -> DosePlan:
    """Return a dose response; nothing is loaded or written.

    Raises:
        UsageError: the weights do not exist or do not fit into memory, torch is not installed, or
            the folder has rankings that CoreEval did not write.
        ConfigError: the series does not exist.
        DatasetError: its values cannot be read, or are too few.
    """
    refuse_foreign_file(request.out / RANKINGS, _write_again)
    weights = find_weights(request.model, hub=request.hub)
    device = choose_device(request.device)
    precision = choose_precision(request.training.precision, device)
    full = request.training.method == "full"
    memory = estimate_memory(weights.parameters, precision, full=full)
    require_memory(weights, memory, free_device_memory(device), device)
    base = Path.cwd()
    series = open_series(request.series, base=base, cache=workspace_for(base).series)
    data = make_doses(series, dates=request.dates, seed=request.seed)
    doses = sorted(set(request.doses))
    trained_cells = [
        DoseCell(dose=dose, seed=seed) for seed in range(request.seeds) for dose in doses
    ]
    return DosePlan(
        request=request,
        weights=weights,
        device=device,
        memory=memory,
        data=data,
        cells=[DoseCell(dose=None), *trained_cells],
        header=_make_header(request, weights, device, data, max(doses, default=0)),
    )


def _write_again(line: str) -> str:
    return RankingCandidate.model_validate_json(line).model_dump_json()


def _make_header(
    request: DoseRequest, weights: Weights, device: str, data: DoseData, largest: int
) -> DoseHeader:
    kind = device.partition(":")[0]
    known = (
        weights.revision,
        kind,
        request.training.model_dump_json(),
        str(largest),
        data.fingerprint,
    )
    return DoseHeader(
        study=hashlib.sha256("\0".join(known).encode()).hexdigest()[:12],
        model=weights.name,
        revision=weights.revision,
        device=kind,
        training=request.training,
        series=data.series,
        dates=len(data.statements),
        largest=largest,
        fingerprint=data.fingerprint,
    )


@dataclass(frozen=True, kw_only=True)
class DoseFinding:
    """The result of a dose response."""

    response: DoseResponse
    rankings: Path
    """The log-probabilities of all candidates, for `detect numleak --rankings`."""


def run_doses(plan: DosePlan, *, around: RunHooks = DEFAULT_HOOKS) -> DoseFinding:
    """Train the remaining cells and return the result.

    Raises:
        Interrupted: a signal stopped it; the same call continues.
        RunError: the device ran out of memory; results are kept.
        RunCorrupt: a result is damaged.
    """
    with explain_stop(plan.request.out):
        finish_cells(plan, _make_work(plan, around), around, stage=STAGE)
    done = plan.results.read()
    results = [done[cell] for cell in plan.cells]
    lines = (
        one.model_dump_json()
        for result in results
        for one in to_candidates(plan.data, result, plan.weights.name)
    )
    write_text(plan.rankings, "".join(f"{line}\n" for line in lines))
    response = measure_response(plan.data, results, seed=plan.request.seed)
    return DoseFinding(response=response, rankings=plan.rankings)


def _make_work(plan: DosePlan, around: RunHooks) -> Callable[[DoseCell], DoseResult]:
    """Return the function that computes a cell; the model is freed with it."""
    model = load_once(plan.weights, plan.device, plan.memory, plan.header.training)
    return partial(_train_cell, plan, around, model)


def _train_cell(
    plan: DosePlan, around: RunHooks, open_model: Callable[[], LocalModel], cell: DoseCell
) -> DoseResult:
    """Train a model for a cell, and rank the candidates."""
    model, settings = open_model(), plan.header.training
    items, began = list_training(plan.data, cell, plan.header.largest), time.monotonic()
    watch = watch_stage(around, f"training {cell.key}")
    with trained(model, items, (), settings, seed=cell.seed, on_batch=watch):
        logprobs, said = rank_in_weights(model, plan.data, batch=settings.batch)
    return DoseResult(
        cell=cell,
        logprobs=tuple(logprobs),
        said=tuple(said),
        seconds=time.monotonic() - began,
        work=plan.work.of_cell(cell),
    )


def rank_in_weights(
    model: LocalModel, data: DoseData, *, batch: int
) -> tuple[list[dict[str, float]], list[str]]:
    """Return the mean log-probability of each candidate by date, and greedy continuations.

    Args:
        model: The model in its current state.
        data: The dates and their candidates.
        batch: The number of sentences per batch.

    Raises:
        RunError: the device is out of memory.
    """
    begun = [list(model.encode_text(one.begun).tokens) for one in data.statements]
    logprobs, said = list[dict[str, float]](), list[str]()
    with model.guarded(batch):
        for question, one in zip(begun, data.statements, strict=True):
            endings = [model.encode_ending(text) for text in one.candidates.values()]
            (scores,) = model.score_endings([question], endings, batch=1)
            pairs = zip(one.candidates, scores, endings, strict=True)
            logprobs.append({kind: float(log) / len(tokens) for kind, log, tokens in pairs})
        way = Sampling(max_tokens=GENERATED)
        for start in range(0, len(begun), batch):
            some = begun[start : start + batch]
            said += [one.text for one in generate(model, some, [way] * len(some))]
    return logprobs, said


def require_doses(doses: Sequence[int], *, untrained: bool) -> tuple[int, ...]:
    """Return the doses to train; none for a model that ranks without training.

    Raises:
        UsageError: doses are given for a model that is not trained.
    """
    if untrained and doses:
        raise UsageError(
            "an untrained model has no dose",
            where="--untrained",
            hint="omit --dose or --untrained",
        )
    return () if untrained else tuple(doses or DOSES)
