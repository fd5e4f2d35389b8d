"""The contents of a cassette besides answers and news.

These are the manifest and settings without costs, times, keys and local paths, the inputs of roles
played by rules (names in the news, labelled samples), and results that a replay copies because it
cannot reproduce them from the recording.
"""

import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

from coreeval.config import ROLES, Config, ModelConfig
from coreeval.evaluation.report.provenance import describe_notes
from coreeval.graph.inputs import NewsSources, load_train_examples, open_news
from coreeval.graph.refresh import build_control_setup
from coreeval.graph.setup import Setup
from coreeval.graph.threads import BEFORE_FAILED
from coreeval.models.model import public_endpoint
from coreeval.releases.cassettes.format import (
    CassetteOrigin,
    CassettePass,
    CassetteSettings,
    FinalResult,
    NameLine,
    QuotedEvidence,
    RecordedManifest,
    TrainDigest,
)
from coreeval.releases.release import hash_texts
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import Cost, KnowledgeUsed, Manifest
from coreeval.schema import Result, Sample
from coreeval.tasks import BUILT_IN
from coreeval.tools.local_paths import strip_paths
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import EvidenceExcerpt, ReleaseSample, SampleResult
from coreeval.tools.workspace import Workspace

RUN_KEYS = (
    "concurrency",
    "max_attempts",
    "pipeline",
    "label_batch",
    "arms",
    "seed",
    "on_reject",
    "control_window",
)
KNOWLEDGE_KEYS = ("window", "min_precision", "candidates")
_PARAMETERS = ("temperature", "max_tokens", "seed", "reasoning_effort", "structured")


def list_versions(config: Config) -> CassetteOrigin:
    """Return the versions of the software that this process runs."""
    return CassetteOrigin(
        coreeval=metadata.version("coreeval"),
        python=platform.python_version(),
        pyarrow=metadata.version("pyarrow"),
        spacy=metadata.version("spacy") if config.models.rule_based_roles else "",
    )


def select_settings(config: Config) -> CassetteSettings:
    """Return the config keys that determine the dataset, with paths reduced to names."""
    told = config.model_dump(mode="json")
    return CassetteSettings(
        name=config.name,
        task=config.task if config.task in BUILT_IN else Path(config.task).name,
        dataset=told["dataset"] | {"path": _base_name(config.dataset.path)},
        knowledge=select_keys(told["knowledge"], KNOWLEDGE_KEYS),
        run=select_keys(told["run"], RUN_KEYS),
        safety=told["safety"],
    )


def select_keys(values: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of the given keys that are present."""
    return {key: values[key] for key in keys if key in values}


def describe_players(config: Config) -> dict[str, dict[str, Any]]:
    """Return the model and parameters of each role; extra parameters only if they are numbers.

    Text values are left out because they might be secret, such as a header.
    """
    return {role: _describe_player(config.models.for_role(role)) for role in ROLES}


def _describe_player(model: ModelConfig) -> dict[str, Any]:
    name = _base_name(model.name) if _is_local_path(model) else model.name
    told: dict[str, Any] = {"model": f"{model.provider}:{name}".rstrip(":")}
    if model.base_url:
        told["base_url"] = public_endpoint(model.base_url)
    sent = {name: getattr(model, name) for name in _PARAMETERS}
    told |= {name: value for name, value in sent.items() if value is not None}
    numbers = {key: value for key, value in model.extra.items() if isinstance(value, int | float)}
    return told | ({"extra": numbers} if numbers else {})


def _is_local_path(model: ModelConfig) -> bool:
    """Return whether a model name is a local path; many local servers use paths as names."""
    return model.is_on_this_machine or PurePath(model.name).is_absolute()


def redact_manifest(manifest: Manifest, config: Config) -> RecordedManifest:
    """Return a run's manifest in a form that can be shared."""
    players, parent, control = describe_players(config), manifest.parent, manifest.control
    about_targets = manifest.model_dump(
        mode="json", include={"window_start", "cutoffs", "after_cutoff"}
    )
    update: dict[str, object] = {
        "status": "complete",
        "created_at": "",
        "ended_at": "",
        "models": players,
        **strip_paths(about_targets, *manifest.source.bases),
        "notes": tuple(describe_notes(manifest.notes)),
        "cost": Cost(),
        "knowledge": _redact_news(manifest.knowledge),
        "source": ConfigSource(path="", sha256=""),
        "workspace": "",
        "evaluation": None,
        "cassette": "",
        "parent": parent and parent.model_copy(update={"path": _base_name(parent.path)}),
        "control": control
        and control.model_copy(update={"knowledge": _redact_news(control.knowledge)}),
    }
    return RecordedManifest.model_validate({**dict(manifest), **update})


def _redact_news(used: KnowledgeUsed) -> KnowledgeUsed:
    kept = {"backend", "min_precision", "coverage", "gaps", "takedown", "takedown_sha256"}
    return KnowledgeUsed(path=None, **used.model_dump(include=kept))


def _base_name(path: str) -> str:
    """Return the last part of a local path; any other name is returned unchanged."""
    return Path(path).name if Path(path).is_absolute() else path


def load_train(setup: Setup) -> list[Sample]:
    """Return the samples that the label judge learns from; empty if a model plays it."""
    return load_train_examples(setup.config, setup.task)


def identify_train(train: Sequence[Sample]) -> TrainDigest | None:
    """Return the digest that identifies these samples; None if there are none."""
    if not train:
        return None
    digest = hashlib.sha256()
    for sample in train:
        digest.update(f"{hash_texts(sample.fields)} {sample.label}\n".encode())
    return TrainDigest(count=len(train), sha256=digest.hexdigest())


def iter_news_names(setup: Setup, workspace: Workspace) -> Iterator[NameLine]:
    """Yield the names found in local news for each pass in which rules play a role.

    A remote source has no names before it is queried.
    """
    if not _needs_names(setup):
        return
    with closing(_open_local_news(setup, workspace)) as news:
        passes: dict[CassettePass, Setup] = {"refresh": setup}
        if setup.control:
            passes["control"] = build_control_setup(setup)
        for stage, each in passes.items():
            names = news.names(each.window)
            yield from (NameLine(stage=stage, entity=entity) for entity in names)


def find_names_note(setup: Setup, workspace: Workspace, manifest: Manifest) -> str:
    """Return a note if the news may lack the names of the run; empty otherwise."""
    if not _needs_names(setup):
        return ""
    with closing(_open_local_news(setup, workspace)) as news:
        now, then = news.fingerprint, manifest.fingerprints.knowledge
    if now.rpartition(":")[2] == then.rpartition(":")[2]:
        return ""
    return (
        "the news has changed since the run, and roles played by rules depend on it: replay the "
        "cassette before you share it"
    )


def _needs_names(setup: Setup) -> bool:
    config = setup.config
    return bool(config.models.rule_based_roles) and "local" in config.knowledge.backends


def _open_local_news(setup: Setup, workspace: Workspace) -> NewsSources:
    local = setup.config.knowledge.model_copy(update={"backends": ("local",)})
    config = setup.config.model_copy(update={"knowledge": local})
    return open_news(replace(setup, config=config), workspace)


def find_fixed_results(store: RunStore, root: Path) -> dict[str, FinalResult]:
    """Return by sample the results of a pass that were kept from a release or were interrupted.

    Paths below the run's directory `root` or the user's are shortened in their reasons.

    Interrupted samples are those that failed, and those with an outcome but a failed step; the
    progress of their other branch depended on timing.
    """
    broken = {sample_id for sample_id, _, _ in store.inputs.step_errors()}
    return {
        ended.sample.id: _build_fixed_result(store, ended.result, root)
        for ended in store.sample_results()
        if ended.result.kept_from is not None
        or ended.result.outcome == "failed"
        or (ended.result.outcome in BEFORE_FAILED and ended.sample.id in broken)
    }


def _build_fixed_result(store: RunStore, result: Result, root: Path) -> FinalResult:
    facts = tuple(store.facts(result.sample_id))
    kept = result.kept_from is not None
    told = store.carry_over.excerpts(fact.evidence_id for fact in facts) if kept else {}
    reason = strip_paths({"reason": result.reason}, root)
    return FinalResult(
        result=result.model_copy(update={"facts": facts, **reason}),
        excerpts=tuple(
            QuotedEvidence(evidence=each.evidence, snippet_sha256=each.snippet_sha256)
            for each in told.values()
        ),
    )


def restore_sample(ended: SampleResult, stated: FinalResult) -> ReleaseSample:
    """Return a sample with its stated result, in the form for a run store."""
    return ReleaseSample(
        sample=ended.sample,
        result=stated.result,
        excerpts=tuple(
            EvidenceExcerpt(evidence=each.evidence, snippet_sha256=each.snippet_sha256)
            for each in stated.excerpts
        ),
    )
