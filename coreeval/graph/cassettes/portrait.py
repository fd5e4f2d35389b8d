"""What a cassette says of a run, without money, times, keys and places of a machine."""

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

from coreeval.config import ROLES, Config, ModelConfig
from coreeval.models.model import public_endpoint
from coreeval.releases.cassettes.lines import Made, Settings
from coreeval.releases.manifest import Cost, KnowledgeUsed, Manifest, Source
from coreeval.tasks import BUILT_IN

RUN_KEYS = ("concurrency", "max_attempts", "seed", "on_reject", "control_window")
KNOWLEDGE_KEYS = ("window", "min_precision", "candidates")
_PARAMETERS = ("temperature", "max_tokens", "seed", "reasoning_effort", "structured")


def made_with(config: Config) -> Made:
    """Return the versions of what this process works with."""
    return Made(
        coreeval=metadata.version("coreeval"),
        python=platform.python_version(),
        pyarrow=metadata.version("pyarrow"),
        spacy=metadata.version("spacy") if config.models.rule_based_roles else "",
    )


def settings_of(config: Config) -> Settings:
    """Return the keys of a config that decide the dataset; paths are cut to names."""
    told = config.model_dump(mode="json")
    return Settings(
        name=config.name,
        task=config.task if config.task in BUILT_IN else Path(config.task).name,
        dataset=told["dataset"] | {"path": _short(config.dataset.path)},
        knowledge=chosen(told["knowledge"], KNOWLEDGE_KEYS),
        run=chosen(told["run"], RUN_KEYS),
        safety=told["safety"],
    )


def chosen(values: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return some of the values, as far as they are there."""
    return {key: values[key] for key in keys if key in values}


def players_of(config: Config) -> dict[str, dict[str, Any]]:
    """Return by role the model and its parameters; extra ones only where they are numbers.

    Texts among them might be secret: somebody may have put a header there.
    """
    return {role: _player(config.models.for_role(role)) for role in ROLES}


def _player(model: ModelConfig) -> dict[str, Any]:
    name = _short(model.name) if _is_path(model) else model.name
    told: dict[str, Any] = {"model": f"{model.provider}:{name}".rstrip(":")}
    if model.base_url:
        told["base_url"] = public_endpoint(model.base_url)
    sent = {name: getattr(model, name) for name in _PARAMETERS}
    told |= {name: value for name, value in sent.items() if value is not None}
    numbers = {key: value for key, value in model.extra.items() if isinstance(value, int | float)}
    return told | ({"extra": numbers} if numbers else {})


def _is_path(model: ModelConfig) -> bool:
    """Tell whether a name is a place on a machine: servers of local models are often named so."""
    return model.provider == "replay" or PurePath(model.name).is_absolute()


def portrait(manifest: Manifest, config: Config) -> Manifest:
    """Return a run's manifest as it may leave the machine."""
    place, players = config.dataset.path, players_of(config)
    parent, control = manifest.parent, manifest.control
    update: dict[str, object] = {
        "status": "complete",
        "created_at": "",
        "ended_at": "",
        "models": players,
        "notes": tuple(note.replace(place, _short(place)) for note in manifest.notes),
        "cost": Cost(),
        "knowledge": _news(manifest.knowledge),
        "source": Source(path="", sha256=""),
        "workspace": "",
        "evaluation": None,
        "cassette": "",
        "parent": parent and parent.model_copy(update={"path": _short(parent.path)}),
        "control": control and control.model_copy(update={"knowledge": _news(control.knowledge)}),
    }
    return manifest.model_copy(update=update)


def _news(used: KnowledgeUsed) -> KnowledgeUsed:
    kept = {"backend", "min_precision", "coverage", "gaps", "takedown", "takedown_sha256"}
    return KnowledgeUsed(path=None, **used.model_dump(include=kept))


def _short(path: str) -> str:
    """Return the last part of a path on this machine, and any other name as it is."""
    return Path(path).name if Path(path).is_absolute() else path
