"""What the report of a run rests on, gathered from its stores.

The stored answers of the targets are compared by arm, by split and by series.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from coreeval.errors import ReleaseError
from coreeval.evaluation.detectors.base import DOCUMENTS
from coreeval.evaluation.detectors.documents import read_documents
from coreeval.evaluation.report.definitions import find_highlights
from coreeval.evaluation.report.provenance import summarize_evidence
from coreeval.evaluation.report.report_document import ReportInput
from coreeval.graph.comparability import compare_with_originals
from coreeval.graph.run_context import RunContext
from coreeval.graph.train_split import draw_lowest, list_reworded_test
from coreeval.releases.sources import find_parent
from coreeval.runs.arms import accepted_fields, original_fields, semantic_fields
from coreeval.runs.quality import Quality, measure_quality
from coreeval.schema import Arm, Sample, TrainStatus
from coreeval.tools.cutoffs import find_target_dates, load_run_cutoffs
from coreeval.tools.stores.run_tables import SampleResult

if TYPE_CHECKING:
    from coreeval.evaluation.agreement import MemoryEvidence
    from coreeval.evaluation.pcr.pairs_from_run import Labels, RunPairs
    from coreeval.evaluation.pcr.replicates import FileReplicates
    from coreeval.evaluation.pcr.study import PcrSettings
    from coreeval.evaluation.scores import ArmTable


ReportDocument = dict[str, Any]
_ArmFields = Callable[[SampleResult], Mapping[str, str] | None]
_FIRST_PASS: Final[Mapping[Arm, _ArmFields]] = {
    "original": original_fields,
    "semantic": semantic_fields,
    "updated": accepted_fields,
}
_SECOND_PASS: Final[Mapping[Arm, _ArmFields]] = {"control": accepted_fields}
"""The text that a pass of the run writes for a sample, by arm."""


def compare_arms(job: RunContext) -> "ArmTable":
    """Score the stored answers and compare arms on the samples that both have."""
    from coreeval.evaluation import arms  # numpy, for the end of a run
    from coreeval.evaluation.answer_codes import find_clusters
    from coreeval.evaluation.scores import ARMS

    gold: dict[str, str] = {}
    unrecoverable: set[str] = set()
    for sample_id, label, outcome in job.store.labels():
        gold[sample_id] = label
        if outcome == "label_unrecoverable":
            unrecoverable.add(sample_id)
    return arms.compare_arms(
        (
            (target.model, job.store.answers(target.model, ARMS))
            for target in job.config.models.targets
        ),
        gold=gold,
        labels=[label.name for label in job.task.labels],
        unrecoverable=unrecoverable,
        clusters=find_clusters(job.store.clusters()),
        seed=job.config.run.seed,
    )


def gather_memory_evidence(
    job: RunContext, noise: float | None, others: Mapping[str, Any]
) -> "MemoryEvidence":
    """Return the evidence of memory in the stored answers and the other detectors."""
    from coreeval.evaluation import agreement  # numpy
    from coreeval.evaluation.answer_codes import code_answers, find_clusters
    from coreeval.evaluation.decomposition import compare_arm_texts
    from coreeval.evaluation.scores import ARMS

    targets = [target.model for target in job.config.models.targets]
    clusters = find_clusters(job.store.clusters())
    return agreement.find_memory_evidence(
        [target.model for target in job.config.models.measured_targets],
        code_answers(
            ((target, job.store.answers(target, ARMS)) for target in targets),
            gold={sample_id: label for sample_id, label, _ in job.store.labels()},
            labels=[label.name for label in job.task.labels],
            clusters=clusters,
        ),
        texts=compare_arm_texts(_collect_arm_texts(job), clusters) if job.control else None,
        references=[each.model for each in job.config.models.targets if each.role == "reference"],
        noise=noise,
        seed=job.config.run.seed,
        others=others,
    )


def _collect_arm_texts(job: RunContext) -> "dict[Arm, dict[str, str]]":
    """Return the texts by arm and sample, for the samples accepted in both passes.

    At most as many samples as are compared are drawn, always the same; only their texts are in
    memory.
    """
    from coreeval.evaluation.covariates import MOST

    control = job.control.store if job.control else job.store
    there = {key for key, _, outcome in control.labels() if outcome == "accepted"}
    both = (key for key, _, outcome in job.store.labels() if outcome == "accepted" and key in there)
    drawn = set(draw_lowest(both, MOST, id_of=str, seed=job.config.run.seed))
    texts: dict[Arm, dict[str, str]] = {arm: {} for arm in get_args(Arm)}
    for store, arms in ((job.store, _FIRST_PASS), (control, _SECOND_PASS)):
        for ended in store.sample_results(("accepted",)):
            for arm, fields_of in arms.items():
                fields = fields_of(ended) if ended.sample.id in drawn else None
                if fields:
                    texts[arm][ended.sample.id] = "\n".join(fields.values())
    return texts


def compare_splits(job: RunContext) -> ReportDocument | None:
    """Compare PCR of the train split and the test split; return None if PCR is not configured."""
    from coreeval.evaluation.covariates import describe_unlike_splits
    from coreeval.evaluation.pcr.comparison import compare, list_references
    from coreeval.evaluation.pcr.comparison_document import (
        comparison_document,
        reference_document,
        settings_document,
    )
    from coreeval.evaluation.pcr.study import PcrSettings

    asked = job.config.detect.pcr
    if asked is None:
        return None
    splits = _list_compared_samples(job)
    settings = PcrSettings(
        metric=asked.metric,
        consistency="exact",
        seed=job.config.run.seed,
        exchangeable=asked.exchangeable_splits,
    )
    answered = _resample_answers(job, splits, settings)
    tested = {target.model for target in job.config.models.measured_targets}
    references = {name: each for name, each in answered.items() if name not in tested}
    found = compare(
        {name: each for name, each in answered.items() if name in tested},
        settings.split_pair,
        settings.form,
        references=references,
        exchangeable=settings.exchangeable,
        covariates=describe_unlike_splits(
            {name: [_join_fields(one) for one in each] for name, each in splits.items()}
        ),
    )
    listed = list_references(references, settings.split_pair, settings.form)
    return {
        "targets": [{"name": name, **comparison_document(one)} for name, one in found.items()],
        "references": [{"name": name, **reference_document(one)} for name, one in listed.items()],
        "items": {
            "train": _count_train_outcomes(job),
            "test": _count_compared(job, len(splits["test"])),
        },
        "settings": settings_document(settings, None),
    }


def _resample_answers(
    job: RunContext, splits: dict[str, list[Sample]], settings: "PcrSettings"
) -> "dict[str, FileReplicates]":
    """Return each target's answers in both splits, as bootstrap replicates."""
    from coreeval.evaluation.answer_codes import find_clusters
    from coreeval.evaluation.pcr.pairs_from_run import resample_run_pairs

    labels = {name: {one.id: one.label_text for one in each} for name, each in splits.items()}
    samples = [one for each in splits.values() for one in each]
    clusters = find_clusters((one.id, one.cluster, one.fields) for one in samples)
    return {
        name: resample_run_pairs(each, settings)
        for name, each in _iter_target_answers(job, labels, clusters)
    }


def _join_fields(sample: Sample) -> str:
    return "\n".join(sample.fields.values())


def _list_compared_samples(job: RunContext) -> dict[str, list[Sample]]:
    """Return the compared samples of each split: those with a reworded text."""
    return {
        "train": [item.sample for item in job.store.train.rewordings()],
        "test": [ended.sample for ended in list_reworded_test(job)],
    }


def audit_answers(job: RunContext) -> ReportDocument | None:
    """Audit the targets' answers about series; return None if the config names no series."""
    from coreeval.evaluation.numleak.audit import numleak_document
    from coreeval.evaluation.numleak.defences.effects import defence_replies_document
    from coreeval.evaluation.numleak.replies import read_replies
    from coreeval.evaluation.numleak.statistics import AuditSettings
    from coreeval.graph.numleak.plan import load_signals, open_series_set
    from coreeval.graph.numleak.run_audit import list_reply_files, list_run_notes, read_run_utility

    asked = job.config.detect.numleak
    if asked is None:
        return None
    base, targets = Path(job.manifest.source.path).parent, job.config.models.targets
    universe = open_series_set(asked, base=base, cache=job.workspace.series)
    files = list_reply_files(job, targets).values()
    table = load_run_cutoffs(job.config)
    stated = {target.model: find_target_dates(target, table).cutoff for target in targets}
    replies = [reply for file in files if file.exists() for reply in read_replies(file).good]
    series = {one.definition.id: one for one in universe.all}
    cutoffs = {model: cutoff.last_day if cutoff else None for model, cutoff in stated.items()}
    found = numleak_document(
        replies,
        series,
        AuditSettings(seed=job.config.run.seed),
        cutoffs,
        notes=list_run_notes(job),
        signals=load_signals(asked, base),
    )
    return found | {
        "defences": defence_replies_document(
            replies, read_run_utility(job, targets), series, cutoffs
        )
    }


def _iter_target_answers(
    job: RunContext, labels: "Labels", clusters: Mapping[str, str]
) -> "Iterator[tuple[str, RunPairs]]":
    """Yield each target that has given any answer, with its answers."""
    from coreeval.evaluation.pcr.pairs_from_run import SOURCES, collect_pairs

    sources, there = [name for both in SOURCES.values() for name in both], job.store.targets()
    for target in job.config.models.targets:
        if target.model in there:
            answers = job.store.answers(target.model, sources)
            yield target.model, collect_pairs(answers, labels, job.list_templates(target), clusters)


def _count_train_outcomes(job: RunContext) -> ReportDocument:
    """Return the number of train split items by outcome."""
    counts = Counter(job.store.train.counts())
    known = {status: counts[status] for status in get_args(TrainStatus) if status != "open"}
    return {"split": job.config.pcr_train_split, "drawn": counts.total(), **known}


def _count_compared(job: RunContext, compared: int) -> ReportDocument:
    """Return the number of compared samples of the benchmark."""
    split, total = job.config.dataset.split, job.store.total()
    return {"split": split, "samples": total, "reworded": compared}


_PARTS: Final[Mapping[str, Callable[[RunContext], ReportDocument | None]]] = {
    "pcr": compare_splits,
    "numleak": audit_answers,
}
"""How the stored answers about anything but the arms are scored, by the part of the report."""


def gather_findings(job: RunContext) -> ReportInput:
    """Return the run's findings so far."""
    store, manifest = job.store, job.current_manifest()
    quality = measure_quality(store, job.task, withheld=(), followed=_read_parent_quality(job))
    alike = compare_with_originals(job)
    arms, parts = compare_arms(job), {name: score(job) for name, score in _PARTS.items()}
    documents = read_documents(job.files)
    return ReportInput(
        manifest=manifest.model_dump(mode="json"),
        config=job.config,
        task=job.task,
        quality=quality.model_dump(mode="json"),
        overview=store.listing.overview(),
        attempts=store.figures.attempts(),
        evidence=summarize_evidence(store.figures.evidence_uses(), manifest.window),
        worth=find_highlights(
            store, [target.model for target in job.config.models.measured_targets]
        ),
        arms=arms,
        comparability=alike.model_dump(mode="json") if alike else None,
        parts=parts,
        documents=documents,
        levels=gather_memory_evidence(
            job, quality.label_noise.bound, {**parts, DOCUMENTS: documents}
        ),
    )


def _read_parent_quality(job: RunContext) -> Quality | None:
    """Return the quality of the release that samples were kept from, if it still exists."""
    parent = job.manifest.parent
    if parent is None:
        return None
    try:
        release = find_parent("latest", job.config.name, (), followed=parent)
    except ReleaseError:  # what was kept then has no bound, and the report says so
        return None
    return release.manifest.quality if release else None
