"""The samples of a run or a release that could be rated, with what stands beside their texts."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.annotation.rating_study import (
    RATED_ARMS,
    NewsExcerpt,
    RatedArm,
    RatingCandidate,
)
from coreeval.releases.exports.material import ExportedSample, Material
from coreeval.releases.originals import load_originals
from coreeval.releases.review import decided
from coreeval.schema import Task


def pool_of(material: Material, originals: Path | None) -> list[RatingCandidate]:
    """Return the accepted samples: only they have an updated text, and news beside it.

    Those that a person rejected are left out, as a release leaves them out.

    Args:
        material: The run or the release.
        originals: The benchmark, where a release may not pass its texts on; None for where its
            config says.

    Raises:
        UsageError: the originals are not there.
        ReleaseError: they are others than the release was made from.
    """
    fetched = _originals(material, originals)
    evidence = _evidence(material)
    rejected = decided(material.path).rejected if material.kind == "run" else frozenset()
    return [
        _candidate(material.task_of(sample.id), sample, texts, evidence[sample.id])
        for sample in material.samples()
        if sample.id not in rejected
        and (texts := _texts(sample, fetched)).keys() >= {"original", "updated"}
    ]


def _originals(material: Material, place: Path | None) -> Mapping[str, dict[str, str]]:
    if material.kind == "run":
        return {}
    try:
        return {each.id: each.fields for each in load_originals(material.path, place)}
    except DatasetError as error:
        raise UsageError(
            f"the release does not hold the benchmark's own texts, and {error.message}",
            where=error.where or str(material.path),
            hint="say where the benchmark is: --originals FOLDER_OR_FILE",
        ) from None


def _texts(
    sample: ExportedSample, fetched: Mapping[str, dict[str, str]]
) -> dict[RatedArm, dict[str, str]]:
    found = {arm: sample.texts(arm) for arm in RATED_ARMS}
    found["original"] = found["original"] or fetched.get(sample.id)
    return {arm: fields for arm, fields in found.items() if fields}


def _evidence(material: Material) -> Mapping[str, tuple[NewsExcerpt, ...]]:
    """Return the news of each sample's facts, each piece once, in the order of their days."""
    found: dict[str, dict[str, NewsExcerpt]] = defaultdict(dict)
    for fact in material.facts():
        found[fact.id][fact.evidence_id] = NewsExcerpt(
            published_at=fact.published_at,
            domain=fact.domain,
            url=fact.url,
            snippet=fact.snippet,
        )
    ordered = {
        sample: sorted(by.values(), key=lambda one: (one.published_at, one.url))
        for sample, by in found.items()
    }
    return defaultdict(tuple, {sample: tuple(some) for sample, some in ordered.items()})


def _candidate(
    task: Task,
    sample: ExportedSample,
    texts: dict[RatedArm, dict[str, str]],
    evidence: tuple[NewsExcerpt, ...],
) -> RatingCandidate:
    meanings = {label.name: label.meaning for label in task.labels}
    return RatingCandidate(
        sample=sample.id,
        label=sample.label_text,
        meaning=meanings.get(sample.label_text, ""),
        question=Template(task.question).safe_substitute(target=task.target or ""),
        texts=texts,
        evidence=evidence,
    )


def texts_of(
    material: Material, originals: Path | None
) -> Iterator[tuple[str, Mapping[RatedArm, dict[str, str]]]]:
    """Yield each sample with its texts by arm.

    Raises:
        UsageError: the originals are not there.
    """
    fetched = _originals(material, originals)
    return ((sample.id, _texts(sample, fetched)) for sample in material.samples())
