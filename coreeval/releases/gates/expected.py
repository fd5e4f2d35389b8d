"""Which targets must have a value before a gate that looks at each of them is met."""

from collections.abc import Iterator
from pathlib import PurePath

from coreeval.evaluation.embedded import is_classifier
from coreeval.releases.release_manifest import Findings, ReleaseManifest


class Expected:
    """The targets of a release: those of its config, and those that were asked later."""

    def __init__(self, manifest: ReleaseManifest, findings: Findings | None) -> None:
        self._all = list(dict.fromkeys(map(known_as, _named(manifest, findings))))

    @property
    def models(self) -> list[str]:
        """Those that may know news; an embedded target was fitted here, and has read none."""
        return [each for each in self._all if not _embedded(each)]

    @property
    def labelling(self) -> list[str]:
        """Those that label texts: models and classifiers, but no persona."""
        return [each for each in self._all if is_classifier(each) or not _embedded(each)]

    @property
    def audited(self) -> list[str]:
        """Those that can be asked for values: models and personas, but no classifier."""
        return [each for each in self._all if not is_classifier(each)]


def known_as(target: str) -> str:
    """Return what a target is called wherever it is named: of recorded answers, their file alone.

    A report has the whole path of a file, a release what of it is below its config.
    """
    provider, _, name = target.partition(":")
    return f"{provider}:{PurePath(name).name}" if provider == "replay" else target


def _named(manifest: ReleaseManifest, findings: Findings | None) -> Iterator[str]:
    said = manifest.models.get("targets")
    known = said if isinstance(said, list) else ()
    yield from (str(each["model"]) for each in known if isinstance(each, dict))
    yield from (each.target for each in manifest.after_cutoff)
    yield from (each.target for each in (findings.targets if findings else ()))


def _embedded(target: str) -> bool:
    return target.startswith("offline:")
