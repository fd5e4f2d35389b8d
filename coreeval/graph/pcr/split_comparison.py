"""Compares the stored answers about the train and test splits of a run."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from coreeval.evaluation.grading import scoring_of
from coreeval.graph.pcr.split_questions import list_reworded_test
from coreeval.graph.run_context import RunContext
from coreeval.schema import Sample, TrainStatus

if TYPE_CHECKING:
    from coreeval.evaluation.pcr.pairs_from_run import Labels, RunPairs
    from coreeval.evaluation.pcr.replicates import FileReplicates
    from coreeval.evaluation.pcr.study import PcrSettings


def compare_splits(run: RunContext) -> dict[str, Any] | None:
    """Compare PCR of the train split and the test split; return None if PCR is not configured."""
    from coreeval.evaluation.clusters import find_clusters
    from coreeval.evaluation.covariates import describe_unlike_splits
    from coreeval.evaluation.pcr.comparison import compare, list_references
    from coreeval.evaluation.pcr.comparison_document import (
        comparison_document,
        reference_document,
        settings_document,
    )
    from coreeval.evaluation.pcr.study import PcrSettings

    asked = run.config.detect.pcr
    if asked is None:
        return None
    splits = _list_compared_samples(run)
    samples = [one for each in splits.values() for one in each]
    clusters = find_clusters(
        ((one.id, one.cluster, one.fields) for one in samples), run.task.shown_fields
    )
    settings = PcrSettings(
        metric=asked.metric,
        consistency=asked.consistency or scoring_of(run.task).consistency,
        seed=run.config.run.seed,
        exchangeable=asked.exchangeable_splits,
    )
    answered = _resample_answers(run, splits, clusters, settings)
    tested = {target.model for target in run.config.models.measured_targets}
    references = {name: each for name, each in answered.items() if name not in tested}
    found = compare(
        {name: each for name, each in answered.items() if name in tested},
        settings.split_pair,
        settings.form,
        references=references,
        exchangeable=settings.exchangeable,
        covariates=describe_unlike_splits(
            {
                name: [(_join_fields(one), clusters[one.id]) for one in each]
                for name, each in splits.items()
            }
        ),
    )
    listed = list_references(references, settings.split_pair, settings.form)
    return {
        "targets": [{"name": name, **comparison_document(one)} for name, one in found.items()],
        "references": [{"name": name, **reference_document(one)} for name, one in listed.items()],
        "items": {
            "train": _count_train_outcomes(run),
            "test": _count_compared(run, len(splits["test"])),
        },
        "settings": settings_document(settings, None),
    }


def _resample_answers(
    run: RunContext,
    splits: dict[str, list[Sample]],
    clusters: Mapping[str, str],
    settings: "PcrSettings",
) -> "dict[str, FileReplicates]":
    """Return each target's answers in both splits, as bootstrap replicates."""
    from coreeval.evaluation.pcr.pairs_from_run import resample_run_pairs

    labels = {name: {one.id: one.label_text for one in each} for name, each in splits.items()}
    return {
        name: resample_run_pairs(each, settings)
        for name, each in _iter_target_answers(run, labels, clusters, settings.metric)
    }


def _join_fields(sample: Sample) -> str:
    return "\n".join(sample.fields.values())


def _list_compared_samples(run: RunContext) -> dict[str, list[Sample]]:
    """Return the compared samples of each split: those with a reworded text."""
    return {
        "train": [item.sample for item in run.store.train.rewordings()],
        "test": [ended.sample for ended in list_reworded_test(run)],
    }


def _iter_target_answers(
    run: RunContext, labels: "Labels", clusters: Mapping[str, str], metric: str
) -> "Iterator[tuple[str, RunPairs]]":
    """Yield each target that has given any answer, with its answers."""
    from coreeval.evaluation.pcr.pairs_from_run import SOURCES, collect_pairs

    graded = scoring_of(run.task).grade is not None
    grade: Literal["right", "score"] | None = None
    if graded:
        grade = "right" if metric == "accuracy" else "score"
    sources, there = [name for both in SOURCES.values() for name in both], run.store.targets()
    for target in run.config.models.targets:
        if target.model in there:
            answers = run.store.answers(target.model, sources)
            templates = run.list_templates(target)
            pairs = collect_pairs(answers, labels, templates, clusters, grade=grade)
            yield target.model, pairs


def _count_train_outcomes(run: RunContext) -> dict[str, Any]:
    """Return the number of train split items by outcome."""
    counts = Counter(run.store.train.counts())
    known = {status: counts[status] for status in get_args(TrainStatus) if status != "open"}
    return {"split": run.config.pcr_train_split, "drawn": counts.total(), **known}


def _count_compared(run: RunContext, compared: int) -> dict[str, Any]:
    """Return the number of compared samples of the benchmark."""
    split, total = run.config.dataset.split, run.store.total()
    return {"split": split, "samples": total, "reworded": compared}
