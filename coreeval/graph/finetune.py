"""Runs a contamination test: trains a model cell by cell, and stores the results with the run.

Each cell is one result in a file, so a stop or a kill loses only the cell in progress. Processes on
several devices may share a test: each takes free cells and waits for the rest.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from coreeval.evaluation.whitebox.cells import Cell, CellResult
from coreeval.evaluation.whitebox.contamination import ContaminationFinding, judge_contamination
from coreeval.evaluation.whitebox.deltas import PerformanceTable
from coreeval.evaluation.whitebox.study_data import choose_training
from coreeval.evaluation.whitebox.training import trained
from coreeval.graph.campaign import explain_stop
from coreeval.graph.cell_work import WAIT_S, finish_cells, load_labeller_once, watch_stage
from coreeval.graph.detect import Detection, keep_findings
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks
from coreeval.graph.finetune_plan import FinetunePlan
from coreeval.graph.run import lock_opened_run
from coreeval.models.loaded_network import LoadedNetwork

STAGE: Final = "detect finetune"
_PUBLISH: Final = "finding"
"""The name under which a process claims the writing of the finding."""


def run_finetune(plan: FinetunePlan, *, around: RunHooks = DEFAULT_HOOKS) -> Detection:
    """Train the remaining cells, and write the finding and a new report into the run.

    Raises:
        Interrupted: a signal stopped it; the same call continues.
        RunError: the device ran out of memory; results are kept.
        RunLocked: another process is using the run.
    """
    with explain_stop(plan.files.root):
        finish_cells(plan, _make_work(plan, around), around, stage=STAGE)
        finding = judge_results(plan)
        found = {plan.weights.name: finding.model_dump(mode="json")}
        while True:
            with plan.results.claim(_PUBLISH) as mine:
                if mine:
                    with lock_opened_run(plan.files, plan.manifest, plan.setup):
                        return keep_findings(plan, found, around)
            time.sleep(WAIT_S)


def judge_results(plan: FinetunePlan) -> ContaminationFinding:
    """Return the finding of a test whose cells are all done.

    Raises:
        RunCorrupt: a result is damaged.
    """
    done = plan.results.read()
    results = {cell: done[cell] for cell in plan.cells}
    table = PerformanceTable(
        plan.data.measured_parts, len(plan.data.labels), results, seed=plan.seed
    )
    return judge_contamination(table, plan.header, [*results.values()])


def _make_work(plan: FinetunePlan, around: RunHooks) -> Callable[[Cell], CellResult]:
    """Return the function that computes a cell; the model is freed with it."""
    training, labels = plan.header.training, plan.data.labels
    model = load_labeller_once(plan.weights, plan.device, plan.memory, training, labels)
    return partial(_train_cell, plan, around, model)


def _train_cell(
    plan: FinetunePlan, around: RunHooks, open_model: Callable[[], LoadedNetwork[Any]], cell: Cell
) -> CellResult:
    """Train a model for a cell, and ask it."""
    model, settings, labels = open_model(), plan.header.training, plan.data.labels
    items, began = choose_training(plan.data, cell), time.monotonic()
    watch = watch_stage(around, f"training {cell.key}")
    with trained(model, items, labels, settings, seed=cell.seed, on_batch=watch):
        asking = watch_stage(around, f"evaluating after {cell.key}")
        answers = ask_parts(model, plan, batch=settings.batch, on_part=asking)
    return CellResult(
        cell=cell,
        answers=answers,
        seconds=time.monotonic() - began,
        work=plan.workload.of_cell(cell),
    )


def ask_parts(
    model: LoadedNetwork[Any],
    plan: FinetunePlan,
    *,
    batch: int,
    on_part: Callable[[int, int], None],
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the number of the most probable label of each sample, by part and template.

    Args:
        model: The model in its current state.
        plan: The samples.
        batch: The number of questions per batch.
        on_part: Receives the number of finished parts and their total.
    """
    labels, found = plan.data.labels, dict[str, tuple[tuple[int, ...], ...]]()
    for name, part in plan.data.parts.items():
        number = len(part[0].prompts)
        prompts = [one.prompts[at] for at in range(number) for one in part]
        scores = model.score_labels(prompts, labels, batch=batch)
        said = np.argmax(scores, axis=1).reshape(number, len(part))
        found[name] = tuple(tuple(map(int, line)) for line in said)
        on_part(len(found), len(plan.data.parts))
    return found
