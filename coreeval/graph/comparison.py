"""What the report rests on: the stored answers of the targets, by arm, by split and by series."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from coreeval.graph.drawing import reworded_test
from coreeval.graph.job import Job
from coreeval.schema import TrainStatus
from coreeval.tools.cutoffs import cutoffs_of, dates_of

if TYPE_CHECKING:
    from coreeval.evaluation.arm_scores import ArmTable
    from coreeval.evaluation.levels import Levels
    from coreeval.evaluation.pcr.asked import Asked, Labels

Document = dict[str, Any]


def compare_arms(job: Job) -> "ArmTable":
    """Score the stored answers, arms against each other on the samples that both have."""
    from coreeval.evaluation import arms  # numpy, for the end of a run
    from coreeval.evaluation.arm_scores import ARMS

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
        seed=job.config.run.seed,
    )


def find_levels(
    job: Job, noise: float | None, pcr: Document | None, numleak: Document | None
) -> "Levels":
    """Return what the stored answers and the other detectors say of memory."""
    from coreeval.evaluation import levels  # numpy
    from coreeval.evaluation.arm_scores import ARMS
    from coreeval.evaluation.coded import code_answers

    targets = [target.model for target in job.config.models.targets]
    return levels.find_levels(
        targets,
        code_answers(
            ((target, job.store.answers(target, ARMS)) for target in targets),
            gold={sample_id: label for sample_id, label, _ in job.store.labels()},
            labels=[label.name for label in job.task.labels],
        ),
        noise=noise,
        seed=job.config.run.seed,
        pcr=pcr,
        numleak=numleak,
    )


def compare_splits(job: Job) -> Document | None:
    """Compare PCR of the train split and of the test split; None where the config wants none."""
    from coreeval.evaluation.pcr.asked import compare_asked
    from coreeval.evaluation.pcr.document import comparison_document, settings_document
    from coreeval.evaluation.pcr.study import Settings

    asked = job.config.detect.pcr
    if asked is None:
        return None
    train = {item.sample.id: item.sample.label_text for item in job.store.reworded_train()}
    test = {ended.sample.id: ended.sample.label_text for ended in reworded_test(job)}
    settings = Settings(metric=asked.metric, consistency="exact", seed=job.config.run.seed)
    found = compare_asked(dict(_asked(job, {"train": train, "test": test})), settings)
    return {
        "targets": [{"name": name, **comparison_document(one)} for name, one in found.items()],
        "items": {"train": _drawn(job), "test": _taken(job, len(test))},
        "settings": settings_document(settings, None),
    }


def audit_answers(job: Job) -> Document | None:
    """Audit what the targets said about series; None where the config names none."""
    from coreeval.evaluation.numleak.defences.document import found_document
    from coreeval.evaluation.numleak.document import numleak_document
    from coreeval.evaluation.numleak.recorded import read_replies
    from coreeval.evaluation.numleak.statistics import Settings
    from coreeval.graph.numleak.in_run import files_in_run, notes_in_run, utility_in_run
    from coreeval.graph.numleak.plan import signals_of
    from coreeval.graph.numleak.universe import open_universe

    asked = job.config.detect.numleak
    if asked is None:
        return None
    base, targets = Path(job.manifest.source.path).parent, job.config.models.targets
    universe = open_universe(asked, base=base, cache=job.workspace.series)
    files = files_in_run(job, targets).values()
    table = cutoffs_of(job.config)
    stated = {target.model: dates_of(target, table).cutoff for target in targets}
    replies = [reply for file in files if file.exists() for reply in read_replies(file).good]
    series = {one.definition.id: one for one in universe.all}
    cutoffs = {model: cutoff.last_day if cutoff else None for model, cutoff in stated.items()}
    found = numleak_document(
        replies,
        series,
        Settings(seed=job.config.run.seed),
        cutoffs,
        notes=notes_in_run(job),
        signals=signals_of(asked, base),
    )
    return found | {
        "defences": found_document(replies, utility_in_run(job, targets), series, cutoffs)
    }


def _asked(job: Job, labels: "Labels") -> "Iterator[tuple[str, Asked]]":
    """Yield each target that has answered anything, with its answers."""
    from coreeval.evaluation.pcr.asked import SOURCES, pairs_of

    sources, there = [name for both in SOURCES.values() for name in both], job.store.targets()
    for target in job.config.models.targets:
        if target.model in there:
            answers = job.store.answers(target.model, sources)
            yield target.model, pairs_of(answers, labels, job.templates_of(target))


def _drawn(job: Job) -> Document:
    """Return what became of the items of the train split."""
    counts = Counter(job.store.train_counts())
    known = {status: counts[status] for status in get_args(TrainStatus) if status != "open"}
    return {"split": job.config.compared_split, "drawn": counts.total(), **known}


def _taken(job: Job, compared: int) -> Document:
    """Return how many samples of the benchmark are compared."""
    split, total = job.config.dataset.split, job.store.total()
    return {"split": split, "samples": total, "reworded": compared}
