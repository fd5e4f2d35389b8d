"""A run or a release as one of two that are compared: what it is, and how it was made."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.config import ROLES, ModelsConfig, load_config
from coreeval.releases.manifest import Cost, Manifest, read_manifest
from coreeval.releases.release import read_release
from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.releases.sides import Title, flat, side_at
from coreeval.schema import RoleName, Value
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.standings import Standings, of_release, of_run

_RESULTS = ("counts", "arms", "bad_rows", "models")
"""Keys of the settings that are shown in tables of their own."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One of two sides; it is the same as another of the same place."""

    key: str
    """Its name in addresses."""
    title: Title = field(compare=False)
    path: Path
    counts: Mapping[str, int] = field(compare=False)
    cost: Cost = field(compare=False)
    models: ModelsConfig = field(compare=False)
    settings: Mapping[str, object] = field(compare=False)
    """How it was made, by dotted key, models left out."""
    standings: Standings = field(compare=False)
    stamp: tuple[int, str] = field(compare=False)
    """Other after it has changed."""

    @property
    def is_run(self) -> bool:
        """Whether it is a run, whose samples have pages."""
        return self.title.kind == "run"


class SettingChange(Value):
    """A setting that differs; None where a side does not have it."""

    name: str
    before: object
    after: object


class RoleModels(Value):
    """Which model plays a role on either side."""

    role: str
    before: str
    after: str
    others: tuple[SettingChange, ...]
    """What else differs of how it is asked."""

    @property
    def differs(self) -> bool:
        """Whether anything about the role does."""
        return self.before != self.after or bool(self.others)


def compared_run(key: str, path: Path) -> Compared:
    """Return a run as a side.

    Raises:
        RunStateError: it has no readable manifest.
        RunCorrupt: its run.db is gone.
    """
    files = RunFiles(path)
    manifest, store = read_manifest(files.manifest), files.require_store()
    config = dict(flat("", load_config(files.config).model_dump(mode="json")))
    with closing(RunStore.open(store, now=utc_now)) as opened:
        stamp = opened.sample_states.stamp()
    return _compared(key, path, manifest, config, of_run(store), stamp)


def compared_release(key: str, path: Path) -> Compared:
    """Return a release as a side.

    Raises:
        ReleaseError: it is damaged.
    """
    manifest = read_release(path).manifest
    stamp = manifest.counts["total"], manifest.created_at
    return _compared(key, path, manifest, {}, of_release(path), stamp)


def _compared(
    key: str,
    path: Path,
    manifest: Manifest | ReleaseManifest,
    config: Mapping[str, object],
    standings: Standings,
    stamp: tuple[int, str],
) -> Compared:
    side = side_at(path)
    settings = {**side.settings, **config}
    return Compared(
        key=key,
        title=side.title,
        path=path,
        counts=manifest.counts,
        cost=manifest.cost,
        models=ModelsConfig.model_validate(manifest.models),
        settings={k: v for k, v in settings.items() if k.partition(".")[0] not in _RESULTS},
        standings=standings,
        stamp=stamp,
    )


def role_models(before: Compared, after: Compared) -> list[RoleModels]:
    """Return which model plays each role on either side, defaults filled in."""
    return [_role(role, *(_asked(side, role) for side in (before, after))) for role in ROLES]


def _asked(side: Compared, role: RoleName) -> Mapping[str, object]:
    return dict(flat("", side.models.for_role(role).model_dump(mode="json")))


def _role(role: RoleName, old: Mapping[str, object], new: Mapping[str, object]) -> RoleModels:
    others = tuple(one for one in changed(old, new) if one.name != "model")
    return RoleModels(role=role, before=str(old["model"]), after=str(new["model"]), others=others)


def changed(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[SettingChange]:
    """Yield the settings that differ."""
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield SettingChange(name=name, before=before, after=after)
