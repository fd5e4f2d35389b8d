"""Collects the content of a run's report from its stores.

The stored answers of the targets are compared by arm, by split and by series.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from coreeval.errors import ReleaseError
from coreeval.evaluation.detectors.base import DOCUMENTS
from coreeval.evaluation.detectors.documents import read_documents
from coreeval.evaluation.report.definitions import find_highlights
from coreeval.evaluation.report.provenance import summarize_evidence
from coreeval.evaluation.report.report_document import ReportInput
from coreeval.graph.run_context import RunContext
from coreeval.graph.run_detectors import score_answers
from coreeval.graph.run_origin import open_followed_release
from coreeval.runs.arms import accepted_fields, original_fields, semantic_fields
from coreeval.runs.comparison import (
    ComparedRun,
    compare_arms,
    compare_with_originals,
    cut_hidden_fields,
    list_label_names,
)
from coreeval.runs.quality import Quality, measure_quality
from coreeval.schema import Arm
from coreeval.tools.draws import draw_lowest
from coreeval.tools.stores.run_overview import Overview, merge_call_sums
from coreeval.tools.stores.run_tables import SampleResult

if TYPE_CHECKING:
    from coreeval.evaluation.agreement import MemoryEvidence


_ArmFields = Callable[[SampleResult], Mapping[str, str] | None]
_FIRST_PASS: Final[Mapping[Arm, _ArmFields]] = {
    "original": original_fields,
    "semantic": semantic_fields,
    "updated": accepted_fields,
}
_SECOND_PASS: Final[Mapping[Arm, _ArmFields]] = {"control": accepted_fields}
"""The text that a pass of the run writes for a sample, by arm."""


def gather_memory_evidence(
    run: RunContext, noise: float | None, others: Mapping[str, Any]
) -> "MemoryEvidence":
    """Return the evidence of memory in the stored answers and the other detectors."""
    from coreeval.evaluation import agreement  # numpy
    from coreeval.evaluation.answer_codes import code_answers
    from coreeval.evaluation.clusters import find_clusters
    from coreeval.evaluation.decomposition import compare_arm_texts
    from coreeval.evaluation.grading import scoring_of
    from coreeval.evaluation.scores import ARMS

    targets = [target.model for target in run.config.models.targets]
    clusters = find_clusters(run.store.clusters(), run.task.shown_fields)
    return agreement.find_memory_evidence(
        [target.model for target in run.config.models.measured_targets],
        code_answers(
            ((target, run.store.answers(target, ARMS)) for target in targets),
            gold={sample_id: label for sample_id, label, _ in run.store.labels()},
            labels=list_label_names(run.store, run.task),
            clusters=clusters,
            graded=scoring_of(run.task).grade is not None,
        ),
        texts=compare_arm_texts(_collect_arm_texts(run), clusters) if run.control else None,
        references=[each.model for each in run.config.models.targets if each.role == "reference"],
        noise=noise,
        seed=run.config.run.seed,
        others=others,
    )


def _collect_arm_texts(run: RunContext) -> "dict[Arm, dict[str, str]]":
    """Return the texts by arm and sample, for the samples accepted in both passes.

    A fixed subset of at most as many samples as are compared; only their texts are in memory.
    """
    from coreeval.evaluation.covariates import MOST

    control = run.control.store if run.control else run.store
    there = {key for key, _, outcome in control.labels() if outcome == "accepted"}
    both = (key for key, _, outcome in run.store.labels() if outcome == "accepted" and key in there)
    drawn = set(draw_lowest(both, MOST, id_of=str, seed=run.config.run.seed))
    texts: dict[Arm, dict[str, str]] = {arm: {} for arm in get_args(Arm)}
    for store, arms in ((run.store, _FIRST_PASS), (control, _SECOND_PASS)):
        for ended in store.sample_results(("accepted",)):
            for arm, fields_of in arms.items():
                fields = fields_of(ended) if ended.sample.id in drawn else None
                if fields:
                    shown = cut_hidden_fields(run.task, fields)
                    texts[arm][ended.sample.id] = "\n".join(shown.values())
    return texts


def open_compared_run(run: RunContext) -> ComparedRun:
    """Return what the comparison of a run's arms needs."""
    return ComparedRun(
        store=run.store,
        task=run.task,
        targets={each.model: each.role for each in run.config.models.targets},
        seed=run.config.run.seed,
    )


def gather_findings(run: RunContext) -> ReportInput:
    """Return the run's findings so far."""
    store, manifest = run.store, run.current_manifest()
    quality = measure_quality(store, run.task, withheld=(), followed=_read_parent_quality(run))
    compared = open_compared_run(run)
    alike, arms = compare_with_originals(compared), compare_arms(compared)
    parts = score_answers(run)
    documents = read_documents(run.files)
    return ReportInput(
        manifest=manifest.model_dump(mode="json"),
        config=run.config,
        task=run.task,
        quality=quality.model_dump(mode="json"),
        overview=_summarize_run(run),
        attempts=store.figures.attempts(),
        evidence=summarize_evidence(store.figures.evidence_uses(), manifest.window),
        worth=find_highlights(
            store, [target.model for target in run.config.models.measured_targets]
        ),
        arms=arms,
        comparability=alike.model_dump(mode="json") if alike else None,
        parts=parts,
        documents=documents,
        levels=gather_memory_evidence(
            run, quality.label_noise.bound, {**parts, DOCUMENTS: documents}
        ),
    )


def _summarize_run(run: RunContext) -> Overview:
    """Return the overview of the run, with the calls of both passes."""
    found = run.store.listing.overview()
    if run.control is None:
        return found
    passes = (found.calls, run.control.store.listing.overview().calls)
    return found.model_copy(update={"calls": merge_call_sums(passes)})


def _read_parent_quality(run: RunContext) -> Quality | None:
    """Return the quality of the release that samples were kept from, if it still exists."""
    parent = run.manifest.parent
    if parent is None:
        return None
    try:
        release = open_followed_release(parent, run.config.name, run.workspace)
    except ReleaseError:  # kept samples then have no bound on label noise, and the report says so
        return None
    return release.manifest.quality
