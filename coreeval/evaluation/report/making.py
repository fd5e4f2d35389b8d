"""How a run was made, in words: the benchmark, the news, the roles, the targets, the settings."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from coreeval.config import ROLES, Config, ModelConfig
from coreeval.prompts import load_built_in_prompt
from coreeval.schema import Precision, RoleName, Task

Json = Mapping[str, Any]
DOES: Final[Mapping[RoleName, str]] = {
    "extractor": "finds what a text mentions, and what must stay",
    "replacer": "chooses the news and the facts that change",
    "rewriter": "says the original in other words",
    "composer": "writes the updated text",
    "fact_judge": "judges whether the news carries what was written",
    "label_judge": "labels texts without being told their label",
}
JUDGE: Final = "utility_judge"
"""What the calls of those are noted as who score what defences cost."""
JUDGES: Final = "scores how useful answers stay under a defence"
DATED: Final[Mapping[Precision, str]] = {
    "exact": "stated by the page",
    "url": "a date in the address",
    "cluster": "that of another report of the same event",
    "crawl": "when GDELT saw the page, which may be later than its publication",
}
ON_REJECT: Final = {
    "drop": "rejected samples are not in the updated arm",
    "semantic": "rejected samples stand in the updated arm with their reworded text; no score uses "
    "them",
    "original": "rejected samples stand in the updated arm with their original text; no score uses "
    "them",
}


def benchmark_told(config: Config, task: Task, manifest: Json) -> Json:
    """Return what was refreshed; of a path only the last part, since a report travels."""
    dataset = config.dataset
    return {
        "description": task.description,
        "format": dataset.format,
        "source": _source(config),
        "split": dataset.split,
        "target": dataset.target,
        "fields": list(task.fields),
        "labels": [label.name for label in task.labels],
        "limit": manifest["limit"],
        "data_sha256": manifest["fingerprints"]["data"],
    }


def notes_told(config: Config, manifest: Json) -> list[str]:
    """Return what is odd about the benchmark, without the folders that it lies in."""
    return [note.replace(config.dataset.path, _source(config)) for note in manifest["notes"]]


def _source(config: Config) -> str:
    path = config.dataset.path
    return path if config.dataset.format == "hf" else PurePath(path).name


def settings_told(config: Config) -> Json:
    """Return what decides how samples end."""
    return {
        "max_attempts": config.run.max_attempts,
        "on_reject": config.run.on_reject,
        "seed": config.run.seed,
        "min_precision": config.knowledge.min_precision,
        "backends": list(config.knowledge.backends),
        "safety": config.safety.flag_policies(),
    }


def roles_told(config: Config, prompts: Json) -> list[Json]:
    """Return who played each role, with which parameters and which wording."""
    models = config.models
    team = [
        _role_told(role, DOES[role], models.for_role(role), prompts.get(role)) for role in ROLES
    ]
    judges = config.detect.judges if models.targets else ()
    wording = load_built_in_prompt("series_judge").version
    return team + [_role_told(JUDGE, JUDGES, judge, wording) for judge in judges]


def _role_told(role: str, does: str, model: ModelConfig, prompt: str | None) -> Json:
    return {
        "role": role,
        "does": does,
        "model": model.model,
        "by_rules": model.is_rule_based,
        "parameters": list(_parameters(model)),
        "prompt": None if model.is_rule_based else prompt,
    }


def targets_told(config: Config, manifest: Json) -> list[Json]:
    """Return each model under test, with what is known of its dates."""
    known = {each["target"]: each for each in manifest["cutoffs"] or ()}
    fresh = {each["target"]: each for each in manifest["after_cutoff"]}
    return [
        {
            "target": target.model,
            "role": target.role,
            "embedded": target.is_embedded,
            "parameters": list(_parameters(target)),
            "cutoff": known.get(target.model, {}).get("cutoff"),
            "released": known.get(target.model, {}).get("released"),
            "fresh": fresh.get(target.model),
        }
        for target in config.models.targets
    ]


def _parameters(model: ModelConfig) -> Iterator[str]:
    """Yield what was set; the rest is the provider's default."""
    if model.is_rule_based:
        return
    for name in ("temperature", "seed", "reasoning_effort"):
        if (value := getattr(model, name)) is not None:
            yield f"{name.replace('_', ' ')} {value}"
    yield f"at most {model.max_tokens} tokens"
    yield from (f"{name} {value}" for name, value in model.extra.items())
