"""The report of a run, gathered from its stores."""

from coreeval.errors import ReleaseError
from coreeval.evaluation.report.document import Findings
from coreeval.evaluation.report.evidence import evidence_used
from coreeval.evaluation.report.worth import worth_a_look
from coreeval.graph.comparison import audit_answers, compare_arms, compare_splits, find_levels
from coreeval.graph.job import Job
from coreeval.releases.parents import find_parent
from coreeval.releases.quality import quality_of
from coreeval.releases.release_manifest import Quality


def gather_findings(job: Job) -> Findings:
    """Return what the run found, as it stands now."""
    store, manifest = job.store, job.current_manifest()
    quality = quality_of(store, job.task, withheld=(), followed=_followed_quality(job))
    arms, pcr, numleak = compare_arms(job), compare_splits(job), audit_answers(job)
    return Findings(
        manifest=manifest.model_dump(mode="json"),
        config=job.config,
        task=job.task,
        quality=quality.model_dump(mode="json"),
        overview=store.listing.overview(),
        attempts=store.attempts(),
        evidence=evidence_used(store.evidence_uses(), manifest.window),
        worth=worth_a_look(store, [target.model for target in job.config.models.measured_targets]),
        arms=arms,
        pcr=pcr,
        numleak=numleak,
        levels=find_levels(job, quality.label_noise.bound, pcr, numleak),
    )


def _followed_quality(job: Job) -> Quality | None:
    """Return the quality of the release that samples were kept from, if it is still there."""
    parent = job.manifest.parent
    if parent is None:
        return None
    try:
        release = find_parent("latest", job.config.name, (), followed=parent)
    except ReleaseError:  # what was kept then has no bound, and the report says so
        return None
    return release.manifest.quality if release else None
