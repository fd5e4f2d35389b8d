"""The origin of a run: its config, task and files at the start, and the release it follows.

`list_changes` lists what has changed since. The release that a run follows is found and checked,
and determines which samples the run may keep.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coreeval.config import Config, TargetConfig, find_changed_keys
from coreeval.config.dates import Age, parse_age
from coreeval.config.prices import share_prices
from coreeval.errors import DatasetError, ReleaseError, TaskError, UsageError
from coreeval.graph.setup import Setup, data_fingerprint
from coreeval.releases.carry_over import CarryOver, CarryOverTerms
from coreeval.releases.release import Release
from coreeval.releases.sources import Horizon, find_new_cutoffs, find_parent
from coreeval.runs.manifest import FollowedRelease, Manifest
from coreeval.runs.own_config import (
    iter_config_remarks,
    load_config_file,
    load_own_config,
    load_same_benchmark,
    locate_recorded,
)
from coreeval.tasks import hash_task, load_task
from coreeval.tools.env_file import read_env_file
from coreeval.tools.terminal import brief
from coreeval.tools.workspace import RunFiles, Workspace

FREE_KEYS = (
    "budget_usd",
    "max_usd_per_sample",
    "allow_unpriced",
    "prices",
    "concurrency",
    "engine",
    "workers",
    "ray",
    "batch",
    "timeout_s",
    "sample_timeout_s",
)
"""Keys of `run` that may change during a run, because they affect only its cost and pace.
`dataset.licence`, which determines what a release redistributes, `telemetry` and
`knowledge.bigquery.max_gb` may change, too."""


_BUDGET = "run.budget_usd="


def set_budget(manifest: Manifest, budget_usd: float | None) -> Manifest:
    """Return a manifest whose budget takes precedence over the config's, also in later resumes."""
    if budget_usd is None:
        return manifest
    others = (each for each in manifest.source.overrides if not each.startswith(_BUDGET))
    overrides = (*others, f"{_BUDGET}{budget_usd}")
    source = manifest.source.model_copy(update={"overrides": overrides})
    return manifest.model_copy(update={"source": source})


def load_run_config(
    files: RunFiles, manifest: Manifest, *, keep: bool
) -> tuple[Config, tuple[str, ...]]:
    """Return a run's config and remarks on it, and read the run's `.env`.

    The keys that affect no results are taken from the current config file, if it still describes
    the run's benchmark.

    Args:
        files: The run's files.
        manifest: Has the path of its config file, and the settings that override it.
        keep: Whether to take nothing from the current file.

    Raises:
        ConfigError: a config or the budget cannot be used.
    """
    budgets = [each for each in manifest.source.overrides if each.startswith(_BUDGET)]
    frozen, source = load_own_config(files, manifest, budgets), manifest.source
    read_env_file(manifest.config_folder, frozen)
    remarks = tuple(iter_config_remarks(source))
    if keep or not source.exists:  # a config in memory or a cassette has none
        return frozen, remarks
    if now := load_same_benchmark(source, frozen):
        return apply_free_keys(frozen, now), remarks
    remark = "now describes another benchmark, so the run keeps its own budget, licence and pace"
    return frozen, (*remarks, f"{brief(source.file)} {remark}")


def apply_free_keys(frozen: Config, now: Config) -> Config:
    """Return a run's config with the keys that affect no results taken from the current file."""
    free = {name: getattr(now.run, name) for name in FREE_KEYS}
    dataset = frozen.dataset.model_copy(update={"licence": now.dataset.licence})
    run = frozen.run.model_copy(update=free)
    update = {"run": run, "dataset": dataset, "telemetry": now.telemetry}
    return _replace_cap(frozen.model_copy(update=update), now)


def _replace_cap(config: Config, other: Config) -> Config:
    """Return a config with the limit of another one on what BigQuery may bill."""
    knowledge, cap = config.knowledge, {"max_gb": other.knowledge.bigquery.max_gb}
    bigquery = knowledge.bigquery.model_copy(update=cap)
    changed = knowledge.model_copy(update={"bigquery": bigquery})
    return config.model_copy(update={"knowledge": changed})


def apply_added_targets(config: Config, manifest: Manifest) -> Config:
    """Return a run's config with the targets that were added after the run."""
    models, said = config.models, manifest.evaluation
    known = {target.model for target in models.targets}
    listed = map(TargetConfig.model_validate, said.added if said else ())
    locate = locate_recorded(manifest.source)
    added = (target.resolve(locate, str) for target in listed)
    targets = (*models.targets, *(target for target in added if target.model not in known))
    changed = config.model_copy(update={"models": models.model_copy(update={"targets": targets})})
    return share_prices(changed)


def list_changes(manifest: Manifest, setup: Setup) -> list[str]:
    """Return the differences, described for the user; changed prompts are allowed and asked again.

    Missing files are not a change: the run store has the config and the samples.
    """
    found = _list_config_changes(manifest, setup.config)
    if _has_task_changed(manifest, setup):
        found.append(f"the task {setup.config.task}")
    if _has_data_changed(manifest, setup):
        found.append(f"the benchmark {setup.config.dataset.path}")
    return [*found, *_list_plugin_changes(manifest, setup)]


def _list_plugin_changes(manifest: Manifest, setup: Setup) -> Iterator[str]:
    """Yield the plugins whose version has changed since the run began."""
    before = {(each.group, each.name): each.identity for each in manifest.plugins}
    for origin in setup.plugins:
        known = before.get((origin.group, origin.name), origin.identity)
        if known != origin.identity:
            yield f"the plugin {origin.name} ({known} is now {origin.identity})"


def hash_file(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _list_config_changes(manifest: Manifest, frozen: Config) -> list[str]:
    """Return the keys in which the config file differs from the run's config."""
    source = manifest.source
    if not source.exists or hash_file(source.file) == source.sha256:
        return []
    now = load_config_file(source, frozen)
    free = {name: getattr(frozen.run, name) for name in FREE_KEYS}
    dataset = now.dataset.model_copy(update={"licence": frozen.dataset.licence})
    run = now.run.model_copy(update=free)
    aside = {"schedule": frozen.schedule, "telemetry": frozen.telemetry}
    alike = now.model_copy(update={"run": run, "dataset": dataset, **aside})
    alike = _replace_cap(alike, frozen)
    return find_changed_keys(frozen, apply_added_targets(alike, manifest))


def _has_task_changed(manifest: Manifest, setup: Setup) -> bool:
    """Return whether the config's task is no longer the run's."""
    dataset, name = setup.config.dataset, setup.config.task
    try:
        current = hash_task(load_task(name, dataset.target, dataset.language))
    except TaskError:
        return Path(name).exists()  # a missing file is not a change
    return current != manifest.fingerprints.task


def _has_data_changed(manifest: Manifest, setup: Setup) -> bool:
    if setup.config.dataset.is_on_hub:
        return False  # its fingerprint would require reading the whole set over the network
    try:
        return manifest.fingerprints.data != data_fingerprint(setup)
    except DatasetError:
        return False


LATEST: Final = "latest"


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """The release that a refresh follows, as the user describes it."""

    release: Path | str
    """The release's directory, or `latest` for the last one of this name in the workspace."""
    stale_after: str | None = None
    """Maximum age of evidence, such as `90d`; None if only new targets make it stale."""


def build_lineage(release: Path | str | None, stale_after: str | None) -> Lineage | None:
    """Return the lineage given for the release to follow; None if there is none.

    Raises:
        UsageError: the age is not valid, or is given without a release.
    """
    if release is None and stale_after is not None:
        raise UsageError(
            "--stale-after selects samples of a release to renew, but no release was passed",
            where="--stale-after",
            hint="pass a release: --from RELEASE, or --from latest",
        )
    if stale_after is not None:
        _parse_age(stale_after)
    return None if release is None else Lineage(release=release, stale_after=stale_after)


def find_followed_release(lineage: Lineage, setup: Setup, workspace: Workspace) -> FollowedRelease:
    """Find the release that a run is to follow.

    Raises:
        ReleaseError: it does not exist, was edited, or is of another benchmark.
    """
    name = setup.config.name
    release = _find_release(lineage.release, name, workspace)
    manifest = release.manifest
    asked = {"task": setup.task.name, "split": setup.config.dataset.split}
    for what, wanted in asked.items():
        if (there := getattr(manifest, what)) != wanted:
            raise ReleaseError(
                f"the release has the {what} {there!r}, but the config has {wanted!r}",
                where=str(release.path),
                hint="pass a release of the same benchmark, or refresh without --from",
            )
    return FollowedRelease(
        version=manifest.version,
        digest=release.digest,
        path=str(release.path.resolve()),
        stale_after=lineage.stale_after,
    )


def _find_release(chosen: Path | str, name: str, workspace: Workspace) -> Release:
    shelf = workspace.releases / name
    found = find_parent(LATEST if str(chosen) == LATEST else Path(chosen), name, (shelf,))
    if found is None:
        raise ReleaseError(
            f"{name!r} has no release yet",
            where=str(shelf),
            hint="run the first refresh without --from; then: coreeval release RUN --version V",
        )
    return found


def open_followed_release(parent: FollowedRelease, name: str, workspace: Workspace) -> Release:
    """Return the release that a run follows, also if it was moved with the run's workspace.

    Raises:
        ReleaseError: the release is gone, was edited, or is not the one that the run began with.
    """
    found = find_parent(LATEST, name, (workspace.releases / name,), followed=parent)
    assert found is not None
    return found


def open_keeper(parent: FollowedRelease, setup: Setup, workspace: Workspace) -> CarryOver:
    """Return the carry-over that keeps the benchmark's samples that are still valid.

    Raises:
        ReleaseError: the release is gone, was edited, or is not the one that the run began with.
    """
    release = open_followed_release(parent, setup.config.name, workspace)
    stale_after = parent.stale_after and _parse_age(parent.stale_after)
    terms = CarryOverTerms(
        horizon=Horizon(
            oldest=stale_after.subtract_from(setup.now) if stale_after else None,
            cutoffs=find_new_cutoffs(release.manifest.cutoffs, setup.target_dates),
        ),
        takedown=setup.rules.takedown,
        min_precision=setup.config.knowledge.min_precision,
        targets=setup.target_dates,
    )
    return CarryOver(release, terms)


def _parse_age(stated: str) -> Age:
    try:
        return parse_age(stated)
    except ValueError as error:
        raise UsageError(str(error), where="--stale-after") from None
