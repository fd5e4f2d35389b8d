"""A release as a JSON document."""

from typing import Any

from coreeval.releases.release import Release


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
    }


def describe_comparability(made: Release) -> dict[str, Any] | None:
    """Return whether the arms are comparable; None if the run's report does not state it."""
    findings = made.manifest.findings
    found = findings.comparability if findings else None
    if found is None:
        return None
    return found.model_dump(mode="json", include={"verdict", "sentences", "needed"})
