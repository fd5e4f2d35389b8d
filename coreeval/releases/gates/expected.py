"""Which targets must have a value before a gate that looks at each of them is met."""

from collections.abc import Iterator
from pathlib import PurePath

from coreeval.evaluation.embedded_targets import is_classifier
from coreeval.releases.release_manifest import Findings, ReleaseManifest


class Expected:
    """The targets of a release: those of its config, and those that were asked later."""

    def __init__(self, manifest: ReleaseManifest, findings: Findings | None) -> None:
        self._all = list(dict.fromkeys(map(known_as, _named(manifest, findings))))
        self._references = {known_as(name) for name in _references(manifest)}

    @property
    def models(self) -> list[str]:
        """Those that may know news; an embedded target was fitted here, and has read none."""
        return [each for each in self._all if not _embedded(each)]

    @property
    def labelling(self) -> list[str]:
        """Those that label texts and are tested: models and classifiers, but no persona."""
        return [each for each in self._tested if is_classifier(each) or not _embedded(each)]

    @property
    def audited(self) -> list[str]:
        """Those that can be asked for values: models and personas, but no classifier."""
        return [each for each in self._tested if not is_classifier(each)]

    @property
    def _tested(self) -> list[str]:
        """All but the references: no verdict is about them."""
        return [each for each in self._all if each not in self._references]


def known_as(target: str) -> str:
    """Return what a target is called wherever it is named: of recorded answers, their file alone.

    A report has the whole path of a file, a release what of it is below its config.
    """
    provider, _, name = target.partition(":")
    return f"{provider}:{PurePath(name).name}" if provider == "replay" else target


def _named(manifest: ReleaseManifest, findings: Findings | None) -> Iterator[str]:
    yield from (str(each["model"]) for each in _configured(manifest))
    yield from (each.target for each in manifest.after_cutoff)
    yield from (each.target for each in (findings.targets if findings else ()))


def _references(manifest: ReleaseManifest) -> Iterator[str]:
    for each in _configured(manifest):
        if each.get("role") == "reference":
            yield str(each["model"])


def _configured(manifest: ReleaseManifest) -> list[dict[str, object]]:
    """Return the targets of the config, with the keys that it gives them."""
    said = manifest.models.get("targets")
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def _embedded(target: str) -> bool:
    return target.startswith("offline:")
