"""A release as a JSON document."""

from typing import Any

from coreeval.errors import ReleaseError
from coreeval.releases.release import Release, read_release
from coreeval.releases.verify import find_parent_folder


def build_release_document(made: Release) -> dict[str, Any]:
    """Return the `coreeval release --json` output for a release."""
    manifest = made.manifest.model_dump(mode="json")
    keys = ("name", "version", "created_at", "parent", "counts", "arms", "quality", "licence")
    more = ("review", "takedown", "still_stale", "changelog", "sources")
    return {
        "release": str(made.path),
        "digest": made.digest,
        **{key: manifest[key] for key in (*keys, *more)},
        "comparability": describe_comparability(made),
        "offline_roles": manifest["ruled"],
        "other_samples": count_other_samples(made),
    }


def count_other_samples(made: Release) -> dict[str, int] | None:
    """Return how many samples of the parent are missing, and how many are new.

    Return None if both have the same samples, or if there is no parent that can be read.

    Raises:
        ReleaseError: the release's own table of samples cannot be read.
    """
    parent = made.manifest.parent
    place = find_parent_folder(made.path, parent) if parent else None
    if place is None:
        return None
    try:
        before = {row.id for row in read_release(place).samples()}
    except ReleaseError:
        return None
    after = {row.id for row in made.samples()}
    found = {"parent": len(before), "missing": len(before - after), "new": len(after - before)}
    return found if found["missing"] or found["new"] else None


def describe_comparability(made: Release) -> dict[str, Any] | None:
    """Return whether the arms are comparable; None if the run's report does not state it."""
    findings = made.manifest.findings
    found = findings.comparability if findings else None
    if found is None:
        return None
    return found.model_dump(mode="json", include={"verdict", "sentences", "needed"})
