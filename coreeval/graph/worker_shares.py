"""Checks whether several processes can share a run, and divides its limits among them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from coreeval.config import ROLES, Config, ModelConfig
from coreeval.errors import ConfigError
from coreeval.tools.extras import check_extra
from coreeval.tools.workspace import HOME_VARIABLE, Workspace

_NETWORK_FILESYSTEMS: Final = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "fuse.sshfs", "gfs2", "glusterfs", "lustre", "nfs"}
    | {"nfs4", "ocfs2", "smb3", "smbfs"}
)


def check_workers(config: Config, workspace: Workspace) -> None:
    """Raise an error if several processes cannot share the work of the run.

    Raises:
        ConfigError: a limit is too small to share, or the news or the stores cannot be shared.
        UsageError: the engine is Ray, which is not installed.
    """
    workers, workers_key = config.run.worker_count, config.run.workers_key
    if config.run.engine == "ray":
        check_extra("ray", "ray", "run.engine: ray", where="run.engine")
    elif workers == 1:
        return
    limits = {"run.concurrency": config.run.concurrency} | {
        f"models.{role}.max_in_flight": config.models.for_role(role).max_in_flight for role in ROLES
    }
    for key, most in limits.items():
        if most is not None and most < workers:
            raise ConfigError(
                f"{workers} workers cannot share {key}, which is {most}",
                where=workers_key,
                hint=f"use at most {most} workers, or raise {key}",
            )
    remote = [name for name in config.knowledge.backends if name != "local"]
    if remote:
        raise ConfigError(
            f"{' and '.join(remote)} is queried once for all samples, by one process",
            where=workers_key,
            hint="set run.workers: 1 and run.engine: local, or download the news first (coreeval "
            "gdelt sync) and use knowledge.backends: [local]",
        )
    if config.run.store == "sqlite":
        refuse_network_filesystem(workspace.root)


def refuse_network_filesystem(folder: Path) -> None:
    """Raise an error if several processes would damage SQLite files in a folder.

    Raises:
        ConfigError: the folder is on a network file system.
    """
    if kind := find_network_filesystem(folder):
        raise ConfigError(
            f"this folder is on a network file system ({kind}), where several processes would "
            "damage SQLite's files",
            where=str(folder),
            hint=f"put the workspace ({HOME_VARIABLE}=DIR) and the run (--run-dir) on a disk of "
            "this machine, or set run.workers: 1 and run.engine: local",
        )


def find_network_filesystem(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the kind of a path's network file system; "" if it is local or unknown.

    Args:
        path: A path, which need not exist.
        mounts: The table of mounted file systems, which only Linux has.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    resolved, found = path.resolve(), ("", "")
    for line in lines:
        _, folder, kind, *_ = line.split(" ")
        folder = folder.replace("\\040", " ")
        if resolved.is_relative_to(folder) and len(folder) >= len(found[0]):
            found = folder, kind
    return found[1] if found[1] in _NETWORK_FILESYSTEMS else ""


def share_pace(config: Config, number: int, of: int) -> Config:
    """Return a config with one worker's share of the run's rate limits.

    Args:
        config: The run's config.
        number: The worker, from 0.
        of: The number of workers.
    """
    models = {name: _share_model(model, number, of) for name, model in _list_models(config)}
    run = config.run.model_copy(update={"concurrency": _share(config.run.concurrency, number, of)})
    chosen = config.models.model_copy(update=models)
    return config.model_copy(update={"run": run, "models": chosen})


def _list_models(config: Config) -> Iterable[tuple[str, ModelConfig]]:
    for name in ("default", *ROLES):
        model = getattr(config.models, name)
        if model is not None:
            yield name, model


def _share_model(model: ModelConfig, number: int, of: int) -> ModelConfig:
    most = model.max_in_flight
    requests, tokens = model.requests_per_minute, model.tokens_per_minute
    return model.model_copy(
        update={
            "max_in_flight": most and _share(most, number, of),
            "requests_per_minute": requests and requests / of,
            "tokens_per_minute": tokens and tokens / of,
        }
    )


def _share(total: int, number: int, of: int) -> int:
    """Return a worker's share of a number, at least one."""
    return max(1, total // of + (number < total % of))
