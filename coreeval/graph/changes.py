"""What has changed since a run began: its config, its task, its benchmark's files."""

import hashlib
from pathlib import Path

from coreeval.config import Config, TargetConfig, find_changed_keys, load_config
from coreeval.errors import DatasetError
from coreeval.graph.setup import Setup, data_fingerprint, task_fingerprint
from coreeval.releases.manifest import Manifest

FREE = ("budget_usd", "allow_unpriced", "prices", "concurrency", "timeout_s", "sample_timeout_s")
"""Keys of `run` that may change while it goes on: they decide its cost and its pace only. So may
`dataset.licence`, which decides what a release passes on, and `telemetry`."""


def with_free_keys(frozen: Config, manifest: Manifest, budget_usd: float | None) -> Config:
    """Return a run's config with what decides no result as the config file has it now.

    Args:
        frozen: The run's own config.
        manifest: Says where its config file is.
        budget_usd: Comes before the file's.

    Raises:
        ConfigError: the file is there and cannot be used.
    """
    source = Path(manifest.source.path)
    now = load_config(source, manifest.source.overrides) if source.exists() else frozen
    free = {name: getattr(now.run, name) for name in FREE}
    if budget_usd is not None:
        free["budget_usd"] = budget_usd
    dataset = frozen.dataset.model_copy(update={"licence": now.dataset.licence})
    run = frozen.run.model_copy(update=free)
    update = {"run": run, "dataset": dataset, "telemetry": now.telemetry}
    return frozen.model_copy(update=update)


def with_added(config: Config, manifest: Manifest) -> Config:
    """Return a run's config with the targets that were added to it after the run."""
    models, said = config.models, manifest.evaluation
    known = {target.model for target in models.targets}
    added = (TargetConfig.model_validate(target) for target in (said.added if said else ()))
    targets = (*models.targets, *(target for target in added if target.model not in known))
    return config.model_copy(update={"models": models.model_copy(update={"targets": targets})})


def what_changed(manifest: Manifest, setup: Setup) -> list[str]:
    """Return what differs, in words for the user; prompts may differ, they are asked anew.

    Files that are gone are no change: the run store has the config and the samples.
    """
    found = _changed_config(manifest, setup.config)
    if manifest.fingerprints.task != task_fingerprint(setup):
        found.append(f"the task {setup.config.task}")
    if _data_changed(manifest, setup):
        found.append(f"the benchmark {setup.config.dataset.path}")
    return found


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _changed_config(manifest: Manifest, frozen: Config) -> list[str]:
    """Return the keys in which the config file differs from the run's own."""
    source = Path(manifest.source.path)
    if not source.exists() or sha256_of(source) == manifest.source.sha256:
        return []
    now = load_config(source, manifest.source.overrides)
    free = {name: getattr(frozen.run, name) for name in FREE}
    dataset = now.dataset.model_copy(update={"licence": frozen.dataset.licence})
    run = now.run.model_copy(update=free)
    aside = {"schedule": frozen.schedule, "telemetry": frozen.telemetry}
    alike = now.model_copy(update={"run": run, "dataset": dataset, **aside})
    return find_changed_keys(frozen, with_added(alike, manifest))


def _data_changed(manifest: Manifest, setup: Setup) -> bool:
    if setup.config.dataset.format == "hf":
        return False  # its fingerprint would read the whole set over the network
    try:
        return manifest.fingerprints.data != data_fingerprint(setup)
    except DatasetError:
        return False
