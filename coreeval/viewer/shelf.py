"""What the pages show: runs and releases by a key that fits into an address."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coreeval.tools.workspace import Workspace

_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """The runs that were named, and those of a workspace as they come and go."""

    runs: Sequence[Path] = ()
    workspace: Workspace | None = None
    """Whose runs and releases are shown besides; None where only named ones are."""

    def all_runs(self) -> dict[str, Path]:
        """Return the directories of runs by key, those of a name by their start."""
        found = sorted(self.workspace.runs.glob("*/*/manifest.json")) if self.workspace else []
        return _keyed([*self.runs, *(path.parent for path in found)])

    @property
    def paths(self) -> list[Path]:
        """The directories of all runs that are here now."""
        return list(self.all_runs().values())

    def all_releases(self) -> dict[str, Path]:
        """Return the directories of releases by key, those of a name by their version."""
        found = sorted(self.workspace.releases.glob("*/*/release.json")) if self.workspace else []
        return _keyed(path.parent for path in found)


def _keyed(paths: Iterable[Path]) -> dict[str, Path]:
    """Name each directory by its last two parts; by a hash too where others are named so."""
    distinct = list(dict.fromkeys(path.resolve() for path in paths))
    short = Counter(_slug(path) for path in distinct)
    return {
        _slug(path) if short[_slug(path)] == 1 else f"{_slug(path)}-{_hash(path)}": path
        for path in distinct
    }


def _slug(path: Path) -> str:
    return ".".join(_UNFIT.sub("-", part).strip("-") or "-" for part in path.parts[-2:])


def _hash(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:6]
