"""What the report rests on: the stored answers of the targets, arm against arm."""

from typing import TYPE_CHECKING

from coreeval.graph.job import Job

if TYPE_CHECKING:
    from coreeval.evaluation.arm_scores import ArmTable


def compare(job: Job) -> "ArmTable":
    """Score the stored answers, arms against each other on the samples that both have."""
    from coreeval.evaluation.arm_scores import ARMS
    from coreeval.evaluation.arms import compare_arms  # numpy, for the end of a run

    gold: dict[str, str] = {}
    unrecoverable: set[str] = set()
    for sample_id, label, outcome in job.store.labels():
        gold[sample_id] = label
        if outcome == "label_unrecoverable":
            unrecoverable.add(sample_id)
    return compare_arms(
        (
            (target.model, job.store.answers(target.model, ARMS))
            for target in job.config.models.targets
        ),
        gold=gold,
        labels=[label.name for label in job.task.labels],
        unrecoverable=unrecoverable,
        seed=job.config.run.seed,
    )
