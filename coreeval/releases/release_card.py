"""README.md of a release: the dataset card."""

from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.schema import Task


def release_card(task: Task, manifest: ReleaseManifest) -> str:
    """Return the card, read by people and by `datasets`."""
    return f"# {manifest.name} {manifest.version}\n\n{task.description}\n"
